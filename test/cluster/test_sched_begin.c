/* The load with which a job begins: after a failure that may pass it is carried out again, from the start. */
#include "cluster/checkpoint/ckpt.h"
#include "cluster/member/member_orders.h"
#include "cluster/support_ckpt_job.h"

#include <stdio.h>
#include <string.h>

#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_ckpt.h"
#include "cluster/scheduler/sched_roster.h"
#include "wire/status.h"

enum { NEWCOMER = CKPT_SERVERS + 1, TRIES = 61 };

/* A checkpoint is there, with a table and a value; the next job begins with it. */
static void begins(uint32_t replicas)
{
    struct tcall call;
    double two = 2;
    ckpt_job.replicas = replicas;
    ckpt_on_joined();
    ckpt_open_table("t");
    TCALL(ckpt_worker(), &call,
          member_kv_add(ckpt_worker()->member, &call.call, "sum", &two, 1, in_seconds(&ckpt_job.c, 5)));
    assert_int_equal(ckpt_answered(&call), PARAMO_OK);
    assert_int_equal(ckpt_save(&call), PARAMO_OK);
    ckpt_off();
    ckpt_on(CKPT_DIR);
}

static void ends(void)
{
    ckpt_off();
    ckpt_disk_end();
}

static double sum_plus(struct tnode *node, double more)
{
    struct tcall call;
    double sum;
    TCALL(node, &call, member_kv_add(node->member, &call.call, "sum", &more, 1, in_seconds(&ckpt_job.c, 5)));
    assert_int_equal(ckpt_answered(&call), PARAMO_OK);
    TCALL(node, &call, member_kv_get(node->member, &call.call, "sum", in_seconds(&ckpt_job.c, 5)));
    assert_int_equal(ckpt_answered(&call), PARAMO_OK);
    memcpy(&sum, call.value, sizeof sum);
    return sum;
}

static bool all_hold(void *arg)
{
    (void)arg;
    return ckpt_job.held[0] && (ckpt_job.held[1] || ckpt_one_is_dead(NULL));
}

static void answer(unsigned i, paramo_err status)
{
    uint64_t order = ckpt_job.held[i];
    assert_int_not_equal(order, 0);
    ckpt_job.held[i] = 0;
    tnode_enter(&ckpt_job.c.nodes[i]);
    member_order_done(ckpt_job.c.nodes[i].member, order, status ? err_set(status, "so it is") : PARAMO_OK,
                      NULL);
    tnode_leave(&ckpt_job.c.nodes[i]);
}

static enum status_ckpt phase(void)
{
    struct status m = {0};
    assert_true(lane_enter(ckpt_job.c.lane));
    sched_ckpt_status(ckpt_job.c.scheduler, &m);
    lane_leave(ckpt_job.c.lane);
    return m.ckpt.now;
}

static paramo_err asked_by_a_server(bool load)
{
    struct tcall call;
    struct tnode *node = &ckpt_job.c.nodes[0];
    uint64_t deadline = in_seconds(&ckpt_job.c, 20);
    TCALL(node, &call,
          load ? member_ckpt_load(node->member, &call.call, CKPT_DIR, 0, deadline)
               : member_ckpt_save(node->member, &call.call, CKPT_DIR, false, deadline));
    return ckpt_answered(&call);
}

/* A server dies while both load, and a copy takes over. The workers join when all is loaded by those that are left;
 * nothing else is saved, loaded or migrated before. */
