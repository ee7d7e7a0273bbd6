/* The scheduler brings chains to what is wanted, by orders to servers that do as they are told here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/member/member_orders.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_announce.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_orders.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/support_simcluster.h"
#include "wire/migration_order.h"
#include "wire/order.h"

enum { SERVERS = 4, NODES = SERVERS + 2, UNKNOWN_ORDER = 77 };

static struct cluster c;
static struct {
    unsigned gives, takes, pauses, commits, aborts;
    bool mute;                   /* the next take is not answered */
    bool refuse;                 /* takes fail */
    uint64_t last;               /* move that was ordered */
    struct tnode *holder;        /* has not answered ... */
    uint64_t held;               /* ... this order, */
    uint64_t migration;          /* of this move */
    struct tnode *source_server; /* of that; it leaves other orders unanswered */
    unsigned ends;               /* of that move, which it has had */
    uint64_t orders[ORDERS_WINDOW];
    unsigned orders_count;
} t;

static bool is_me(const struct tnode *node, const struct migration_shard *shard)
{
    return shard->node == member_id(node->member);
}

static void got_order(void *arg, uint64_t order, uint32_t what, struct reader *fields)
{
    struct tnode *node = arg;
    struct migration_order m;
    paramo_err status = PARAMO_OK;
    if (what == ORDER_REPORT) { /* before it goes */
        member_order_done(node->member, order, err_set(PARAMO_E_UNSUPPORTED, "nothing to report"), NULL);
        return;
    }
    if (what == UNKNOWN_ORDER) {
        t.orders[t.orders_count++] = order;
        return;
    }
    assert_int_equal(migration_order_decode(fields, &m), PARAMO_OK);
    switch (what) {
    case ORDER_MIGRATION_SOURCE:
        assert_true(is_me(node, &m.from) && m.kib_per_s > 0);
        t.gives++;
        t.last = m.id;
        break;
    case ORDER_MIGRATION_TARGET:
        assert_true(is_me(node, &m.to));
        t.takes++;
        if (t.mute) {
            t.mute = false;
            t.holder = node;
            t.held = order;
            t.migration = m.id;
            for (unsigned i = 0; i < SERVERS; i++)
                if (c.nodes[i].member && is_me(&c.nodes[i], &m.from))
                    t.source_server = &c.nodes[i];
            return;
        }
        if (t.refuse)
            status = err_set(PARAMO_E_MEMORY, "there is no room");
        break;
    case ORDER_MIGRATION_PAUSE:
        assert_true(is_me(node, &m.from));
        t.pauses++;
        break;
    default:
        assert_int_equal(what, ORDER_MIGRATION_END);
        assert_true(is_me(node, &m.from) || is_me(node, &m.to));
        *(m.committed ? &t.commits : &t.aborts) += 1;
        t.ends += m.id == t.migration && node == t.source_server;
        if (m.committed) { /* it has the view that says so */
            const struct view *view = member_view(node->member);
            int to = view_shard_index(view, m.to.node, m.to.index);
            bool in = false;
            for (unsigned l = 0; l < RING_LEVELS; l++)
                in |= view->chains.level[l].owner[m.first] == to;
            assert_true(to >= 0 && in);
        }
    }
    member_order_done(node->member, order, status, NULL);
}

/* shards 0: as many as others. */
static void start_server(struct tnode *node, uint16_t shards)
{
    struct member_config config = cluster_member_config(&c, node, PARAMO_ROLE_SERVER);
    config.on_order = got_order;
    config.shards = shards ? shards : config.shards;
    cluster_start_config(node, &config);
}

static void start(uint32_t replicas)
{
    memset(&t, 0, sizeof t);
    cluster_init(&c, 1, SERVERS, 1);
    c.config.replicas = replicas;
    cluster_start_scheduler(&c);
    for (uint32_t i = 0; i < SERVERS; i++)
        start_server(&c.nodes[i], 0);
    cluster_start(&c, &c.nodes[SERVERS], PARAMO_ROLE_WORKER);
    for (uint32_t i = 0; i <= SERVERS; i++)
        assert_true(cluster_run(&c, tnode_joined, &c.nodes[i], 5));
    struct tcall call;
    paramo_table_options options = {.size = sizeof options, .dim = 1};
    tcall_init(&call);
    tnode_enter(&c.nodes[SERVERS]);
    assert_int_equal(
        member_table_open(c.nodes[SERVERS].member, &call.call, "w", &options, in_seconds(&c, 10)), PARAMO_OK);
    tnode_leave(&c.nodes[SERVERS]);
    assert_true(cluster_run(&c, tcall_done, &call, 10));
}

/* The view of this node has this number of copies of every partition, and this number of partitions owned by the
 * server. */
