/* Clocks of workers: what counts, when a wait ends, and how. The scheduler's restart: test_restart.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_clock.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/support_simcluster.h"

struct one {
    struct tnode *node;
    uint64_t session;
};

static uint64_t join(struct cluster *c, struct one *worker, uint32_t customer)
{
    struct tcall t;
    TCALL(worker->node, &t, member_clock_join(worker->node->member, &t.call, customer, in_seconds(c, 5)));
    assert_int_equal(tcall_wait(c, &t), PARAMO_OK);
    worker->session = t.call.result.session;
    assert_int_equal(worker->session, clock_session(member_id(worker->node->member), t.call.call_number));
    return t.call.result.clock.minimum;
}

static paramo_err tell(struct cluster *c, const struct one *worker, uint64_t clock,
                       struct clock_result *result)
{
    struct tcall t;
    TCALL(worker->node, &t,
          member_clock_tell(worker->node->member, &t.call, worker->session, clock, in_seconds(c, 5)));
    paramo_err err = tcall_wait(c, &t);
    if (!err)
        *result = t.call.result.clock;
    return err;
}

static uint64_t told(struct cluster *c, const struct one *worker, uint64_t clock)
{
    struct clock_result result;
    assert_int_equal(tell(c, worker, clock, &result), PARAMO_OK);
    return result.minimum;
}

static void leave(struct cluster *c, const struct one *worker)
{
    struct tcall t;
    TCALL(worker->node, &t,
          member_clock_leave(worker->node->member, &t.call, worker->session, in_seconds(c, 5)));
    assert_int_equal(tcall_wait(c, &t), PARAMO_OK);
}

#define WAIT(c, worker, t, clock, seconds)                                                                   \
    TCALL((worker)->node, t,                                                                                 \
          member_clock_wait((worker)->node->member, &(t)->call, (worker)->session, clock,                    \
                            in_seconds(c, seconds)))

static void test_minimum(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 0, 3);
    struct one x = {&c.nodes[0], 0}, y = {&c.nodes[1], 0}, z = {&c.nodes[2], 0}, x1 = x;
    assert_int_equal(join(&c, &x, 0), 0);
    assert_int_equal(join(&c, &y, 0), 0);
    assert_int_equal(told(&c, &x, 2), 0);
    assert_int_equal(told(&c, &y, 1), 1);
    /* Again, and an old number: nothing changes. */
    assert_int_equal(told(&c, &y, 1), 1);
    assert_int_equal(told(&c, &x, 1), 1);
    struct clock_result last;
    assert_int_equal(tell(&c, &y, 4, &last), PARAMO_OK);
    assert_int_equal(last.minimum, 2);
    assert_int_equal(last.node, member_id(y.node->member)); /* it was the last at 1 */
    /* Those that join begin with the minimum. A second customer of a node is another worker. */
    assert_int_equal(join(&c, &z, 7), 2);
    assert_int_equal(join(&c, &x1, 1), 2);
    assert_int_equal(told(&c, &x, 5), 2);
    assert_int_equal(told(&c, &z, 5), 2);
    assert_int_equal(told(&c, &x1, 3), 3);
    /* The slowest leaves; once more is no mistake; what it says is not heard. */
    leave(&c, &x1);
    leave(&c, &x1);
    assert_int_equal(tell(&c, &x1, 9, &last), PARAMO_E_NOT_FOUND);
    assert_int_equal(told(&c, &x, 5), 4);
    /* A worker that joins again is taken for a new one: its old session is over. */
    struct one y2 = y;
    assert_int_equal(join(&c, &y2, 0), 5);
    assert_int_equal(tell(&c, &y, 9, &last), PARAMO_E_NOT_FOUND);
    assert_int_equal(told(&c, &y2, 6), 5);
    /* A session of another node is refused. */
    struct one thief = {x.node, y2.session};
    assert_int_equal(tell(&c, &thief, 9, &last), PARAMO_E_NOT_FOUND);
    /* With all gone the minimum stays. */
    leave(&c, &x);
    leave(&c, &y2);
    leave(&c, &z);
    assert_int_equal(c.scheduler->clocks->by_session.count, 0);
    assert_int_equal(join(&c, &x, 0), 5); /* of the last that left */
    cluster_fini(&c);
}