static void a_copy_takes_over(void **state)
{
    (void)state;
    begins(1);
    ckpt_job.wait = true;
    assert_true(cluster_run(&ckpt_job.c, all_hold, NULL, 20));
    ckpt_start_server(NEWCOMER);
    assert_true(cluster_run(&ckpt_job.c, tnode_joined, &ckpt_job.c.nodes[NEWCOMER], 5));
    cluster_kill(&ckpt_job.c.nodes[1]);
    assert_true(cluster_run(&ckpt_job.c, ckpt_one_is_dead, NULL, 30));
    cluster_pass(&ckpt_job.c, 1);
    assert_int_equal(ckpt_job.loads, CKPT_SERVERS); /* server 0 still carries the first out */
    answer(0, PARAMO_E_CANCELLED);
    cluster_pass(&ckpt_job.c, 0.1);
    assert_int_equal(phase(), STATUS_LOADING);
    assert_int_equal(asked_by_a_server(false), PARAMO_E_AGAIN);
    assert_int_equal(asked_by_a_server(true), PARAMO_E_AGAIN);
    assert_true(cluster_run(&ckpt_job.c, all_hold, NULL, 5));
    assert_int_equal(ckpt_job.loads, CKPT_SERVERS + 2);
    assert_false(ckpt_job.c.over || ckpt_worker()->joined);
    assert_int_equal(ckpt_job.goes, 0);
    assert_int_equal(ckpt_job.sources, 0);
    answer(0, PARAMO_OK);
    answer(NEWCOMER, PARAMO_OK);
    assert_true(cluster_run(&ckpt_job.c, tnode_joined, ckpt_worker(), 5));
    assert_int_equal(ckpt_worker()->joined_status, PARAMO_OK);
    assert_int_equal(ckpt_job.goes, 2);
    cluster_pass(&ckpt_job.c, 2);
    assert_true(ckpt_job.sources > 0);
    assert_int_equal(phase(), STATUS_NO_CKPT);
    ends();
}

/* The copy takes over after the dead server has loaded: no order is open there, but the owners have changed. */
static void owners_change_at_the_end(void **state)
{
    (void)state;
    begins(1);
    ckpt_job.wait = true;
    assert_true(cluster_run(&ckpt_job.c, all_hold, NULL, 20));
    answer(1, PARAMO_OK);
    cluster_kill(&ckpt_job.c.nodes[1]);
    assert_true(cluster_run(&ckpt_job.c, ckpt_one_is_dead, NULL, 30));
    answer(0, PARAMO_OK);
    assert_true(cluster_run(&ckpt_job.c, all_hold, NULL, 5));
    assert_int_equal(ckpt_job.loads, CKPT_SERVERS + 1);
    assert_false(ckpt_job.c.over || ckpt_worker()->joined);
    answer(0, PARAMO_OK);
    assert_true(cluster_run(&ckpt_job.c, tnode_joined, ckpt_worker(), 5));
    assert_int_equal(ckpt_worker()->joined_status, PARAMO_OK);
    ends();
}

/* Without copies the rows have no owner: the job ends. */
static void no_copy_takes_over(void **state)
{
    (void)state;
    begins(0);
    ckpt_job.wait = true;
    assert_true(cluster_run(&ckpt_job.c, all_hold, NULL, 20));
    cluster_kill(&ckpt_job.c.nodes[1]);
    assert_true(cluster_run(&ckpt_job.c, cluster_over, &ckpt_job.c, 30));
    assert_int_equal(ckpt_job.c.over_status, PARAMO_E_NODE_LOST);
    assert_non_null(strstr(ckpt_job.c.over_text, CKPT_DIR " was not loaded: server 1"));
    assert_int_equal(ckpt_job.loads, CKPT_SERVERS);
    ends();
}

static void not_for_ever(void **state)
{
    (void)state;
    begins(0);
    ckpt_job.cannot = PARAMO_E_AGAIN;
    assert_true(cluster_run(&ckpt_job.c, cluster_over, &ckpt_job.c, 120));
    assert_int_equal(ckpt_job.c.over_status, PARAMO_E_AGAIN);
    assert_int_equal(ckpt_job.loads, TRIES * CKPT_SERVERS);
    assert_false(ckpt_worker()->joined && !ckpt_worker()->joined_status);
    ends();
}

/* A server does not answer: the bound is a time, not only a number of tries. */
static void not_longer_than_a_day(void **state)
{
    (void)state;
    begins(0);
    ckpt_job.wait = true;
    assert_true(cluster_run(&ckpt_job.c, all_hold, NULL, 20));
    answer(0, PARAMO_E_AGAIN);
    cluster_pass(&ckpt_job.c, 10);
    assert_false(ckpt_job.c.over);
    assert_int_equal(ckpt_job.loads, CKPT_SERVERS); /* server 1 has the first one still */
    assert_true(lane_enter(ckpt_job.c.lane));
    ckpt_job.c.scheduler->ckpts->begin.until = lane_now(ckpt_job.c.lane) + ENV_SEC; /* the day is over */
    lane_leave(ckpt_job.c.lane);
    assert_true(cluster_run(&ckpt_job.c, cluster_over, &ckpt_job.c, 30));
    assert_int_equal(ckpt_job.c.over_status, PARAMO_E_TIMEOUT);
    ends();
}