static uint32_t check_full(unsigned members, uint32_t server)
{
    const struct view *view = member_view(c.nodes[SERVERS].member);
    uint32_t owned = 0;
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        for (unsigned l = 0; l < RING_LEVELS; l++)
            assert_int_equal(view->chains.level[l].owner[a] != RING_NONE, l < members);
        owned += view->shards[view_ring(view)->owner[a]].node == server;
    }
    return owned;
}

/* One death took the rows of these partitions; what migrated since, by the death, a join or a drain, lost none. */
static void check_gone(const struct view *before, uint32_t dead)
{
    const struct view *view = member_view(c.nodes[SERVERS].member);
    uint64_t gone = 0;
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        bool its = before->shards[view_ring(before)->owner[a]].node == dead;
        assert_true(its == (view->owner_gone[a] != 0));
        gone = its && !gone ? view->owner_gone[a] : gone;
        assert_true(!its || view->owner_gone[a] == gone);
    }
    assert_true(gone > before->number);
}

static bool converged(void *arg)
{
    (void)arg;
    return migrations_converged(&c.scheduler->migrations->machine) && !c.scheduler->migrations->notes;
}

static void copies_are_made_again(void **state)
{
    (void)state;
    for (uint32_t replicas = 1; replicas <= 2; replicas++) {
        start(replicas);
        uint32_t dead = member_id(c.nodes[1].member);
        struct view *before = view_ref(member_view(c.nodes[SERVERS].member));
        cluster_kill(&c.nodes[1]);
        cluster_pass(&c, 0.5);
        assert_true(cluster_run(&c, converged, NULL, 20));
        cluster_pass(&c, 1);
        assert_int_equal(check_full(1 + replicas, dead), 0);
        assert_true(t.gives > 0 && t.gives == t.takes);
        assert_in_range(t.commits, 2 * t.gives, 2 * (t.gives + t.pauses));
        assert_int_equal(t.commits % 2, 0);
        assert_int_equal(t.aborts, 0);
        check_gone(before, dead);

        unsigned pauses = t.pauses;
        start_server(&c.nodes[1], 0); /* in the dead one's place: gets its share again */
        assert_true(cluster_run(&c, tnode_joined, &c.nodes[1], 5));
        assert_true(cluster_run(&c, converged, NULL, 20));
        cluster_pass(&c, 1);
        assert_in_range(check_full(1 + replicas, dead), RING_PARTITIONS / SERVERS - 2,
                        RING_PARTITIONS / SERVERS + 2);
        assert_true(t.pauses > pauses);
        check_gone(before, dead);
        view_unref(before);
        assert_false(c.over);
        cluster_fini(&c);
    }
}

/* A target that cannot: nothing is lost by it, and it is asked again after a while. */
static void a_failure_is_tried_again(void **state)
{
    (void)state;
    start(1);
    t.refuse = true;
    cluster_kill(&c.nodes[0]);
    cluster_pass(&c, 5);
    assert_in_range(t.takes, 2, 60); /* not as fast as it can */
    assert_int_equal(t.commits, 2 * t.pauses);
    assert_true(t.aborts > 0);
    t.refuse = false;
    assert_true(cluster_run(&c, converged, NULL, 20));
    cluster_pass(&c, 1);
    (void)check_full(2, 0);
    cluster_fini(&c);
}

/* The target dies while it gets rows; then the source does. */
static void sides_die(void **state)
{
    (void)state;
    start(2);
    t.mute = true;
    cluster_kill(&c.nodes[0]);
    cluster_pass(&c, 2);
    assert_non_null(t.holder);
    cluster_kill(t.holder);
    cluster_pass(&c, 2);
    assert_true(cluster_run(&c, converged, NULL, 20));
    cluster_pass(&c, 1);
    (void)check_full(2, 0); /* two processes are left */
    assert_true(t.aborts > 0);
    assert_false(c.over);
    cluster_fini(&c);
}

static bool all_migrated(void *arg)
{
    (void)arg;
    return migrations_converged(&c.scheduler->migrations->machine);
}

static void nothing(void *arg, struct sched_node *node, paramo_err status, struct reader *result)
{
    (void)arg, (void)node, (void)status, (void)result;
}

/* A node has seen a view of a later term: servers take what comes above it for another scheduler's, and let
 * go of moves. Nothing of these is committed. */
static void a_view_of_a_later_term(void **state)
{
    (void)state;
    const uint64_t term = 9;
    start(1);
    t.mute = true;
    cluster_kill(&c.nodes[0]);
    cluster_pass(&c, 1);
    assert_non_null(t.holder);
    assert_int_equal(t.aborts, 0);
    assert_true(lane_enter(c.lane));
    struct store *none = c.scheduler->config.store;
    c.scheduler->config.store = (struct store *)&c; /* it must only look as if there were one */
    assert_int_equal(sched_announce_above(c.scheduler, (term << 32) + 1), PARAMO_OK);
    c.scheduler->config.store = none;
    struct writer fields = {0}; /* what has not been answered is not in the way of more */
    struct sched_node *holder = sched_roster_find(c.scheduler, member_id(t.holder->member));
    assert_int_equal(sched_order_issue(holder, ORDER_REPORT, &fields, nothing, NULL), PARAMO_OK);
    lane_leave(c.lane);
    tnode_enter(t.holder);
    member_order_done(t.holder->member, t.held, PARAMO_OK, NULL); /* too late */
    tnode_leave(t.holder);
    assert_true(cluster_run(&c, all_migrated, NULL, 20));
    cluster_pass(&c, 1);
    assert_true(t.aborts > 0);
    assert_int_equal(t.last >> 32, term);
    (void)check_full(2, 0);
    cluster_fini(&c);
}

