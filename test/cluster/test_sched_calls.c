/* What members ask the scheduler for, one thing at a time: tables, barriers, values, pools. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_clock.h"
#include "cluster/scheduler/sched_kv.h"
#include "cluster/scheduler/sched_node.h"
#include "cluster/scheduler/sched_pool.h"
#include "cluster/scheduler/sched_records.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_save.h"
#include "cluster/scheduler/sched_units.h"
#include "cluster/support_simcluster.h"
#include "wire/clock_calls.h"
#include "wire/kv_calls.h"

static void test_tables(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 1, 2);
    struct tnode *a = &c.nodes[1], *b = &c.nodes[2];
    paramo_table_options options = {.size = sizeof options, .dim = 3};
    struct tcall t, u;
    TCALL(a, &t, member_table_open(a->member, &t.call, "w", NULL, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_E_NO_TABLE);
    TCALL(a, &t, member_table_open(a->member, &t.call, "w", &options, in_seconds(&c, 5)));
    TCALL(b, &u, member_table_open(b->member, &u.call, "w", &options, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    assert_int_equal(tcall_wait(&c, &u), PARAMO_OK);
    assert_int_equal(t.call.result.table, 1);
    assert_int_equal(u.call.result.table, 1);
    assert_int_equal(view_table(member_view(a->member), 1)->options.dim, 3);
    assert_int_equal(view_table(member_view(b->member), 1)->options.placement, PARAMO_PLACE_MIXED);
    options.dim = 4;
    TCALL(b, &u, member_table_open(b->member, &u.call, "w", &options, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &u), PARAMO_E_TABLE_EXISTS);
    assert_string_equal(u.text, "table w exists with dim 3, not 4");
    cluster_pass(&c, 1);
    assert_int_equal(member_view(c.nodes[0].member)->tables_count, 1);
    cluster_fini(&c);
}

static void test_barriers(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 1, 2);
    struct tnode *s = &c.nodes[0], *a = &c.nodes[1], *b = &c.nodes[2];
    struct tcall t, u, v, again;
    tcall_init(&t);
    tnode_enter(s);
    assert_int_equal(member_barrier(s->member, &t.call, 4, 0, in_seconds(&c, 5)), PARAMO_E_INVALID);
    tnode_leave(s);
    /* A node counts once, however often it enters; all are released together, with one number. */
    for (uint64_t number = 1; number <= 3; number++) {
        TCALL(a, &t, member_barrier(a->member, &t.call, 6, 0, in_seconds(&c, 50)));
        TCALL(a, &again, member_barrier(a->member, &again.call, 6, 0, in_seconds(&c, 50)));
        TCALL(b, &u, member_barrier(b->member, &u.call, 6, 0, in_seconds(&c, 50)));
        cluster_pass(&c, 5);
        assert_false(t.done || u.done || again.done);
        TCALL(s, &v, member_barrier(s->member, &v.call, 6, 0, in_seconds(&c, 50)));
        assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
        assert_int_equal(tcall_wait(&c, &u), PARAMO_OK);
        assert_int_equal(tcall_wait(&c, &v), PARAMO_OK);
        assert_int_equal(tcall_wait(&c, &again), PARAMO_OK);
        assert_int_equal(t.call.result.number, number);
        assert_int_equal(v.call.result.number, number);
    }
    /* Another customer's and another group's barriers are others. */
    TCALL(a, &t, member_barrier(a->member, &t.call, 4, 0, in_seconds(&c, 3)));
    TCALL(b, &u, member_barrier(b->member, &u.call, 4, 1, in_seconds(&c, 3)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_E_TIMEOUT);
    assert_non_null(strstr(t.text, "worker 1 (node 11, host)"));
    assert_int_equal(tcall_wait(&c, &u), PARAMO_E_TIMEOUT);
    assert_non_null(strstr(u.text, "worker 0 (node 9, host)"));
    /* A call that has timed out is not in it any more. */
    TCALL(b, &u, member_barrier(b->member, &u.call, 4, 0, in_seconds(&c, 50)));
    cluster_pass(&c, 3);
    assert_false(u.done);
    /* A death is named, at once and later. */
    cluster_kill(a);
    assert_int_equal(tcall_wait(&c, &u), PARAMO_E_BARRIER);
    assert_non_null(strstr(u.text, "worker 0 (node 9, host)"));
    TCALL(b, &u, member_barrier(b->member, &u.call, 4, 0, in_seconds(&c, 50)));
    assert_int_equal(tcall_wait(&c, &u), PARAMO_E_BARRIER);
    TCALL(s, &t, member_barrier(s->member, &t.call, 2, 0, in_seconds(&c, 50)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    cluster_fini(&c);
}

/* Calls of this kind that the scheduler has not answered, and answers that it holds back. */
static size_t calls_left(const struct cluster *c, uint32_t kind)
{
    size_t n = 0, cursor = 0;
    for (struct sched_node *node; (node = sched_roster_next(c->scheduler, &cursor));)
        for (uint32_t i = 0; i < node->calls.kept_count; i++) {
            const struct sched_call *call = node->calls.kept[i];
            n += call && call->kind == kind && (!call->answered || call->queue);
        }
    return n;
}

/* Until this many are left: no step of the scheduler answers more than one turn. Returns the turns. */
static size_t in_turns(struct cluster *c, uint32_t kind, size_t until)
{
    size_t turns = 0, before = calls_left(c, kind);
    while (before > until) {
        assert_true(sim_step(c->sim));
        size_t left = calls_left(c, kind);
        assert_true(before <= left + 2 * (c->scheduler->calls->most + 1)); /* an event and a timer */
        turns += left < before;
        before = left;
    }
    return turns;
}

enum { MANY = 1000 };

/* No step answers more callers of a barrier than a turn has. Those that time out in between are released, too, and
 * calls that come in between are of the next one. */
static void test_barrier_ends_in_turns(void **state)
{
    (void)state;
    static struct tcall calls[MANY], next[MANY];
    struct cluster c;
    struct tcall t, late;
    cluster_start_all(&c, 0, 3);
    struct tnode *a = &c.nodes[0], *b = &c.nodes[1], *x = &c.nodes[2];
    c.scheduler->calls->most = 10;
    for (unsigned i = 0; i < MANY; i++)
        TCALL(a, &calls[i],
              member_barrier(a->member, &calls[i].call, 4, 0, in_seconds(&c, i == MANY - 1 ? 5 : 50)));
    TCALL(x, &t, member_barrier(x->member, &t.call, 4, 0, in_seconds(&c, 50)));
    cluster_pass(&c, 1);
    assert_int_equal(calls_left(&c, CALL_BARRIER), MANY + 1);
    TCALL(b, &late, member_barrier(b->member, &late.call, 4, 0, in_seconds(&c, 50)));
    assert_true(in_turns(&c, CALL_BARRIER, MANY / 2) >= MANY / 2 / 10);
    assert_non_null(c.scheduler->calls->released);
    /* The last call's deadline comes before its turn: the barrier is still released. */
    struct sched_call *last = c.scheduler->calls->released->queue.last;
    assert_true(lane_enter(c.lane));
    lane_timer_cancel(c.lane, &last->timer);
    last->timed_out(last);
    lane_leave(c.lane);
    assert_true(last->answered && last->status == PARAMO_OK);
    TCALL(a, &next[0], member_barrier(a->member, &next[0].call, 4, 0, in_seconds(&c, 50)));
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(tcall_wait(&c, &calls[i]), PARAMO_OK);
        assert_int_equal(calls[i].call.result.number, 1);
    }
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    assert_int_equal(tcall_wait(&c, &late), PARAMO_OK);
    assert_false(next[0].done);
    assert_null(c.scheduler->calls->released);
    /* A death fails the callers of the present one, in turns as well; and another in the middle takes its own along. */
    for (unsigned i = 1; i < MANY; i++)
        TCALL(i % 2 ? b : a, &next[i],
              member_barrier((i % 2 ? b : a)->member, &next[i].call, 4, 0, in_seconds(&c, 50)));
    cluster_pass(&c, 1);
    cluster_kill(x);
    (void)in_turns(&c, CALL_BARRIER, MANY / 2);
    assert_non_null(c.scheduler->calls->released);
    cluster_kill(a);
    for (unsigned i = 1; i < MANY; i += 2) {
        assert_int_equal(tcall_wait(&c, &next[i]), PARAMO_E_BARRIER);
        assert_non_null(strstr(next[i].text, "worker 2 (node 13, host)"));
    }
    cluster_pass(&c, 1);
    assert_null(c.scheduler->calls->released);
    cluster_fini(&c);
}

/* The nodes that are missing are named once for all calls that time out, and again when a node has entered since. */
static void test_barrier_names_who_never_came(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 0, 3);
    struct tnode *a = &c.nodes[0], *b = &c.nodes[1];
    struct tcall t, u;
    TCALL(a, &t, member_barrier(a->member, &t.call, 4, 0, in_seconds(&c, 3)));
    TCALL(b, &u, member_barrier(b->member, &u.call, 4, 0, in_seconds(&c, 4)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_E_TIMEOUT);
    assert_int_equal(tcall_wait(&c, &u), PARAMO_E_TIMEOUT);
    assert_non_null(strstr(t.text, "1 are missing: worker 2 (node 13, host)"));
    assert_string_equal(t.text, u.text);
    TCALL(a, &t, member_barrier(a->member, &t.call, 4, 0, in_seconds(&c, 3)));
    TCALL(b, &u, member_barrier(b->member, &u.call, 4, 0, in_seconds(&c, 6)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_E_TIMEOUT);
    TCALL(b, &t, member_barrier(b->member, &t.call, 4, 0, in_seconds(&c, 9)));
    assert_int_equal(tcall_wait(&c, &u), PARAMO_E_TIMEOUT);
    assert_non_null(strstr(u.text, "2 are missing: worker 0 (node 9, host), worker 2 (node 13, host)"));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_E_TIMEOUT);
    cluster_fini(&c);
}

/* Those that wait for a value get it in turns: that value, although it changes and is deleted in between. */
static void test_values_arrive_in_turns(void **state)
{
    (void)state;
    static struct tcall calls[MANY];
    struct cluster c;
    struct tcall t, other;
    cluster_start_all(&c, 0, 2);
    struct tnode *a = &c.nodes[0], *b = &c.nodes[1];
    c.scheduler->calls->most = 10;
    TCALL(a, &other, member_kv_get(a->member, &other.call, "other", in_seconds(&c, 50)));
    for (unsigned i = 0; i < MANY; i++)
        TCALL(a, &calls[i], member_kv_get(a->member, &calls[i].call, "lr", in_seconds(&c, 50)));
    cluster_pass(&c, 1);
    assert_int_equal(calls_left(&c, CALL_KV_GET), MANY + 1);
    assert_int_equal(c.scheduler->values->waiting.count, 2);
    TCALL(b, &t, member_kv_put(b->member, &t.call, "lr", "0.1", 4, in_seconds(&c, 5)));
    assert_true(in_turns(&c, CALL_KV_GET, MANY / 2) >= MANY / 2 / 10);
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    TCALL(b, &t, member_kv_delete(b->member, &t.call, "lr", in_seconds(&c, 5)));
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(tcall_wait(&c, &calls[i]), PARAMO_OK);
        assert_string_equal(calls[i].value, "0.1");
    }
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    assert_null(c.scheduler->calls->released);
    assert_false(other.done);
    TCALL(b, &t, member_kv_put(b->member, &t.call, "other", "x", 2, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &other), PARAMO_OK);
    assert_string_equal(other.value, "x");
    assert_int_equal(c.scheduler->values->waiting.count, 0);
    /* Long answers count for more: a turn copies no more than a mebibyte. */
    static uint8_t value[KV_VALUE_MAX];
    c.scheduler->calls->most = SCHED_CALLS_TURN;
    for (unsigned i = 0; i < 100; i++)
        TCALL(a, &calls[i], member_kv_get(a->member, &calls[i].call, "long", in_seconds(&c, 50)));
    cluster_pass(&c, 1);
    TCALL(b, &t, member_kv_put(b->member, &t.call, "long", value, sizeof value, in_seconds(&c, 5)));
    assert_true(in_turns(&c, CALL_KV_GET, 0) >= 6);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(tcall_wait(&c, &calls[i]), PARAMO_OK);
    cluster_fini(&c);
}

