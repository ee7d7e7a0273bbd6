/* STATUS: what an observer is told of nodes, of what servers say of themselves, and of servers that are gone.
 */
#include "cluster/member/member_orders.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/member/admin_query.h"
#include "cluster/meta/store_dir.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_ring.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/support_simcluster.h"
#include "sim/env/simfs.h"
#include "wire/order.h"

enum { SERVERS = 2 };

static struct cluster c;
static struct {
    unsigned asked[SERVERS + 1];
    bool mute, lie; /* server 1 does not answer; tells of one shard too many */
    bool hold;      /* targets do not say that they are full: what they were told is kept */
    struct {
        struct tnode *node;
        uint64_t order;
    } held[64];
    unsigned held_count;
    struct simfs *disk; /* of a scheduler that keeps its state */
    struct blocking_jobs *blocking_jobs;
    bool over;
    paramo_err status;
    struct status answer;
    uint32_t nodes; /* of the view */
} t;

static void report(const struct tnode *node, struct writer *w)
{
    struct shard_report m = {.rows = 100 + (uint64_t)(node - c.nodes), .applied_window_bytes = 7};
    spread_add(&m.pauses, 1000 + (uint64_t)(node - c.nodes));
    shard_report_encode(&m, w);
    if (t.lie && node == &c.nodes[1])
        shard_report_encode(&m, w);
}

/* Servers have no rows here: whatever is to be moved is. */
static void got_order(void *arg, uint64_t order, uint32_t what, struct reader *fields)
{
    struct tnode *node = arg;
    struct writer w = {0};
    (void)fields;
    if (what == ORDER_MIGRATION_TARGET && t.hold) {
        assert_true(t.held_count < 64);
        t.held[t.held_count].node = node;
        t.held[t.held_count++].order = order;
        return;
    }
    if (what == ORDER_REPORT) {
        t.asked[node - c.nodes]++;
        if (t.mute && node == &c.nodes[1])
            return;
        report(node, &w);
    }
    member_order_done(node->member, order, PARAMO_OK, &w);
}

static void start_server(struct tnode *node)
{
    struct member_config config = cluster_member_config(&c, node, PARAMO_ROLE_SERVER);
    config.on_order = got_order;
    config.weight = 1;
    config.shards = 1;
    cluster_start_config(node, &config);
}

static void start(void)
{
    memset(&t, 0, sizeof t);
    cluster_init(&c, 1, SERVERS, 1);
    c.config.replicas = 1;
    cluster_start_scheduler(&c);
    for (uint32_t i = 0; i < SERVERS; i++)
        start_server(&c.nodes[i]);
    cluster_start(&c, &c.nodes[9], PARAMO_ROLE_WORKER);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[9], 5));
    for (uint32_t i = 0; i < SERVERS; i++)
        assert_true(cluster_run(&c, tnode_joined, &c.nodes[i], 5));
}

static void finish(void)
{
    status_fini(&t.answer);
    cluster_fini(&c);
}

static void seen(void *arg, paramo_err status, struct admin_query_result *result)
{
    (void)arg;
    assert_false(t.over);
    assert_int_equal(result->status == NULL, status != PARAMO_OK);
    assert_int_equal(result->view == NULL, status != PARAMO_OK);
    t.over = true;
    t.status = status;
    if (status)
        return;
    t.answer = *result->status;
    t.nodes = result->view->nodes_count;
    free(result->status);
    result->status = NULL;
}

static bool is_over(void *arg)
{
    (void)arg;
    return t.over;
}

/* Takes virtual milliseconds. */
static uint64_t admin_query(void)
{
    struct tnode *node = &c.nodes[10];
    struct admin_query *l;
    struct van *van;
    assert_int_equal(van_sim_create(c.net, "observer", &van), PARAMO_OK);
    struct admin_query_config config = {.van = van,
                                        .lane = node->lane,
                                        .scheduler = "scheduler:1",
                                        .token = "token",
                                        .incarnation = 99,
                                        .deadline = in_seconds(&c, 5),
                                        .status = true,
                                        .done = seen};
    uint64_t begun = in_seconds(&c, 0);
    status_fini(&t.answer);
    t.over = false;
    assert_true(lane_enter(node->lane));
    assert_int_equal(admin_query_start(&config, &l), PARAMO_OK);
    lane_leave(node->lane);
    assert_true(cluster_run(&c, is_over, NULL, 10));
    c.old_vans[c.old_count++] = van;
    return (in_seconds(&c, 0) - begun) / ENV_MS;
}