/* The source has the limit of unanswered orders. The migration ends before there is room for another order, and
 * nothing else waits for it. */
static void the_end_is_told_later(void **state)
{
    (void)state;
    start(1);
    t.mute = true;
    cluster_kill(&c.nodes[0]);
    cluster_pass(&c, 1);
    assert_true(t.holder && t.source_server && t.holder != t.source_server);
    assert_true(lane_enter(c.lane));
    struct sched_node *source_server = sched_roster_find(c.scheduler, member_id(t.source_server->member));
    for (paramo_err err = PARAMO_OK; !err;) {
        struct writer none = {0};
        err = sched_order_issue(source_server, UNKNOWN_ORDER, &none, nothing, NULL);
        assert_true(!err || err == PARAMO_E_FULL);
    }
    lane_leave(c.lane);
    cluster_pass(&c, 1);
    cluster_kill(t.holder);
    cluster_pass(&c, 3);
    assert_int_equal(t.ends, 0);
    tnode_enter(t.source_server);
    for (unsigned i = 0; i < t.orders_count; i++)
        member_order_done(t.source_server->member, t.orders[i], PARAMO_OK, NULL);
    tnode_leave(t.source_server);
    cluster_pass(&c, 0.1);
    assert_int_equal(t.ends, 1);
    assert_true(cluster_run(&c, converged, NULL, 20));
    cluster_pass(&c, 1);
    assert_int_equal(t.ends, 1);
    (void)check_full(2, 0);
    cluster_fini(&c);
}

static void drain(struct tnode *node)
{
    struct tcall call;
    tcall_init(&call);
    tnode_enter(node);
    assert_int_equal(member_drain(node->member, &call.call, in_seconds(&c, 5)), PARAMO_OK);
    tnode_leave(node);
    assert_true(cluster_run(&c, tcall_done, &call, 5));
    assert_int_equal(call.status, PARAMO_OK);
    assert_true(cluster_run(&c, tnode_ended, node, 20));
}

/* The place of one that has left, or of a dead one whose rows others have, is for its like; one of another
 * number of shards is one more. */
static void others_are_more(void **state)
{
    (void)state;
    start(1);
    struct tnode *more = &c.nodes[SERVERS + 1];
    drain(&c.nodes[1]);
    start_server(more, 3);
    assert_true(cluster_run(&c, tnode_joined, more, 10));
    assert_int_equal(more->joined_status, PARAMO_OK);
    assert_int_equal(member_rank(more->member), SERVERS);
    assert_true(cluster_run(&c, converged, NULL, 20));
    cluster_kill(&c.nodes[1]);
    start_server(&c.nodes[1], 0);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[1], 10));
    assert_int_equal(member_rank(c.nodes[1].member), 1);
    assert_true(cluster_run(&c, converged, NULL, 20));
    cluster_kill(more);
    cluster_pass(&c, 1);
    assert_true(cluster_run(&c, converged, NULL, 20));
    start_server(more, 4);
    assert_true(cluster_run(&c, tnode_joined, more, 10));
    assert_int_equal(more->joined_status, PARAMO_OK);
    assert_int_equal(member_rank(more->member), SERVERS + 1);
    assert_true(cluster_run(&c, converged, NULL, 20));
    cluster_pass(&c, 1);
    (void)check_full(2, 0);
    assert_false(c.over);
    cluster_fini(&c);
}

/* One server has left, and its place is free. The other is killed, and started again before its death is known: it
 * waits for its own place, for which no other server would come. */
static void a_restarted_server_gets_its_own_place(void **state)
{
    (void)state;
    start(1);
    drain(&c.nodes[0]);
    cluster_kill(&c.nodes[1]);
    start_server(&c.nodes[1], 0);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[1], 10));
    assert_int_equal(c.nodes[1].joined_status, PARAMO_OK);
    assert_int_equal(member_rank(c.nodes[1].member), 1);
    cluster_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_made_again),
        cmocka_unit_test(a_failure_is_tried_again),
        cmocka_unit_test(sides_die),
        cmocka_unit_test(others_are_more),
        cmocka_unit_test(a_restarted_server_gets_its_own_place),
        cmocka_unit_test(the_end_is_told_later),
        cmocka_unit_test(a_view_of_a_later_term),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