static void test_values(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 0, 2);
    struct tnode *a = &c.nodes[0], *b = &c.nodes[1];
    struct tcall t, u;
    TCALL(a, &t, member_kv_get(a->member, &t.call, "lr", in_seconds(&c, 50)));
    TCALL(b, &u, member_kv_put(b->member, &u.call, "other", "x", 1, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &u), PARAMO_OK);
    cluster_pass(&c, 1);
    assert_false(t.done);
    TCALL(b, &u, member_kv_put(b->member, &u.call, "lr", "0.1", 4, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    assert_string_equal(t.value, "0.1");
    TCALL(a, &t, member_kv_get(a->member, &t.call, "none", in_seconds(&c, 2)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_E_TIMEOUT);
    const double one[] = {1.5, -2};
    for (int i = 0; i < 3; i++) {
        TCALL(i % 2 ? a : b, &t,
              member_kv_add((i % 2 ? a : b)->member, &t.call, "sum", one, 2, in_seconds(&c, 5)));
        assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    }
    TCALL(a, &t, member_kv_get(a->member, &t.call, "sum", in_seconds(&c, 2)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    double sum[2];
    memcpy(sum, t.value, sizeof sum);
    assert_true(sum[0] == 4.5 && sum[1] == -6);
    TCALL(a, &t, member_kv_add(a->member, &t.call, "sum", one, 1, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_E_SIZE_MISMATCH);
    for (int i = 0; i < 2; i++) { /* a key that is not there is no error */
        TCALL(b, &t, member_kv_delete(b->member, &t.call, "sum", in_seconds(&c, 5)));
        assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    }
    TCALL(a, &t, member_kv_get(a->member, &t.call, "sum", in_seconds(&c, 2)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_E_TIMEOUT);
    TCALL(a, &t, member_kv_add(a->member, &t.call, "sum", one, 1, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK); /* of another length: nothing is left of the old one */
    cluster_fini(&c);
}

/* The scheduler keeps a limited number of values; a deleted value makes room. */
static void test_values_bounded(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 0, 1);
    struct tnode *a = &c.nodes[0];
    struct tcall t;
    static uint8_t value[KV_VALUE_MAX];
    char key[16];
    unsigned fit = 0;
    for (paramo_err err = PARAMO_OK; !err; fit += !err) {
        (void)snprintf(key, sizeof key, "k%u", fit);
        TCALL(a, &t, member_kv_put(a->member, &t.call, key, value, sizeof value, in_seconds(&c, 5)));
        err = tcall_wait(&c, &t);
    }
    assert_int_equal(t.status, PARAMO_E_FULL);
    assert_int_equal(fit, SCHED_KV_BYTES / KV_VALUE_MAX);
    TCALL(a, &t, member_kv_delete(a->member, &t.call, "k0", in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    TCALL(a, &t, member_kv_put(a->member, &t.call, key, value, sizeof value, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    cluster_fini(&c);
}

/* The next part as 100 * stream + index, or -state. */
static int next_unit(struct cluster *c, struct tnode *node, struct tcall *t, uint32_t round, uint32_t ms)
{
    TCALL(node, t, member_pool_next(node->member, &t->call, "p", 0, round, ms, in_seconds(c, 60)));
    assert_int_equal(tcall_wait(c, t), PARAMO_OK);
    if (t->call.result.state != POOL_GOT)
        return -(int)t->call.result.state;
    assert_int_equal(t->call.result.unit.round, round);
    return (int)(t->call.result.unit.stream * 100 + t->call.result.unit.index);
}

static paramo_err report(struct cluster *c, struct tnode *node, const struct work_unit *unit, bool end)
{
    struct tcall t;
    if (end)
        TCALL(node, &t, member_pool_end(node->member, &t.call, "p", unit, in_seconds(c, 60)));
    else
        TCALL(node, &t, member_pool_done(node->member, &t.call, "p", unit, in_seconds(c, 60)));
    return tcall_wait(c, &t);
}

static void test_pool_order_and_affinity(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 0, 3);
    struct tnode *a = &c.nodes[0], *b = &c.nodes[1];
    struct tcall t, units[6];
    TCALL(a, &t, member_pool_open(a->member, &t.call, "p", 3, 2, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    TCALL(b, &t, member_pool_open(b->member, &t.call, "p", 3, 3, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_E_INVALID);
    /* Stream 0 has parts 0 1 2, stream 1 none, stream 2 part 0. */
    assert_int_equal(next_unit(&c, a, &units[0], 0, 0), 0);
    assert_int_equal(next_unit(&c, b, &units[1], 0, 0), 1);
    assert_int_equal(next_unit(&c, a, &units[2], 0, 0), 2);
    assert_int_equal(next_unit(&c, b, &units[3], 0, 0), 3);
    assert_int_equal(next_unit(&c, a, &units[4], 0, 0), 4);
    assert_int_equal(report(&c, a, &units[4].call.result.unit, true), PARAMO_OK);
    assert_int_equal(next_unit(&c, a, &units[5], 0, 0), 100);
    assert_int_equal(report(&c, b, &units[3].call.result.unit, true),
                     PARAMO_OK); /* the end is nearer still */
    assert_int_equal(report(&c, a, &units[5].call.result.unit, true), PARAMO_OK);
    assert_int_equal(next_unit(&c, b, &units[5], 0, 0), 200);
    assert_int_equal(next_unit(&c, a, &units[3], 0, 0), 201);
    assert_int_equal(report(&c, a, &units[3].call.result.unit, true), PARAMO_OK);
    assert_int_equal(next_unit(&c, a, &t, 0, 500), -POOL_NONE_NOW);
    for (int i = 0; i < 3; i++)
        assert_int_equal(report(&c, i == 1 ? b : a, &units[i].call.result.unit, false), PARAMO_OK);
    assert_int_equal(report(&c, a, &units[0].call.result.unit, false), PARAMO_E_NOT_FOUND);
    TCALL(a, &t, member_pool_next(a->member, &t.call, "p", 0, 1, 50000, in_seconds(&c, 60)));
    assert_int_equal(report(&c, b, &units[5].call.result.unit, false), PARAMO_OK);
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK); /* round 1 has begun */
    assert_int_equal(t.call.result.unit.index, 0);
    assert_int_equal(next_unit(&c, b, &units[1], 0, 0), -POOL_FINISHED);
    /* Each gets its own first: a did 0 2, b did 1 200; then what is left of the others'. */
    assert_int_equal(next_unit(&c, b, &units[1], 1, 0), 1);
    assert_int_equal(next_unit(&c, b, &units[2], 1, 0), 200);
    assert_int_equal(next_unit(&c, b, &units[3], 1, 0), 2);
    assert_int_equal(next_unit(&c, a, &units[4], 1, 0), -POOL_NONE_NOW);
    /* What a dead worker held is dealt again, and what it says later does not count. */
    TCALL(a, &units[5], member_pool_next(a->member, &units[5].call, "p", 0, 1, 50000, in_seconds(&c, 60)));
    cluster_kill(b);
    assert_int_equal(tcall_wait(&c, &units[5]), PARAMO_OK);
    assert_int_equal(units[5].call.result.unit.index, 1);
    assert_int_equal(next_unit(&c, a, &units[2], 1, 0), 2);
    assert_int_equal(next_unit(&c, a, &units[3], 1, 0), 200);
    assert_int_equal(report(&c, a, &t.call.result.unit, false), PARAMO_OK);
    assert_int_equal(report(&c, a, &units[2].call.result.unit, false), PARAMO_OK);
    assert_int_equal(report(&c, a, &units[3].call.result.unit, false), PARAMO_OK);
    assert_int_equal(next_unit(&c, a, &t, 1, 0), -POOL_NONE_NOW);
    assert_int_equal(report(&c, a, &units[5].call.result.unit, false), PARAMO_OK);
    assert_int_equal(next_unit(&c, a, &t, 1, 0), -POOL_FINISHED);
    cluster_fini(&c);
}

/* The next round is prepared in turns. Until the last of these no unit is dealt, whichever round is asked for. Then
 * each worker gets its own units first, in order, and those that wait are answered. */
static void test_round_begins_in_turns(void **state)
{
    (void)state;
    enum { UNITS = 40, MOST = 4 };
    struct cluster c;
    struct tcall t, wait;
    struct work_unit last = {0};
    unsigned turns = 0;
    cluster_start_all(&c, 0, 3);
    struct tnode *a = &c.nodes[0], *b = &c.nodes[1];
    struct scheduler *s = c.scheduler;
    TCALL(a, &t, member_pool_open(a->member, &t.call, "p", 1, 2, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    for (unsigned i = 0; i < UNITS; i++) {
        struct tnode *node = i % 2 ? b : a;
        assert_int_equal(next_unit(&c, node, &t, 0, 0), i);
        last = t.call.result.unit;
        if (i + 1 < UNITS)
            assert_int_equal(report(&c, node, &last, false), PARAMO_OK);
    }
    assert_int_equal(next_unit(&c, a, &t, 0, 0), UNITS);
    struct work_unit beyond = t.call.result.unit;
    assert_int_equal(report(&c, a, &beyond, true), PARAMO_OK);
    s->pools->most = MOST;
    s->calls->pause = ENV_SEC;
    TCALL(b, &wait, member_pool_next(b->member, &wait.call, "p", 0, 1, 500000, in_seconds(&c, 600)));
    assert_int_equal(report(&c, b, &last, false), PARAMO_OK);
    struct sched_pool *pool = s->pools->first;
    for (uint32_t left = UNITS; pool->round == 0; turns++) {
        assert_true(pool->chaining);
        assert_in_range(left - pool->unchained, MOST, 2 * MOST);
        left = pool->unchained;
        assert_int_equal(next_unit(&c, a, &t, 0, 0), -POOL_NONE_NOW);
        assert_int_equal(next_unit(&c, a, &t, 1, 0), -POOL_NONE_NOW);
        assert_false(wait.done);
        assert_true(lane_enter(c.lane));
        sched_pool_node_gone(sched_roster_find(s, member_id(c.nodes[2].member)));
        lane_leave(c.lane);
        cluster_pass(&c, 1);
    }
    assert_in_range(turns, UNITS / MOST / 2, UNITS / MOST);
    assert_int_equal(tcall_wait(&c, &wait), PARAMO_OK);
    assert_int_equal(wait.call.result.unit.index, 1);
    assert_int_equal(next_unit(&c, a, &t, 0, 0), -POOL_FINISHED);
    for (unsigned i = 0; i < UNITS; i += 2)
        assert_int_equal(next_unit(&c, a, &t, 1, 0), i);
    for (unsigned i = 3; i < UNITS; i += 2)
        assert_int_equal(next_unit(&c, b, &t, 1, 0), i);
    assert_int_equal(next_unit(&c, b, &t, 1, 0), -POOL_NONE_NOW);
    cluster_fini(&c);
}

/* Of many units few are left to deal: a step does not look at all. */
static void test_few_looks_for_a_unit(void **state)
{
    (void)state;
    enum { UNITS = POOL_CHAIN_TURN + BLOCK_UNITS + 7, INNER = 2 * BLOCK_UNITS + 5 };
    struct cluster c;
    struct tcall t;
    cluster_start_all(&c, 0, 2);
    struct tnode *a = &c.nodes[0], *b = &c.nodes[1];
    struct scheduler *s = c.scheduler;
    TCALL(a, &t, member_pool_open(a->member, &t.call, "p", 1, 2, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    assert_int_equal(next_unit(&c, a, &t, 0, 0), 0);
    struct work_unit first = t.call.result.unit;
    struct sched_pool *pool = s->pools->first;
    assert_true(lane_enter(c.lane)); /* a has done all others */
    pool->units = realloc(pool->units, UNITS * sizeof *pool->units);
    assert_non_null(pool->units);
    for (uint32_t i = 1; i < UNITS; i++)
        pool->units[i] = (struct unit){.index = i, .owner = 0, .next = NO_UNIT, .state = UNIT_DONE};
    pool->count = pool->capacity = UNITS;
    pool->done = UNITS - 1;
    pool->stream = 1;
    lane_leave(c.lane);
    assert_int_equal(report(&c, a, &first, false), PARAMO_OK);
    assert_int_equal(pool->round, 1);
    assert_true(pool_fits(pool));
    assert_true(lane_enter(c.lane)); /* two are left of the next round */
    for (uint32_t i = 0; i + 1 < UNITS; i++) {
        if (i == INNER)
            continue;
        unit_move(pool, &pool->units[i], UNIT_LEASED);
        unit_move(pool, &pool->units[i], UNIT_DONE);
    }
    pool->free = 2;
    pool->done = UNITS - 2;
    assert_true(pool_fits(pool));
    lane_leave(c.lane);
    assert_int_equal(next_unit(&c, b, &t, 1, 0), INNER);
    assert_in_range(pool->looked, 5, POOL_BLOCKS + 2 * BLOCK_UNITS);
    assert_int_equal(next_unit(&c, a, &t, 1, 0), UNITS - 1); /* the last of a long chain */
    assert_in_range(pool->looked, POOL_CHAIN_TURN, POOL_CHAIN_TURN + POOL_BLOCKS + 2 * BLOCK_UNITS);
    assert_int_equal(next_unit(&c, a, &t, 1, 0), -POOL_NONE_NOW);
    assert_true(pool_fits(pool));
    cluster_fini(&c);
}

/* However long some calls wait, the others of their node continue: they may be of other customers. */
static void test_calls_behind_long_waits(void **state)
{
    (void)state;
    enum { ADDS = 1000, GETS = 300 };
    struct cluster c;
    cluster_start_all(&c, 0, 2);
    struct tnode *a = &c.nodes[0], *b = &c.nodes[1];
    struct tcall barrier, other, unit, held, t, *gets = calloc(GETS, sizeof *gets);
    const double one = 1;
    assert_non_null(gets);
    TCALL(a, &t, member_pool_open(a->member, &t.call, "p", 1, 1, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    assert_int_equal(next_unit(&c, b, &held, 0, 0), 0);
    assert_int_equal(next_unit(&c, b, &t, 0, 0), 1);
    assert_int_equal(report(&c, b, &t.call.result.unit, true), PARAMO_OK); /* the stream has one unit */
    TCALL(a, &barrier, member_barrier(a->member, &barrier.call, PARAMO_GROUP_WORKERS, 3, in_seconds(&c, 90)));
    TCALL(a, &unit, member_pool_next(a->member, &unit.call, "p", 0, 0, 90000, in_seconds(&c, 90)));
    for (int i = 0; i < GETS; i++)
        TCALL(a, &gets[i],
              member_kv_get(a->member, &gets[i].call, i % 2 ? "odd" : "even", in_seconds(&c, 90)));
    uint64_t began = lane_now(c.lane);
    for (int i = 0; i < ADDS; i++) {
        TCALL(a, &t, member_kv_add(a->member, &t.call, "sum", &one, 1, in_seconds(&c, 50)));
        assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    }
    assert_true(lane_now(c.lane) - began < 5 * ENV_SEC);
    assert_false(barrier.done || unit.done || gets[0].done || gets[GETS - 1].done);
    /* What the node has got is forgotten, although the oldest calls still wait. */
    size_t cursor = 0, kept = 0;
    for (struct sched_node *node; (node = sched_roster_next(c.scheduler, &cursor));)
        kept += node->calls.kept_count;
    assert_true(kept <= 1024);
    /* The waits end as ever. */
    TCALL(b, &t, member_kv_put(b->member, &t.call, "odd", "x", 1, in_seconds(&c, 5)));
    for (int i = 1; i < GETS; i += 2)
        assert_int_equal(tcall_wait(&c, &gets[i]), PARAMO_OK);
    assert_false(barrier.done || unit.done || gets[0].done);
    TCALL(b, &other, member_barrier(b->member, &other.call, PARAMO_GROUP_WORKERS, 3, in_seconds(&c, 90)));
    assert_int_equal(tcall_wait(&c, &barrier), PARAMO_OK);
    assert_int_equal(barrier.call.result.number, 1);
    cluster_kill(b);
    assert_int_equal(tcall_wait(&c, &unit), PARAMO_OK);
    assert_int_equal(unit.call.result.state, POOL_GOT);
    assert_int_equal(unit.call.result.unit.index, 0);
    TCALL(a, &t, member_kv_get(a->member, &t.call, "sum", in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    double total;
    memcpy(&total, t.value, sizeof total);
    assert_true(total == ADDS);
    cluster_kill_scheduler(&c);
    assert_int_equal(tcall_wait(&c, &gets[0]), PARAMO_E_NO_SCHEDULER);
    free(gets);
    cluster_fini(&c);
}

static unsigned handled;

static void count_handled(struct sched_call *call, struct reader *body)
{
    (void)body;
    handled++;
    if (call->kind != CALL_BARRIER)
        sched_call_answer(call, NULL);
}

/* A call that has the place of an earlier one says that the earlier one is over. An old copy of that does nothing. */
static void test_place_of_an_earlier_call(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 0, 1);
    size_t cursor = 0;
    struct sched_node *node = sched_roster_next(c.scheduler, &cursor);
    while (node->info.role != PARAMO_ROLE_WORKER)
        node = sched_roster_next(c.scheduler, &cursor);
    const struct {
        uint32_t kind;
        uint64_t sequence;
        uint32_t place;
        unsigned handled;
    } calls[] = {{CALL_BARRIER, 1, 9, 1}, {CALL_BARRIER, 1, 9, 1}, {CALL_KV_ADD, 2, 40, 2},
                 {CALL_KV_ADD, 2, 40, 2}, {CALL_KV_ADD, 3, 40, 3}, {CALL_KV_ADD, 2, 40, 3},
                 {CALL_KV_ADD, 4, 9, 4},  {CALL_BARRIER, 1, 9, 4}, {CALL_KV_ADD, 5, 4095, 5}};
    tnode_enter(&(struct tnode){.lane = c.lane});
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct reader body = {0};
        struct wire_call head = {.kind = WIRE_CALL,
                                 .what = calls[i].kind,
                                 .number = calls[i].sequence * CALL_PLACES + calls[i].place,
                                 .floor = CALL_PLACES};
        assert_int_equal(sched_calls_received(node, &head, &body, count_handled), PARAMO_OK);
        assert_int_equal(handled, calls[i].handled);
    }
    tnode_leave(&(struct tnode){.lane = c.lane});
    cluster_fini(&c);
}

/* A round ends: those that wait for another work unit learn it in turns. Some are gone with their worker in between.
 * A work unit that becomes free goes to the first that waits. */
static void test_pool_answers_in_turns(void **state)
{
    (void)state;
    static struct tcall waiting[MANY];
    struct cluster c;
    struct tcall unit, end;
    cluster_start_all(&c, 0, 3);
    struct tnode *a = &c.nodes[0], *b = &c.nodes[1], *x = &c.nodes[2];
    c.scheduler->calls->most = 10;
    c.scheduler->calls->pause = 10 * ENV_MS; /* the death comes between two turns */
    TCALL(a, &unit, member_pool_open(a->member, &unit.call, "p", 1, 1, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &unit), PARAMO_OK);
    assert_int_equal(next_unit(&c, x, &unit, 0, 0), 0);
    assert_int_equal(next_unit(&c, a, &end, 0, 0), 1);
    assert_int_equal(report(&c, a, &end.call.result.unit, true), PARAMO_OK);
    for (unsigned i = 0; i < MANY; i++) {
        struct tnode *node = i < MANY / 3 ? a : b; /* b's turn has come when it dies */
        TCALL(node, &waiting[i],
              member_pool_next(node->member, &waiting[i].call, "p", 0, 0, 50000, in_seconds(&c, 60)));
        if (i == 0)
            cluster_pass(&c, 1);
    }
    cluster_pass(&c, 1);
    assert_int_equal(calls_left(&c, CALL_POOL_NEXT), MANY);
    cluster_kill(x); /* its unit is the first one's */
    assert_int_equal(tcall_wait(&c, &waiting[0]), PARAMO_OK);
    assert_int_equal(waiting[0].call.result.state, POOL_GOT);
    assert_int_equal(calls_left(&c, CALL_POOL_NEXT), MANY - 1);
    TCALL(a, &end,
          member_pool_done(a->member, &end.call, "p", &waiting[0].call.result.unit, in_seconds(&c, 60)));
    assert_true(in_turns(&c, CALL_POOL_NEXT, MANY / 2) >= MANY / 2 / 22); /* a step may have two */
    cluster_kill(b);
    for (unsigned i = 1; i < MANY / 3; i++) {
        assert_int_equal(tcall_wait(&c, &waiting[i]), PARAMO_OK);
        assert_int_equal(waiting[i].call.result.state, POOL_FINISHED);
    }
    assert_int_equal(tcall_wait(&c, &end), PARAMO_OK);
    cluster_pass(&c, 1);
    assert_int_equal(calls_left(&c, CALL_POOL_NEXT), 0);
    cluster_fini(&c);
}

enum { COPIED = 300 };

static void put_value(struct cluster *c, struct tnode *node, unsigned i, uint32_t value)
{
    struct tcall t;
    char key[20];
    (void)snprintf(key, sizeof key, "value %u", i);
    TCALL(node, &t, member_kv_put(node->member, &t.call, key, &value, sizeof value, in_seconds(c, 60)));
    assert_int_equal(tcall_wait(c, &t), PARAMO_OK);
}

/* The copy that a checkpoint has is written in turns. Values change, go and come between them; the copy is that of
 * the last turn, also when it began again in between. */
static void test_values_are_copied_in_turns(void **state)
{
    (void)state;
    struct cluster c;
    struct sched_save_copy copy;
    struct map newest;
    unsigned turns = 0, values = 0;
    bool all = false;
    cluster_start_all(&c, 0, 1);
    struct tnode *a = &c.nodes[0];
    struct scheduler *s = c.scheduler;
    for (unsigned i = 0; i < COPIED; i++)
        put_value(&c, a, i, i);
    s->saves->most = 10;
    sched_save_copy_begin(s, &copy);
    while (!all) {
        size_t len = copy.run.w.len;
        assert_true(lane_enter(c.lane));
        all = sched_save_copy_turn(s, false);
        lane_leave(c.lane);
        assert_true(copy.run.w.len < len + (size_t)2 * 10 * 64);
        turns++;
        if (all || turns > 50)
            continue;
        struct tcall t;
        char key[20];
        (void)snprintf(key, sizeof key, "value %u", turns * 13 % COPIED);
        put_value(&c, a, turns * 7 % COPIED, 1000 + turns);
        put_value(&c, a, COPIED + turns, turns);
        TCALL(a, &t, member_kv_delete(a->member, &t.call, key, in_seconds(&c, 60)));
        assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
        copy.again |= turns == 20;
    }
    assert_in_range(turns, COPIED / 10 + 20, 200);
    assert_false(copy.run.w.failed);
    map_init(&newest);
    struct reader records = reader_over(copy.run.w.data, copy.run.w.len), record;
    uint64_t id;
    for (const uint8_t *at = records.at; store_record_next(&records, &id, &record); at = records.at)
        assert_int_equal(map_put(&newest, id, (void *)(uintptr_t)at), PARAMO_OK);
    size_t cursor = 0;
    void *value;
    while (map_next(&newest, &cursor, &id, &value)) {
        struct reader from =
            reader_over(value, copy.run.w.len - (size_t)((uint8_t *)value - copy.run.w.data));
        struct writer now = {0};
        assert_true(store_record_next(&from, &id, &record));
        assert_int_equal(id >> 56, RECORD_VALUES);
        sched_kv_record(s, id & (UINT64_MAX >> 8), &now);
        assert_int_equal(record.left, now.len);
        assert_memory_equal(record.at, now.data ? now.data : record.at, now.len);
        values += now.len > 0;
        writer_fini(&now);
    }
    assert_int_equal(values, sched_kv_count(s));
    map_fini(&newest);
    sched_save_copy_end(s);
    writer_fini(&copy.run.w);
    cluster_fini(&c);
}

/* A session is of one sequence: a second join with it, at another place, must not take the first one's clock. */
static void test_joins_of_one_sequence(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 1, 1);
    struct sched_node *node = sched_roster_find(c.scheduler, PARAMO_ID_WORKER(0));
    const uint32_t customer[] = {0, 1, 0};
    tnode_enter(&(struct tnode){.lane = c.lane});
    for (uint64_t i = 0; i < 3; i++) {
        struct writer w = {0};
        clock_join_encode(&(struct clock_join){.customer = customer[i]}, &w);
        struct reader body = reader_over(w.data, w.len);
        struct wire_call head = {
            .kind = WIRE_CALL, .what = CALL_CLOCK_JOIN, .number = 7 * CALL_PLACES + i, .floor = CALL_PLACES};
        assert_int_equal(sched_calls_received(node, &head, &body, sched_clock_join), PARAMO_OK);
        assert_int_equal(node->calls.kept[i]->status, i == 1 ? PARAMO_E_INVALID : PARAMO_OK);
        assert_int_equal(c.scheduler->clocks->by_session.count, 1);
        writer_fini(&w);
    }
    tnode_leave(&(struct tnode){.lane = c.lane});
    cluster_fini(&c);
}

static void pool_record(struct writer *w, uint32_t round, uint32_t stream, uint32_t units)
{
    size_t mark;
    sched_save_record_begin(w, RECORD_POOL, 0, &mark);
    write_string(w, "p");
    const uint32_t fields[] = {2, 3, round, stream, 0, units}; /* streams and rounds first */
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        write_u32(w, fields[i]);
    write_u64(w, 0);
    store_record_end(w, mark);
}

/* Pools of a checkpoint that no scheduler writes: dealing from them would break what it relies on. */
static void test_damaged_pools(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 1, 1);
    const struct {
        uint32_t round, stream, units;
        paramo_err err;
    } cases[] = {{0, 1, 2, PARAMO_OK},        {1, 2, 2, PARAMO_OK}, {3, 2, 0, PARAMO_OK},
                 {1, 1, 2, PARAMO_E_CORRUPT},  /* a later round, and not all units are known */
                 {3, 2, 1, PARAMO_E_CORRUPT},  /* all is done, and a unit is left */
                 {4, 2, 0, PARAMO_E_CORRUPT}}; /* no such round */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct writer w = {0};
        pool_record(&w, cases[i].round, cases[i].stream, cases[i].units);
        tnode_enter(&(struct tnode){.lane = c.lane});
        assert_int_equal(sched_records_restore_extra(c.scheduler, w.data, w.len), cases[i].err);
        tnode_leave(&(struct tnode){.lane = c.lane});
        writer_fini(&w);
    }
    cluster_fini(&c);
}

/* Pools that a checkpoint replaces, although a worker waits for a unit of one. */
static void test_pools_replaced(void **state)
{
    (void)state;
    struct cluster c;
    struct tcall unit, end, waits;
    cluster_start_all(&c, 0, 2);
    struct tnode *a = &c.nodes[0], *b = &c.nodes[1];
    TCALL(a, &unit, member_pool_open(a->member, &unit.call, "p", 1, 1, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &unit), PARAMO_OK);
    assert_int_equal(next_unit(&c, a, &unit, 0, 0), 0);
    assert_int_equal(next_unit(&c, a, &end, 0, 0), 1);
    assert_int_equal(report(&c, a, &end.call.result.unit, true), PARAMO_OK);
    TCALL(b, &waits, member_pool_next(b->member, &waits.call, "p", 0, 0, 50000, in_seconds(&c, 60)));
    cluster_pass(&c, 1);
    struct writer w = {0};
    pool_record(&w, 0, 0, 0);
    tnode_enter(&(struct tnode){.lane = c.lane});
    assert_int_equal(sched_records_restore_extra(c.scheduler, w.data, w.len), PARAMO_OK);
    tnode_leave(&(struct tnode){.lane = c.lane});
    writer_fini(&w);
    assert_int_equal(tcall_wait(&c, &waits), PARAMO_E_CANCELLED);
    assert_int_equal(report(&c, a, &unit.call.result.unit, false), PARAMO_E_NOT_FOUND);
    cluster_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_barrier_ends_in_turns),
        cmocka_unit_test(test_barrier_names_who_never_came),
        cmocka_unit_test(test_pool_answers_in_turns),
        cmocka_unit_test(test_values_are_copied_in_turns),
        cmocka_unit_test(test_values_arrive_in_turns),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_values_bounded),
        cmocka_unit_test(test_pool_order_and_affinity),
        cmocka_unit_test(test_round_begins_in_turns),
        cmocka_unit_test(test_few_looks_for_a_unit),
        cmocka_unit_test(test_calls_behind_long_waits),
        cmocka_unit_test(test_place_of_an_earlier_call),
        cmocka_unit_test(test_joins_of_one_sequence),
        cmocka_unit_test(test_damaged_pools),
        cmocka_unit_test(test_pools_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