static void test_waits(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 1, 3);
    struct one x = {&c.nodes[1], 0}, y = {&c.nodes[2], 0}, z = {&c.nodes[3], 0};
    struct tcall t, u;
    join(&c, &x, 0);
    join(&c, &y, 0);
    join(&c, &z, 3);
    told(&c, &x, 4);
    told(&c, &y, 1);
    WAIT(&c, &x, &t, 1, 50);
    WAIT(&c, &x, &u, 2, 50);
    cluster_pass(&c, 1);
    assert_false(t.done || u.done);
    told(&c, &z, 5);
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    assert_int_equal(t.call.result.clock.minimum, 1);
    assert_int_equal(t.call.result.clock.node, member_id(z.node->member));
    assert_int_equal(t.call.result.clock.customer, 3);
    assert_false(u.done);
    told(&c, &y, 3);
    assert_int_equal(tcall_wait(&c, &u), PARAMO_OK);
    /* The error names those that are behind, their clocks, and the time. */
    WAIT(&c, &x, &t, 4, 2);
    assert_int_equal(tcall_wait(&c, &t), PARAMO_E_TIMEOUT);
    assert_string_equal(t.text,
                        "1 of 3 workers have not reached clock 4: worker 1 (node 11, host) is at clock 3; "
                        "waited 2000 ms");
    told(&c, &y, 6);
    WAIT(&c, &x, &t, 6, 2);
    assert_int_equal(tcall_wait(&c, &t), PARAMO_E_TIMEOUT);
    assert_non_null(strstr(t.text, "worker 2 (node 13, host), customer 3, is at clock 5"));
    /* A worker that leaves or dies delays no other worker: the wait ends when that is known. */
    told(&c, &x, 9);
    WAIT(&c, &x, &t, 6, 50);
    WAIT(&c, &x, &u, 9, 50);
    cluster_pass(&c, 1);
    assert_false(t.done || u.done);
    leave(&c, &z);
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    assert_false(u.done);
    uint64_t killed_at = lane_now(c.lane);
    cluster_kill(y.node);
    assert_int_equal(tcall_wait(&c, &u), PARAMO_OK);
    assert_true(lane_now(c.lane) - killed_at < ENV_SEC); /* its connection was reset */
    assert_int_equal(u.call.result.clock.minimum, 9);
    /* One that does not count waits for nothing. */
    leave(&c, &x);
    WAIT(&c, &x, &t, 10, 50);
    assert_int_equal(tcall_wait(&c, &t), PARAMO_E_NOT_FOUND);
    cluster_fini(&c);
}

/* A customer that waits for long does not hold up the calls of its node's other customers: they may be what it waits
 * for. */
static void test_long_wait(void **state)
{
    (void)state;
    enum { MANY = 256 };
    struct cluster c;
    cluster_start_all(&c, 0, 2);
    struct one x = {&c.nodes[0], 0}, y = x, other = {&c.nodes[1], 0};
    struct tcall t, u;
    join(&c, &x, 0);
    join(&c, &y, 1);
    told(&c, &x, 3 * MANY);
    uint64_t began = lane_now(c.lane);
    WAIT(&c, &x, &t, 2 * MANY, 50);
    for (uint64_t i = 1; i < 2 * MANY; i++)
        assert_int_equal(told(&c, &y, i), i);
    assert_false(t.done);
    assert_int_equal(told(&c, &y, 2 * MANY), 2 * MANY);
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    assert_int_equal(t.call.result.clock.minimum, 2 * MANY);
    assert_true(lane_now(c.lane) - began < 5 * ENV_SEC);
    /* It does not wait longer either for that: its own deadline counts, and the error names the worker that is
     * behind. */
    join(&c, &other, 0);
    told(&c, &y, 3 * MANY);
    began = lane_now(c.lane);
    WAIT(&c, &x, &t, 3 * MANY, 20);
    cluster_pass(&c, 1);
    for (uint64_t i = 0; i < MANY; i++)
        told(&c, &y, 3 * MANY);
    assert_int_equal(tcall_wait(&c, &t), PARAMO_E_TIMEOUT);
    assert_non_null(strstr(t.text, "worker 1 (node 11, host) is at clock 512"));
    assert_true(lane_now(c.lane) - began < 21 * ENV_SEC);
    /* More waits than the scheduler keeps: the one that is done ends, although it came last. */
    static struct tcall many[MANY];
    for (unsigned i = 0; i < MANY; i++)
        WAIT(&c, &x, &many[i], 3 * MANY, 50);
    began = lane_now(c.lane);
    WAIT(&c, &y, &u, 2 * MANY, 40);
    assert_int_equal(tcall_wait(&c, &u), PARAMO_OK);
    assert_true(lane_now(c.lane) - began < 10 * ENV_SEC);
    assert_int_equal(told(&c, &other, 3 * MANY), 3 * MANY);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(tcall_wait(&c, &many[i]), PARAMO_OK);
    cluster_fini(&c);
}