static const struct status_node *of(uint32_t id)
{
    for (uint32_t i = 0; i < t.answer.nodes_count; i++)
        if (t.answer.nodes[i].id == id)
            return &t.answer.nodes[i];
    fail_msg("no node %u", id);
    return NULL;
}

static void tells_what_servers_say(void **state)
{
    (void)state;
    start();
    assert_in_range(admin_query(), 0, 300);
    assert_int_equal(t.status, PARAMO_OK);
    assert_int_equal(t.nodes, SERVERS + 2); /* and the scheduler */
    assert_int_equal(t.answer.nodes_count, SERVERS + 1);
    assert_int_equal(t.answer.replicas, 1);
    assert_true(t.answer.converged);
    assert_int_equal(t.answer.migrations_count, 0);
    assert_int_equal(t.answer.ckpt.now, STATUS_NO_CKPT);
    for (uint32_t i = 0; i < SERVERS; i++) {
        const struct status_node *n = of(member_id(c.nodes[i].member));
        assert_int_equal(n->state, STATUS_JOINED);
        assert_int_equal(n->shards, 1);
        assert_int_equal(n->shard[0].rows, 100 + i);
        assert_in_range(n->reported_ms, 0, 300);
        assert_int_equal(t.asked[i], 1);
    }
    assert_int_equal(of(member_id(c.nodes[9].member))->reported_ms, STATUS_NEVER);
    assert_int_equal(t.answer.pauses.count, SERVERS);
    finish();
}

static void tells_clocks(void **state)
{
    (void)state;
    struct tnode *worker = &c.nodes[9];
    struct tcall join[2], tell, wait;
    start();
    for (uint32_t i = 0; i < 2; i++) {
        TCALL(worker, &join[i], member_clock_join(worker->member, &join[i].call, i, in_seconds(&c, 5)));
        assert_int_equal(tcall_wait(&c, &join[i]), PARAMO_OK);
    }
    TCALL(worker, &tell,
          member_clock_tell(worker->member, &tell.call, join[1].call.result.session, 7, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &tell), PARAMO_OK);
    TCALL(worker, &wait,
          member_clock_wait(worker->member, &wait.call, join[1].call.result.session, 7, in_seconds(&c, 60)));
    cluster_pass(&c, 2);
    (void)admin_query();
    assert_int_equal(t.status, PARAMO_OK);
    const struct status_clocks *of_worker = &of(member_id(worker->member))->clocks;
    assert_int_equal(of_worker->workers, 2);
    assert_int_equal(of_worker->lowest, 0);
    assert_int_equal(of_worker->highest, 7);
    assert_int_equal(of_worker->waits, 1);
    assert_in_range(of_worker->waited_ms, 1500, 3500);
    assert_int_equal(of(member_id(c.nodes[0].member))->clocks.workers, 0);

    TCALL(worker, &tell,
          member_clock_tell(worker->member, &tell.call, join[0].call.result.session, 9, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &tell), PARAMO_OK);
    assert_int_equal(tcall_wait(&c, &wait), PARAMO_OK);
    (void)admin_query();
    of_worker = &of(member_id(worker->member))->clocks;
    assert_int_equal(of_worker->lowest, 7);
    assert_int_equal(of_worker->highest, 9);
    assert_int_equal(of_worker->waits, 0);
    assert_int_equal(of_worker->waited_ms, 0);
    finish();
}

/* ---- settled: the next server may be taken down ------------------------------------------------------- */

static void scheduler_on(void)
{
    assert_int_equal(blocking_jobs_create(sim_env(c.sim), "files", &t.blocking_jobs), PARAMO_OK);
    cluster_find_state(&c, t.disk, "/d/state", t.blocking_jobs);
    cluster_start_scheduler(&c);
}