static void an_error_that_stays(void **state)
{
    (void)state;
    begins(0);
    ckpt_job.cannot = PARAMO_E_CORRUPT;
    assert_true(cluster_run(&ckpt_job.c, cluster_over, &ckpt_job.c, 120));
    assert_int_equal(ckpt_job.c.over_status, PARAMO_E_CORRUPT);
    assert_int_equal(ckpt_job.loads, CKPT_SERVERS);
    ends();
}

static bool loaded_once(void *arg)
{
    (void)arg;
    return ckpt_job.loads == CKPT_SERVERS;
}

/* The first try has restored the values. Those that a server sets after it stay. */
static void values_between_two_tries(void **state)
{
    (void)state;
    begins(0);
    ckpt_job.cannot = PARAMO_E_AGAIN;
    assert_true(cluster_run(&ckpt_job.c, loaded_once, NULL, 20));
    assert_true(sum_plus(&ckpt_job.c.nodes[0], 3) == 5);
    ckpt_job.cannot = PARAMO_OK;
    assert_true(cluster_run(&ckpt_job.c, tnode_joined, ckpt_worker(), 5));
    assert_int_equal(ckpt_job.loads, 2 * CKPT_SERVERS);
    assert_true(sum_plus(ckpt_worker(), 0) == 5);
    ends();
}

/* All tries load the same checkpoint. If it is gone, the one before is not loaded over its rows. */
static void the_checkpoint_goes(void **state)
{
    (void)state;
    struct tcall call;
    begins(0);
    assert_true(cluster_run(&ckpt_job.c, tnode_joined, ckpt_worker(), 20));
    assert_int_equal(ckpt_save(&call), PARAMO_OK);
    ckpt_off();
    ckpt_on(CKPT_DIR);
    ckpt_job.cannot = PARAMO_E_AGAIN;
    assert_true(cluster_run(&ckpt_job.c, loaded_once, NULL, 20));
    assert_int_equal(ckpt_job.order.number, 2);
    assert_int_equal(fs_unlink(simfs_fs(ckpt_job.disk), CKPT_DIR "/00000002/manifest"), PARAMO_OK);
    ckpt_job.cannot = PARAMO_OK;
    assert_true(cluster_run(&ckpt_job.c, cluster_over, &ckpt_job.c, 20));
    assert_int_equal(ckpt_job.c.over_status, PARAMO_E_NOT_FOUND);
    assert_int_equal(ckpt_job.loads, CKPT_SERVERS);
    ends();
}

/* The scheduler dies between two tries: the next one knows that the load is due. */
static void killed_between_two_tries(void **state)
{
    (void)state;
    begins(0);
    ckpt_off();
    ckpt_job.keeps = true;
    ckpt_on(CKPT_DIR);
    ckpt_job.cannot = PARAMO_E_AGAIN;
    assert_true(cluster_run(&ckpt_job.c, loaded_once, NULL, 20));
    cluster_pass(&ckpt_job.c, 0.1);
    ckpt_scheduler_off();
    assert_int_equal(ckpt_job.loads, CKPT_SERVERS);
    ckpt_job.cannot = PARAMO_OK;
    ckpt_scheduler_on();
    assert_true(cluster_run(&ckpt_job.c, tnode_joined, ckpt_worker(), 20));
    assert_int_equal(ckpt_job.loads, 2 * CKPT_SERVERS);
    assert_true(sum_plus(ckpt_worker(), 0) == 2);
    ends();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_takes_over),        cmocka_unit_test(owners_change_at_the_end),
        cmocka_unit_test(no_copy_takes_over),       cmocka_unit_test(not_for_ever),
        cmocka_unit_test(not_longer_than_a_day),    cmocka_unit_test(an_error_that_stays),
        cmocka_unit_test(values_between_two_tries), cmocka_unit_test(the_checkpoint_goes),
        cmocka_unit_test(killed_between_two_tries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
