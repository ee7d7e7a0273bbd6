/* Orders of the scheduler to its members: carried out once, answered once, whatever the network does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/member/member_orders.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_departure.h"
#include "cluster/scheduler/sched_orders.h"
#include "cluster/scheduler/sched_peers.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_view.h"
#include "cluster/support_simcluster.h"
#include "sim/van/simnet.h"
#include "wire/order.h"

enum { ORDERS = 200 };

static struct cluster c;

static struct {
    struct tnode *node;
    unsigned heard[ORDERS], done[ORDERS];
    uint64_t id[ORDERS];
    bool wait;        /* the member answers later */
    unsigned lacking; /* so often it has no memory for the next */
    paramo_err status;
    char text[256];
} t;

static bool all_done(void *arg)
{
    for (unsigned i = 0; i < *(unsigned *)arg; i++)
        if (!t.done[i])
            return false;
    return true;
}

static void got_order(void *arg, uint64_t order, uint32_t what, struct reader *fields)
{
    struct tnode *node = arg;
    uint64_t i = read_u64(fields);
    struct writer result = {0};
    assert_true(i < ORDERS && reader_done(fields));
    assert_int_equal(what, 77);
    if (t.lacking) {
        t.lacking--;
        member_order_later(node->member, order);
        return;
    }
    t.heard[i]++;
    t.id[i] = order;
    write_u64(&result, 3 * i);
    if (t.wait)
        writer_fini(&result);
    else if (i % 3 == 2)
        member_order_done(node->member, order, err_set(PARAMO_E_IO, "order %u cannot be done", (unsigned)i),
                          &result);
    else
        member_order_done(node->member, order, PARAMO_OK, &result);
}

static void order_done(void *arg, struct sched_node *node, paramo_err status, struct reader *result)
{
    unsigned i = (unsigned)(uintptr_t)arg;
    assert_non_null(node);
    t.done[i]++;
    t.status = status;
    snprintf(t.text, sizeof t.text, "%s", status ? err_text() : "");
    if (!status) {
        assert_int_equal(read_u64(result), 3 * i);
        assert_true(reader_done(result));
    }
}

static struct sched_node *first_server(void)
{
    return c.scheduler->roster->slots[SLOTS_SERVERS].node[0];
}

static paramo_err issue(unsigned i)
{
    struct writer fields = {0};
    write_u64(&fields, i);
    assert_true(lane_enter(c.lane));
    paramo_err err = sched_order_issue(first_server(), 77, &fields, order_done, (void *)(uintptr_t)i);
    lane_leave(c.lane);
    return err;
}

static void start(uint64_t seed, bool orders)
{
    memset(&t, 0, sizeof t);
    cluster_init(&c, seed, 1, 1);
    if (seed % 2 == 0) { /* frames are lost, repeated and late */
        struct simnet_link *link = simnet_defaults(c.net);
        link->loss_ppm = link->repeat_ppm = link->late_ppm = 50000;
        link->late_ns = 300 * ENV_MS;
        c.faulty = 1 << VAN_CONTROL;
    }
    c.config.rejoin_ms = 5000;
    cluster_start_scheduler(&c);
    t.node = &c.nodes[0];
    struct member_config config = cluster_member_config(&c, t.node, PARAMO_ROLE_SERVER);
    config.on_order = orders ? got_order : NULL;
    cluster_start_config(t.node, &config);
    cluster_start(&c, &c.nodes[1], PARAMO_ROLE_WORKER);
    assert_true(cluster_run(&c, tnode_joined, t.node, 20));
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[1], 20));
}

/* An order for which there is no memory is sent again until there is; others do not wait for it. */
static void test_later(void **state)
{
    (void)state;
    start(1, true);
    unsigned n = 3;
    t.lacking = 4; /* each of them, and the first once more */
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(issue(i), PARAMO_OK);
    assert_true(cluster_run(&c, all_done, &n, 20));
    assert_int_equal(t.lacking, 0);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(t.heard[i], 1);
        assert_int_equal(t.done[i], 1);
    }
    cluster_fini(&c);
}

static void test_done_once(void **state)
{
    (void)state;
    start(1, true);
    unsigned n = 3;
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(issue(i), PARAMO_OK);
    assert_true(cluster_run(&c, all_done, &n, 1));
    assert_int_equal(t.status, PARAMO_E_IO); /* of the last */
    assert_string_equal(t.text, "order 2 cannot be done");
    cluster_pass(&c, 5);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(t.heard[i], 1);
        assert_int_equal(t.done[i], 1);
    }
    cluster_fini(&c);
}