static void scheduler_off(void)
{
    cluster_kill_scheduler(&c);
    blocking_jobs_destroy(t.blocking_jobs);
    cluster_pass(&c, 0.001);
}

static void start_with_state(void)
{
    memset(&t, 0, sizeof t);
    cluster_init(&c, 1, SERVERS, 1);
    c.config.replicas = 1;
    assert_int_equal(simfs_create(1, &t.disk), PARAMO_OK);
    assert_int_equal(fs_make_dir(simfs_fs(t.disk), "/d"), PARAMO_OK);
    scheduler_on();
    for (uint32_t i = 0; i < SERVERS; i++)
        start_server(&c.nodes[i]);
    cluster_start(&c, &c.nodes[9], PARAMO_ROLE_WORKER);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[9], 5));
}

static void finish_with_state(void)
{
    for (unsigned i = 0; i < CLUSTER_NODES; i++)
        cluster_kill(&c.nodes[i]);
    scheduler_off();
    simfs_destroy(t.disk);
    finish();
}

static bool converged(void)
{
    (void)admin_query();
    assert_true(t.status == PARAMO_OK || t.status == PARAMO_E_AGAIN); /* AGAIN: it has not announced a view */
    return !t.status && t.answer.converged;
}

/* If that server died now, would each partition have a member that is here and has all of its rows? */
static bool may_die(const struct tnode *node)
{
    const struct scheduler *s = c.scheduler;
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        bool left = false;
        for (unsigned l = 0; l <= s->ring->chains.replicas; l++) {
            uint16_t shard = s->ring->chains.level[l].owner[a];
            const struct sched_node *other =
                shard == RING_NONE ? NULL : sched_roster_find(s, s->ring->shards[shard].node);
            for (unsigned i = 0; other && i < CLUSTER_NODES; i++)
                left |= &c.nodes[i] != node && c.nodes[i].member &&
                        member_id(c.nodes[i].member) == other->info.id;
        }
        if (!left)
            return false;
    }
    return true;
}

static void check_may_die(void)
{
    for (unsigned i = 0; i < CLUSTER_NODES; i++)
        if (c.nodes[i].member && c.nodes[i].role == PARAMO_ROLE_SERVER)
            assert_true(may_die(&c.nodes[i]));
}

/* A scheduler that was started again knows of no server before it has registered: one may have died by then. */
static void converged_after_a_restart(void **state)
{
    (void)state;
    start_with_state();
    assert_true(converged());
    check_may_die();
    scheduler_off();
    scheduler_on();
    assert_false(converged()); /* no node has registered yet */
    cluster_pass(&c, 5);
    assert_true(converged());
    scheduler_off();
    uint32_t dead = member_id(c.nodes[1].member), absent = 0;
    cluster_kill(&c.nodes[1]);
    scheduler_on();
    for (unsigned i = 0; i < 25; i++) { /* absent, then dead; the copy is missing in either case */
        assert_false(converged());
        absent += !t.status && of(dead)->state == STATUS_ABSENT;
        cluster_pass(&c, 0.5);
    }
    assert_int_equal(of(dead)->state, STATUS_DEAD);
    assert_true(absent >= 3);
    start_server(&c.nodes[2]);
    cluster_pass(&c, 5);
    assert_true(converged());
    check_may_die();
    finish_with_state();
}

/* It does not converge while partitions migrate either, though every partition has its copies: the view that has them
 * may not be announced yet. */
static void converged_when_nothing_migrates(void **state)
{
    (void)state;
    start();
    t.hold = true;
    start_server(&c.nodes[2]);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[2], 5));
    cluster_pass(&c, 1);
    assert_true(t.held_count > 0);
    assert_false(converged());
    assert_true(t.answer.migrations_count > 0);
    t.hold = false;
    for (unsigned i = 0; i < t.held_count; i++) {
        tnode_enter(t.held[i].node);
        member_order_done(t.held[i].node->member, t.held[i].order, PARAMO_OK, NULL);
        tnode_leave(t.held[i].node);
    }
    cluster_pass(&c, 5);
    assert_true(converged());
    check_may_die();
    cluster_kill(&c.nodes[2]); /* the others have all, and fill up each other */
    cluster_pass(&c, 0.1);
    assert_false(converged()); /* its connection is lost, and it may be back */
    cluster_pass(&c, 5);
    assert_true(converged());
    check_may_die();
    cluster_kill(&c.nodes[0]);
    cluster_pass(&c, 5);
    assert_false(converged()); /* one server is too few for a copy, though there is nothing to be done */
    assert_int_equal(t.answer.migrations_count, 0);
    finish();
}

