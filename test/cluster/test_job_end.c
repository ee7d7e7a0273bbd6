/* The end of a job whose scheduler has a store: durable before any node, call or process learns of it. */
#include "cluster/support_stored.h"

#include <string.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_end.h"
#include "cluster/scheduler/sched_save.h"

static void end_now(void)
{
    assert_true(lane_enter(stored.c.lane));
    sched_end_begin(stored.c.scheduler, PARAMO_E_DATA_LOST, "the last copy is lost");
    lane_leave(stored.c.lane);
}

/* As it does in etcd to prove that it leads. */
static void save_now(void)
{
    assert_true(lane_enter(stored.c.lane));
    sched_save_end(stored.c.scheduler);
    lane_leave(stored.c.lane);
}

/* While a job ends its scheduler is started again, and again: each goes on with that end. One that saved
 * everything without a view (it made none any more) left the next one with nothing, and another job began. */
static void test_ends_again(void **state)
{
    (void)state;
    for (unsigned ms = 1; ms < 400; ms += ms < 20 ? 1 : 20) {
        stored_on(1, 1);
        end_now();
        cluster_pass(&stored.c, 0.01);
        for (unsigned times = 0; times < 3 && !stored.c.over; times++) {
            if (times == 1)
                for (unsigned i = 0; i < 2; i++)
                    cluster_kill(&stored.c.nodes[i]);
            stored_scheduler_off(false);
            stored_scheduler_on();
            assert_int_equal(stored.c.scheduler->state, SCHED_ENDING);
            assert_int_equal(stored.c.scheduler->end->status, PARAMO_E_DATA_LOST);
            save_now();
            cluster_pass(&stored.c, ms / 1000.0);
        }
        stored_off();
    }
}

/* A disk that takes nothing for so long. */
static void pass_full(double seconds)
{
    for (uint64_t until = in_seconds(&stored.c, seconds); sim_now(stored.c.sim) < until;) {
        simfs_plan(stored.disk, SIMFS_FAIL, simfs_steps(stored.disk));
        assert_true(sim_step(stored.c.sim));
    }
    simfs_plan(stored.disk, SIMFS_FAIL, UINT64_MAX);
}

/* It will wait for a place that is held. */
static void start_waiting(struct tnode *node)
{
    struct member_config config = cluster_member_config(&stored.c, node, WORKER);
    config.rank = 0;
    cluster_start_config(node, &config);
}

static void none_told(const struct tcall *shutdown)
{
    for (unsigned i = 0; i < 5; i++) /* TIMEOUT: by its own clock */
        assert_false(i < 3 ? stored.c.nodes[i].ended
                           : stored.c.nodes[i].joined && stored.c.nodes[i].joined_status != PARAMO_E_TIMEOUT);
    assert_false(shutdown->done);
}

/* Neither members, nor nodes that wait for a place since before the end or after it, nor the caller that ends the job
 * learn of the end before it is durable. */
static void test_end_is_durable_first(void **state)
{
    (void)state;
    stored_on(1, 2);
    struct tnode *a = &stored.c.nodes[1];
    struct tcall shutdown;
    log_set_sink(stored_log_nothing, NULL);
    start_waiting(&stored.c.nodes[3]);
    cluster_pass(&stored.c, 0.1);
    TCALL(a, &shutdown, member_shutdown(a->member, &shutdown.call, "enough", in_seconds(&stored.c, 50)));
    pass_full(0.1);
    assert_int_equal(stored.c.scheduler->state, SCHED_ENDING);
    start_waiting(&stored.c.nodes[4]);
    pass_full(8);
    none_told(&shutdown);
    assert_int_equal(tcall_wait(&stored.c, &shutdown), PARAMO_OK);
    assert_true(stored.c.scheduler->saves->end_saved);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(cluster_run(&stored.c, tnode_ended, &stored.c.nodes[i], 1));
        assert_int_equal(stored.c.nodes[i].ended_status, PARAMO_E_SHUTDOWN);
    }
    for (unsigned i = 3; i < 5; i++) {
        assert_true(cluster_run(&stored.c, tnode_joined, &stored.c.nodes[i], 1));
        assert_int_equal(stored.c.nodes[i].joined_status, PARAMO_E_SHUTDOWN);
    }
    assert_true(cluster_run(&stored.c, cluster_over, &stored.c, 6));
    assert_int_equal(stored.c.over_status, PARAMO_E_SHUTDOWN);
    log_set_sink(NULL, NULL);
    stored_off();
}

/* The scheduler gives up, says so, and the job continues when it starts again. */
static void test_end_cannot_be_saved(void **state)
{
    (void)state;
    stored_on(1, 2);
    struct tnode *a = &stored.c.nodes[1];
    struct tcall shutdown, put;
    log_set_sink(stored_log_nothing, NULL);
    start_waiting(&stored.c.nodes[3]);
    cluster_pass(&stored.c, 0.1);
    TCALL(a, &shutdown, member_shutdown(a->member, &shutdown.call, "enough", in_seconds(&stored.c, 26)));
    pass_full(0.1);
    start_waiting(&stored.c.nodes[4]);
    pass_full(24.5);
    assert_false(stored.c.over);
    none_told(&shutdown);
    pass_full(1);
    assert_true(stored.c.over);
    assert_int_equal(stored.c.over_status, PARAMO_E_IO);
    assert_non_null(strstr(stored.c.over_text, "the end of the job"));
    assert_int_equal(tcall_wait(&stored.c, &shutdown), PARAMO_E_TIMEOUT);
    log_set_sink(NULL, NULL);
    stored_scheduler_off(false);
    stored_scheduler_on();
    assert_int_equal(stored.c.scheduler->state, SCHED_RUNNING);
    TCALL(a, &put, member_kv_put(a->member, &put.call, "a", "x", 1, in_seconds(&stored.c, 50)));
    assert_int_equal(tcall_wait(&stored.c, &put), PARAMO_OK);
    for (unsigned i = 0; i < 5; i++)
        assert_false(i < 3 ? stored.c.nodes[i].ended : stored.c.nodes[i].joined_status == PARAMO_E_SHUTDOWN);
    stored_off();
}

/* A job that ends before it is complete has no view. The next scheduler goes on with that end, too. */
static void test_end_without_a_view(void **state)
{
    (void)state;
    stored_init(1, 1);
    stored_scheduler_on();
    cluster_start(&stored.c, &stored.c.nodes[0], SERVER);
    cluster_pass(&stored.c, 0.1);
    end_now();
    while (!stored.c.scheduler->saves->end_saved)
        assert_true(sim_step(stored.c.sim));
    assert_false(stored.c.over);
    stored_scheduler_off(true);
    stored_scheduler_on();
    assert_true(cluster_run(&stored.c, cluster_over, &stored.c, 1));
    assert_int_equal(stored.c.over_status, PARAMO_E_DATA_LOST);
    stored_off();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_again),
        cmocka_unit_test(test_end_is_durable_first),
        cmocka_unit_test(test_end_cannot_be_saved),
        cmocka_unit_test(test_end_without_a_view),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