/* Connections break all the while, or frames are lost, repeated and late. */
static void test_lost_connections(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        start(seed, true);
        unsigned given = 0;
        for (unsigned round = 0; round < 60; round++) {
            for (unsigned k = 0; k < 3; k++)
                if (given < ORDERS && issue(given) == PARAMO_OK)
                    given++;
            cluster_pass(&c, 0.001 * (double)((seed * 7 + round) % 40));
            assert_true(lane_enter(c.lane));
            struct sched_peer *peer = first_server()->peer;
            if (peer && seed % 2 && round % 3 == 0) {
                sched_peer_close(peer, round % 2);
                sched_departure_connection_lost(first_server());
            }
            lane_leave(c.lane);
        }
        assert_true(cluster_run(&c, all_done, &given, 20));
        for (unsigned i = 0; i < given; i++) {
            assert_int_equal(t.heard[i], 1);
            assert_int_equal(t.done[i], 1);
        }
        cluster_fini(&c);
    }
}

static void test_node_lost(void **state)
{
    (void)state;
    start(1, true);
    t.wait = true;
    unsigned n = 2;
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(issue(i), PARAMO_OK);
    cluster_pass(&c, 1);
    assert_int_equal(t.heard[1], 1);
    cluster_kill(t.node);
    assert_true(cluster_run(&c, all_done, &n, 20));
    assert_int_equal(t.status, PARAMO_E_NODE_LOST);
    assert_int_equal(issue(n), PARAMO_E_NODE_LOST);
    assert_non_null(strstr(t.text, "server 0"));
    cluster_fini(&c);
}

static void test_bounded(void **state)
{
    (void)state;
    start(1, true);
    t.wait = true;
    for (unsigned i = 0; i < ORDERS_WINDOW; i++)
        assert_int_equal(issue(i), PARAMO_OK);
    assert_int_equal(issue(ORDERS_WINDOW), PARAMO_E_FULL);
    cluster_pass(&c, 1);
    for (unsigned i = ORDERS_WINDOW; i-- > 0;) { /* in any order */
        struct writer result = {0};
        write_u64(&result, 3 * i);
        tnode_enter(t.node);
        member_order_done(t.node->member, t.id[i], PARAMO_OK, &result);
        member_order_done(t.node->member, t.id[i], PARAMO_OK, NULL); /* it is done already */
        tnode_leave(t.node);
    }
    unsigned n = ORDERS_WINDOW;
    assert_true(cluster_run(&c, all_done, &n, 5));
    t.wait = false;
    assert_int_equal(issue(n), PARAMO_OK);
    n++;
    assert_true(cluster_run(&c, all_done, &n, 5));
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(t.heard[i], 1);
        assert_int_equal(t.done[i], 1);
    }
    cluster_fini(&c);
}

/* A scheduler that forgets its orders, or is another one each time: orders that no member has carried out do not pile
 * up. */
static void test_forgotten(void **state)
{
    (void)state;
    enum { AT_A_TIME = 48, TIMES = 4 };
    start(1, true);
    t.wait = true;
    unsigned heard = 0;
    for (unsigned i = 0; i < TIMES * AT_A_TIME; i++) {
        assert_int_equal(issue(i), PARAMO_OK);
        if (i % AT_A_TIME < AT_A_TIME - 1)
            continue;
        cluster_pass(&c, 1);
        assert_true(lane_enter(c.lane));
        sched_orders_drop(first_server(), false);
        lane_leave(c.lane);
    }
    for (unsigned i = 0; i < TIMES * AT_A_TIME; i++)
        heard += t.heard[i];
    assert_int_equal(heard, 2 * ORDERS_WINDOW);
    cluster_fini(&c);
}

/* A member that takes none says so. */
static void test_not_taken(void **state)
{
    (void)state;
    start(1, false);
    unsigned n = 1;
    assert_int_equal(issue(0), PARAMO_OK);
    assert_true(cluster_run(&c, all_done, &n, 1));
    assert_int_equal(t.status, PARAMO_E_UNSUPPORTED);
    cluster_fini(&c);
}

/* An order that speaks of a view comes after it: what a table is made for is known when it is to be used. */
static void test_after_its_view(void **state)
{
    (void)state;
    start(1, true);
    struct tcall call;
    paramo_table_options options = {.size = sizeof options, .dim = 1};
    tcall_init(&call);
    tnode_enter(&c.nodes[1]);
    assert_int_equal(member_table_open(c.nodes[1].member, &call.call, "t", &options, in_seconds(&c, 5)),
                     PARAMO_OK);
    tnode_leave(&c.nodes[1]);
    unsigned n = 1;
    t.wait = true;
    while (!c.scheduler->view->tables_count)
        cluster_pass(&c, 0.00001);
    assert_int_equal(issue(0), PARAMO_OK);
    while (!t.heard[0])
        cluster_pass(&c, 0.00001);
    assert_int_equal(member_view(t.node->member)->tables_count, 1);
    tnode_enter(t.node);
    struct writer result = {0};
    write_u64(&result, 0);
    member_order_done(t.node->member, t.id[0], PARAMO_OK, &result);
    tnode_leave(t.node);
    assert_true(cluster_run(&c, all_done, &n, 1));
    cluster_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_done_once),      cmocka_unit_test(test_lost_connections),
        cmocka_unit_test(test_node_lost),      cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_forgotten),      cmocka_unit_test(test_not_taken),
        cmocka_unit_test(test_after_its_view), cmocka_unit_test(test_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