/* ---- many ---- */

static uint64_t joined(struct cluster *c, struct tnode *node, uint32_t customer)
{
    struct one worker = {node, 0};
    (void)join(c, &worker, customer);
    return worker.session;
}

static size_t waits_left(const struct cluster *c)
{
    size_t n = 0;
    for (const struct sched_call *call = c->scheduler->clocks->deferred.first; call; call = call->next)
        n++;
    return n;
}

/* A node has many customers that count, at different clocks. The minimum is right whichever of them leaves, and when
 * the node dies. */
static void test_many_of_a_node(void **state)
{
    (void)state;
    static struct one many[SCHED_NODE_CLOCKS_MAX];
    struct cluster c;
    struct tcall t;
    cluster_start_all(&c, 0, 2);
    struct one other = {&c.nodes[1], 0};
    join(&c, &other, 0);
    for (uint32_t i = 0; i < SCHED_NODE_CLOCKS_MAX; i++)
        many[i] = (struct one){&c.nodes[0], joined(&c, &c.nodes[0], i)};
    TCALL(&c.nodes[0], &t,
          member_clock_join(c.nodes[0].member, &t.call, SCHED_NODE_CLOCKS_MAX, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_E_FULL);
    assert_string_equal(t.text, "the limit of 1024 workers with a clock in one process is reached");
    told(&c, &other, 5000);
    for (uint32_t i = 0; i < SCHED_NODE_CLOCKS_MAX; i++) { /* 1 to 1,024, in another order than they joined */
        uint32_t at = i * 337 % SCHED_NODE_CLOCKS_MAX;
        assert_int_equal(told(&c, &many[at], at + 1), i + 1 < SCHED_NODE_CLOCKS_MAX ? 0 : 1);
    }
    assert_null(sched_clock_fault(c.scheduler));
    for (uint32_t i = 0; i < 300; i++) {
        leave(&c, &many[i]);
        assert_int_equal(c.scheduler->clocks->minimum, i + 2);
        leave(&c, &many[SCHED_NODE_CLOCKS_MAX - 1 - i]);
        assert_null(sched_clock_fault(c.scheduler));
    }
    WAIT(&c, &other, &t, 5000, 2);
    assert_int_equal(tcall_wait(&c, &t), PARAMO_E_TIMEOUT);
    assert_non_null(
        strstr(t.text, "424 of 425 workers have not reached clock 5000: worker 0 (node 9, host), customer "
                       "300, is at clock 301; "));
    assert_int_equal(joined(&c, &c.nodes[0], 400) >> 32, 9); /* it begins again */
    assert_null(sched_clock_fault(c.scheduler));
    WAIT(&c, &other, &t, 5000, 50);
    cluster_kill(&c.nodes[0]);
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    assert_int_equal(c.scheduler->clocks->by_session.count, 1);
    assert_null(sched_clock_fault(c.scheduler));
    cluster_fini(&c);
}

/* No step ends more than some waits. A node that dies in the middle takes its own with it. */
static void test_waits_end_in_turns(void **state)
{
    (void)state;
    enum { WAITS = 2000, MOST = SCHED_CLOCKS_TURN / SCHED_CLOCKS_ANSWER };
    static struct tcall waits[2][WAITS];
    struct cluster c;
    cluster_start_all(&c, 0, 3);
    struct one x = {&c.nodes[0], 0}, y = {&c.nodes[1], 0}, z = {&c.nodes[2], 0};
    struct tcall t, u;
    join(&c, &x, 0);
    join(&c, &y, 0);
    join(&c, &z, 0);
    told(&c, &x, 9);
    told(&c, &y, 9);
    for (unsigned i = 0; i < WAITS; i++) {
        WAIT(&c, &x, &waits[0][i], i % 4 ? 5 : 6, 50);
        WAIT(&c, &y, &waits[1][i], i % 2 ? 5 : 7, 50);
    }
    cluster_pass(&c, 1);
    assert_int_equal(waits_left(&c), 2 * WAITS);
    TCALL(z.node, &t, member_clock_tell(z.node->member, &t.call, z.session, 5, in_seconds(&c, 5)));
    TCALL(z.node, &u, member_clock_tell(z.node->member, &u.call, z.session, 6, in_seconds(&c, 5)));
    size_t before = 2 * WAITS, turns = 0;
    while (before > WAITS) {
        assert_true(sim_step(c.sim));
        assert_true(before - waits_left(&c) <= 2 * (MOST + 1));
        turns += waits_left(&c) < before;
        before = waits_left(&c);
    }
    assert_true(turns >= WAITS / MOST / 2);
    assert_true(c.scheduler->clocks->wake.timer.slot);
    cluster_kill(y.node);
    cluster_pass(&c, 1);
    for (unsigned i = 0; i < WAITS; i++)
        assert_int_equal(tcall_wait(&c, &waits[0][i]), PARAMO_OK);
    assert_int_equal(waits_left(&c), 0);
    assert_null(sched_clock_fault(c.scheduler));
    cluster_fini(&c);
}

/* A call of this node arrives, of a sequence that the member itself does not reach. */
static void arrives(struct cluster *c, const struct tnode *node, uint32_t what, uint64_t sequence,
                    struct writer *body, void (*handle)(struct sched_call *call, struct reader *body))
{
    struct wire_call head = {
        .kind = WIRE_CALL, .what = what, .number = sequence * CALL_PLACES + 100 + sequence % 10, .floor = 1};
    struct reader r = reader_over(body->data, body->len);
    assert_true(lane_enter(c->scheduler->config.lane));
    assert_int_equal(
        sched_calls_received(sched_roster_find(c->scheduler, member_id(node->member)), &head, &r, handle),
        PARAMO_OK);
    lane_leave(c->scheduler->config.lane);
    writer_fini(body);
}

static void join_arrives(struct cluster *c, const struct tnode *node, uint32_t customer, uint64_t sequence)
{
    struct writer w = {0};
    clock_join_encode(&(struct clock_join){.customer = customer}, &w);
    arrives(c, node, CALL_CLOCK_JOIN, sequence, &w, sched_clock_join);
}

static void leave_arrives(struct cluster *c, const struct tnode *node, uint64_t of, uint64_t sequence)
{
    struct writer w = {0};
    clock_leave_encode(
        &(struct clock_leave){.session = clock_session(member_id(node->member), of * CALL_PLACES)}, &w);
    arrives(c, node, CALL_CLOCK_LEAVE, sequence, &w, sched_clock_leave);
}

/* A join that was given up is overtaken by the goodbye to it, and by the next join of its customer: a late copy of it
 * neither counts forever nor takes the place of the customer's clock. */
static void test_late_join(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 0, 2);
    const struct sched_clocks *clocks = c.scheduler->clocks;
    struct one x = {&c.nodes[0], 0}, y = {&c.nodes[1], 0};
    assert_int_equal(join(&c, &x, 0), 0);
    leave_arrives(&c, y.node, 101, 102);
    join_arrives(&c, y.node, 0, 101);
    assert_int_equal(clocks->by_session.count, 1);

    join_arrives(&c, y.node, 0, 104);
    assert_int_equal(clocks->by_session.count, 2);
    join_arrives(&c, y.node, 0, 103);
    assert_int_equal(clocks->by_session.count, 2);
    assert_non_null(
        map_get(&clocks->by_session, clock_session(member_id(y.node->member), 104 * CALL_PLACES)));
    join_arrives(&c, y.node, 1, 99); /* of another customer: in order */
    assert_int_equal(clocks->by_session.count, 3);
    leave_arrives(&c, y.node, 99, 105);
    leave_arrives(&c, y.node, 104, 106);
    assert_int_equal(clocks->by_session.count, 1);
    assert_null(sched_clock_fault(c.scheduler));
    cluster_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_wait),
        cmocka_unit_test(test_minimum),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_many_of_a_node),
        cmocka_unit_test(test_waits_end_in_turns),
        cmocka_unit_test(test_late_join),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