/* A server that is silent, or reports nonsense, is shown with its last report; it is asked once, however often
 * clients ask. */
static void does_not_wait_for_ever(void **state)
{
    (void)state;
    start();
    (void)admin_query();
    t.mute = true;
    assert_in_range(admin_query(), 900, 1500);
    assert_in_range(admin_query(), 900, 1500);
    assert_int_equal(t.asked[1], 2);
    assert_int_equal(t.asked[0], 3);
    const struct status_node *n = of(member_id(c.nodes[1].member));
    assert_int_equal(n->shards, 1);
    assert_in_range(n->reported_ms, 1800, 3500);
    t.mute = false;
    finish();

    start();
    t.lie = true;
    assert_in_range(admin_query(), 0, 300);
    assert_int_equal(of(member_id(c.nodes[1].member))->shards, 0);
    assert_int_equal(of(member_id(c.nodes[0].member))->shards, 1);
    finish();
}

static bool has_left(void *arg)
{
    (void)arg;
    return c.nodes[1].ended;
}

/* One that is drained says last what it has, and its pauses are counted on. One that dies: as it said last.
 */
static void the_gone_are_remembered(void **state)
{
    (void)state;
    struct tcall call;
    start();
    uint32_t id = member_id(c.nodes[1].member);
    tcall_init(&call);
    tnode_enter(&c.nodes[1]);
    assert_int_equal(member_drain(c.nodes[1].member, &call.call, in_seconds(&c, 10)), PARAMO_OK);
    tnode_leave(&c.nodes[1]);
    assert_true(cluster_run(&c, has_left, NULL, 20));
    assert_int_equal(c.nodes[1].ended_status, PARAMO_OK);
    assert_int_equal(t.asked[1], 1);
    assert_in_range(admin_query(), 0, 300);
    assert_int_equal(t.asked[1], 1);
    assert_int_equal(of(id)->state, STATUS_LEFT);
    assert_int_equal(of(id)->shards, 0);
    assert_int_equal(t.answer.pauses.count, SERVERS);
    assert_int_equal(t.answer.pauses.max, 1001);
    finish();

    start();
    id = member_id(c.nodes[1].member);
    (void)admin_query();
    cluster_kill(&c.nodes[1]);
    cluster_pass(&c, 2);
    (void)admin_query();
    assert_int_equal(of(id)->state, STATUS_DEAD);
    assert_int_equal(t.answer.pauses.count, SERVERS);
    finish();
}

/* A drain does not hang on a server that cannot report; and before the job is complete there is nothing. */
static void not_needed(void **state)
{
    (void)state;
    struct tcall call;
    start();
    t.lie = true;
    tcall_init(&call);
    tnode_enter(&c.nodes[1]);
    assert_int_equal(member_drain(c.nodes[1].member, &call.call, in_seconds(&c, 10)), PARAMO_OK);
    tnode_leave(&c.nodes[1]);
    assert_true(cluster_run(&c, has_left, NULL, 20));
    finish();

    memset(&t, 0, sizeof t);
    cluster_init(&c, 1, 1, 1);
    cluster_start_scheduler(&c);
    (void)admin_query();
    assert_int_equal(t.status, PARAMO_E_AGAIN);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_what_servers_say),
        cmocka_unit_test(tells_clocks),
        cmocka_unit_test(converged_after_a_restart),
        cmocka_unit_test(converged_when_nothing_migrates),
        cmocka_unit_test(does_not_wait_for_ever),
        cmocka_unit_test(the_gone_are_remembered),
        cmocka_unit_test(not_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
