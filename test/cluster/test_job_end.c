/* The end of a job whose scheduler has a store: durable before any node, call or process learns of it. */
#include "cluster/support_stored.h"

#include <string.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_end.h"
#include "cluster/scheduler/sched_save.h"

static void end_with(paramo_err status, const char *text)
{
    assert_true(lane_enter(stored.c.lane));
    sched_end_begin(stored.c.scheduler, status, text);
    lane_leave(stored.c.lane);
}

static void end_now(void)
{
    end_with(PARAMO_E_DATA_LOST, "the last copy is lost");
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

/* The state could not be removed when the job ended, and a scheduler is started with it. A node that comes then learns
 * why there is no job for it. */
static void test_state_of_an_ended_job(void **state)
{
    (void)state;
    static const struct {
        paramo_err status;
        const char *text, *told;
    } ends[] = {{PARAMO_OK, "", "the job is over: it ended in order"},
                {PARAMO_E_NODE_LOST, "", "the job is over: PARAMO_E_NODE_LOST"},
                {PARAMO_E_SHUTDOWN, "enough", "the job is over: enough"}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        stored_on(1, 1);
        end_with(ends[i].status, ends[i].text);
        cluster_pass(&stored.c, 0.01);
        stored_scheduler_off(false);
        log_set_sink(stored_log_nothing, NULL);
        stored_scheduler_on();
        log_set_sink(NULL, NULL);
        assert_int_equal(stored.c.scheduler->state, SCHED_ENDING);
        struct tnode *late = &stored.c.nodes[2];
        cluster_start(&stored.c, late, WORKER);
        assert_true(cluster_run(&stored.c, tnode_joined, late, 5));
        assert_int_equal(late->joined_status, PARAMO_E_SHUTDOWN);
        assert_string_equal(late->joined_text, ends[i].told);
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
    assert_non_null(
        strstr(stored.c.over_text, "ended the job: enough) could not be saved within 25000 ms: "));
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

/* ---- stores that fail in other ways -------------------------------------------------------------------- */

/* A store over the real one. */
static struct {
    struct store store;
    struct store *real;
    unsigned saves, refused; /* that came; that found no memory, which are the later ones */
    bool held;
    store_saved_fn *done;
    void *arg;
} other;

static void other_done(paramo_err status)
{
    assert_true(other.held);
    other.held = false;
    assert_true(lane_enter(stored.c.lane));
    other.done(other.arg, status ? err_set(status, "so it is") : PARAMO_OK);
    lane_leave(stored.c.lane);
}

/* The first save is held until other_done; for the next ones there is no memory, or they wait behind it. */
static paramo_err other_save(struct store *store, struct writer *records, bool whole, store_saved_fn *done,
                             void *arg)
{
    (void)store;
    other.saves++;
    if (other.saves == 1) {
        writer_fini(records);
        other.held = true;
        other.done = done;
        other.arg = arg;
        return PARAMO_OK;
    }
    if (other.refused) {
        other.refused--;
        writer_fini(records);
        return err_memory(1);
    }
    if (!other.held)
        return store_save(other.real, records, whole, done, arg);
    writer_fini(records);
    return PARAMO_OK;
}

static bool other_sure(const struct store *store)
{
    (void)store;
    return true;
}

static void other_close(struct store *store)
{
    (void)store;
    store_close(other.real);
}

static void other_on(unsigned refused)
{
    static const struct store_ops ops = {.save = other_save, .sure = other_sure, .close = other_close};
    memset(&other, 0, sizeof other);
    other.store.ops = &ops;
    other.refused = refused;
    other.real = stored.c.scheduler->config.store;
    stored.c.scheduler->config.store = &other.store;
}

/* A save is in progress when the scheduler empties its store, for which there is no memory yet. The save fails after
 * that, and the store is emptied all the same. */
static void test_emptied_after_a_late_failure(void **state)
{
    (void)state;
    stored_on(1, 1);
    log_set_sink(stored_log_nothing, NULL);
    other_on(3);
    end_now();
    cluster_pass(&stored.c, 25.15);
    assert_int_equal(stored.c.scheduler->state, SCHED_OVER);
    assert_true(other.saves > 1 && other.refused);
    other_done(PARAMO_E_IO);
    assert_true(cluster_run(&stored.c, cluster_over, &stored.c, 10));
    assert_int_equal(stored.c.over_status, PARAMO_E_DATA_LOST);
    log_set_sink(NULL, NULL);
    stored_off();
}

/* A disk that does not answer, not even with an error. */
static void test_silent_store(void **state)
{
    (void)state;
    stored_on(1, 1);
    log_set_sink(stored_log_nothing, NULL);
    other_on(0);
    end_now();
    assert_true(cluster_run(&stored.c, cluster_over, &stored.c, 35));
    assert_int_equal(stored.c.over_status, PARAMO_E_TIMEOUT);
    assert_false(stored.c.nodes[0].ended || stored.c.nodes[1].ended);
    other_done(PARAMO_OK); /* too late */
    cluster_pass(&stored.c, 1);
    assert_false(stored.c.nodes[0].ended && stored.c.nodes[0].ended_status == PARAMO_E_DATA_LOST);
    log_set_sink(NULL, NULL);
    stored_off();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_again),           cmocka_unit_test(test_state_of_an_ended_job),
        cmocka_unit_test(test_end_is_durable_first), cmocka_unit_test(test_end_cannot_be_saved),
        cmocka_unit_test(test_end_without_a_view),   cmocka_unit_test(test_emptied_after_a_late_failure),
        cmocka_unit_test(test_silent_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
