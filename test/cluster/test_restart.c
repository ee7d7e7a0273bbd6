/* A scheduler with a store is killed and started again: the job continues, and nothing that was answered is lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "cluster/member/admin_query.h"
#include "cluster/meta/store_dir.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_end.h"
#include "cluster/scheduler/sched_kv.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_pool.h"
#include "cluster/scheduler/sched_resume.h"
#include "cluster/scheduler/sched_ring.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_save.h"
#include "cluster/scheduler/sched_units.h"
#include "cluster/support_stored.h"

static double sum_of(struct tnode *node)
{
    struct tcall call;
    double sum;
    TCALL(node, &call, member_kv_get(node->member, &call.call, "sum", in_seconds(&stored.c, 50)));
    assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
    memcpy(&sum, call.value, sizeof sum);
    return sum;
}

static bool has_newer_view(void *arg)
{
    struct tnode *node = arg;
    return member_view(node->member)->number > *(const uint64_t *)node->arg;
}

static void test_goes_on(void **state)
{
    (void)state;
    stored_on(2, 2);
    struct tnode *a = &stored.c.nodes[2], *b = &stored.c.nodes[3];
    struct tcall call, other;
    uint32_t ids[4];
    for (int i = 0; i < 4; i++)
        ids[i] = member_id(stored.c.nodes[i].member);
    paramo_table_options options = {.size = sizeof options, .kind = PARAMO_TABLE_SPARSE, .dim = 1};
    TCALL(a, &call, member_table_open(a->member, &call.call, "table", &options, in_seconds(&stored.c, 50)));
    assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
    uint32_t table = call.call.result.table;
    for (int round = 1; round < 6; round++) {
        uint64_t number = member_view(a->member)->number;
        const double one = 1;
        /* One is in progress when it dies, one begins while it is away. */
        TCALL(a, &call, member_kv_add(a->member, &call.call, "sum", &one, 1, in_seconds(&stored.c, 50)));
        if (round % 2)
            cluster_pass(&stored.c, 0.001 * round);
        stored_scheduler_off(round % 3 == 0);
        TCALL(b, &other, member_kv_add(b->member, &other.call, "sum", &one, 1, in_seconds(&stored.c, 50)));
        cluster_pass(&stored.c, 0.1 * round);
        stored_scheduler_on();
        assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
        assert_int_equal(tcall_wait(&stored.c, &other), PARAMO_OK);
        assert_true(sum_of(b) == 2.0 * round);
        for (int i = 0; i < 4; i++) {
            assert_false(stored.c.nodes[i].ended);
            assert_int_equal(member_id(stored.c.nodes[i].member), ids[i]);
        }
        a->arg = &number;
        assert_true(cluster_run(&stored.c, has_newer_view, a, 5));
        assert_int_equal(member_view(a->member)->number >> 32, round + 1); /* the term */
        assert_non_null(view_table(member_view(a->member), table));
    }
    cluster_pass(&stored.c, 15); /* no node is declared dead */
    for (uint32_t i = 0; i < member_view(a->member)->nodes_count; i++)
        assert_true(member_view(a->member)->nodes[i].alive);
    for (int i = 3; i >= 0; i--)
        cluster_leave(&stored.c.nodes[i]);
    assert_true(cluster_run(&stored.c, cluster_over, &stored.c, 10));
    assert_int_equal(stored.c.over_status, PARAMO_OK);
    stored_off();
}

/* Clocks survive it, and so do waits; those of a node that has died by then do not. */
static void test_clocks(void **state)
{
    (void)state;
    stored_on(0, 3);
    struct tnode *node[3] = {&stored.c.nodes[0], &stored.c.nodes[1], &stored.c.nodes[2]};
    uint64_t session[3];
    struct tcall call, wait;
    for (int i = 0; i < 3; i++) {
        TCALL(node[i], &call, member_clock_join(node[i]->member, &call.call, 0, in_seconds(&stored.c, 50)));
        assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
        session[i] = call.call.result.session;
    }
    for (uint64_t clock = 1; clock < 4; clock++) {
        for (int i = 0; i < 2; i++) {
            TCALL(
                node[i], &call,
                member_clock_tell(node[i]->member, &call.call, session[i], clock, in_seconds(&stored.c, 50)));
            assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
        }
        TCALL(node[0], &wait,
              member_clock_wait(node[0]->member, &wait.call, session[0], clock, in_seconds(&stored.c, 50)));
        cluster_pass(&stored.c, 0.05);
        stored_scheduler_off(true);
        stored_scheduler_on();
        cluster_pass(&stored.c, 1);
        assert_false(wait.done);
        TCALL(node[2], &call,
              member_clock_tell(node[2]->member, &call.call, session[2], clock, in_seconds(&stored.c, 50)));
        assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
        assert_int_equal(call.call.result.clock.minimum, clock);
        assert_int_equal(tcall_wait(&stored.c, &wait), PARAMO_OK);
    }
    TCALL(node[0], &call,
          member_clock_tell(node[0]->member, &call.call, session[0], 9, in_seconds(&stored.c, 50)));
    assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
    TCALL(node[1], &call,
          member_clock_leave(node[1]->member, &call.call, session[1], in_seconds(&stored.c, 50)));
    assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
    TCALL(node[0], &wait,
          member_clock_wait(node[0]->member, &wait.call, session[0], 9, in_seconds(&stored.c, 50)));
    cluster_pass(&stored.c, 0.05);
    stored_scheduler_off(true);
    cluster_kill(node[2]);
    stored_scheduler_on();
    assert_int_equal(tcall_wait(&stored.c, &wait), PARAMO_OK);
    assert_int_equal(wait.call.result.clock.minimum, 9);
    stored_off();
}

/* Its barrier, parts and their holders; a barrier is entered before and released after. */
static void test_what_is_shared(void **state)
{
    (void)state;
    stored_on(0, 2);
    struct tnode *a = &stored.c.nodes[0], *b = &stored.c.nodes[1];
    struct tcall one, two;
    for (uint64_t number = 1; number < 5; number++) {
        TCALL(a, &one,
              member_barrier(a->member, &one.call, PARAMO_GROUP_WORKERS, 0, in_seconds(&stored.c, 50)));
        cluster_pass(&stored.c, 0.05);
        assert_false(one.done);
        stored_scheduler_off(true);
        stored_scheduler_on();
        TCALL(b, &two,
              member_barrier(b->member, &two.call, PARAMO_GROUP_WORKERS, 0, in_seconds(&stored.c, 50)));
        assert_int_equal(tcall_wait(&stored.c, &one), PARAMO_OK);
        assert_int_equal(tcall_wait(&stored.c, &two), PARAMO_OK);
        assert_int_equal(one.call.result.number, number);
        assert_int_equal(two.call.result.number, number);
    }
    enum { UNITS = 200, ROUNDS = 2 };
    static bool done[ROUNDS][UNITS];
    memset(done, 0, sizeof done);
    TCALL(a, &one, member_pool_open(a->member, &one.call, "pool", 1, ROUNDS, in_seconds(&stored.c, 50)));
    assert_int_equal(tcall_wait(&stored.c, &one), PARAMO_OK);
    unsigned steps = 0;
    for (uint32_t round = 0; round < ROUNDS;) {
        struct tnode *node = steps % 2 ? a : b;
        TCALL(node, &one,
              member_pool_next(node->member, &one.call, "pool", 0, round, 0, in_seconds(&stored.c, 50)));
        if (steps % 37 == 0)
            stored_scheduler_off(steps % 2), stored_scheduler_on();
        assert_int_equal(tcall_wait(&stored.c, &one), PARAMO_OK);
        if (one.call.result.state == POOL_FINISHED) {
            round++;
            continue;
        }
        assert_int_equal(one.call.result.state, POOL_GOT);
        struct work_unit unit = one.call.result.unit;
        bool there = unit.index < UNITS;
        if (there) {
            assert_false(done[round][unit.index]);
            done[round][unit.index] = true;
        }
        TCALL(node, &one,
              there ? member_pool_done(node->member, &one.call, "pool", &unit, in_seconds(&stored.c, 50))
                    : member_pool_end(node->member, &one.call, "pool", &unit, in_seconds(&stored.c, 50)));
        if (steps % 41 == 0)
            stored_scheduler_off(steps % 2), stored_scheduler_on();
        assert_int_equal(tcall_wait(&stored.c, &one), PARAMO_OK);
        steps++;
    }
    for (unsigned i = 0; i < ROUNDS * UNITS; i++)
        assert_true(done[i / UNITS][i % UNITS]);
    stored_off();
}

/* The scheduler dies while it releases a barrier in turns, or while it sends the answers that a save has released:
 * each node is released once, by the number of that barrier. */
static void test_barrier_in_turns(void **state)
{
    (void)state;
    enum { NODES = 12 };
    struct tcall calls[NODES], other;
    unsigned unsaved = 0;
    stored_on(0, NODES);
    struct tnode *node = stored.c.nodes;
    for (unsigned number = 1; number < 30; number++) {
        stored.c.scheduler->calls->most = 1;
        for (unsigned i = 0; i < NODES; i++)
            TCALL(&node[i], &calls[i],
                  member_barrier(node[i].member, &calls[i].call, PARAMO_GROUP_WORKERS, 0,
                                 in_seconds(&stored.c, 50)));
        TCALL(&node[0], &other,
              member_kv_put(node[0].member, &other.call, "key", "x", 2, in_seconds(&stored.c, 50)));
        while (!sched_calls_hold_save(stored.c.scheduler))
            assert_true(sim_step(stored.c.sim));
        uint64_t begun = stored.c.scheduler->saves->begun;
        for (unsigned i = 0; i < 3 * number; i++) {
            assert_true(!sched_calls_hold_save(stored.c.scheduler) ||
                        stored.c.scheduler->saves->begun == begun);
            assert_true(sim_step(stored.c.sim));
        }
        unsaved += sched_calls_hold_save(stored.c.scheduler);
        stored_scheduler_off(number % 2);
        stored_scheduler_on();
        for (unsigned i = 0; i < NODES; i++) {
            assert_int_equal(tcall_wait(&stored.c, &calls[i]), PARAMO_OK);
            assert_int_equal(calls[i].call.result.number, number);
        }
        assert_int_equal(tcall_wait(&stored.c, &other), PARAMO_OK);
    }
    assert_true(unsaved > 1 && unsaved < 25);
    stored_off();
}

static struct work_unit unit_of(struct tnode *node, uint32_t round)
{
    struct tcall call;
    TCALL(node, &call,
          member_pool_next(node->member, &call.call, "pool", 0, round, 20000, in_seconds(&stored.c, 50)));
    assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
    assert_int_equal(call.call.result.state, POOL_GOT);
    assert_int_equal(call.call.result.unit.round, round);
    return call.call.result.unit;
}

/* The scheduler dies between two turns that prepare a round. Its successor finds a round in which all is done, and
 * begins the next one. */
static void test_round_in_turns(void **state)
{
    (void)state;
    enum { UNITS = 12, ROUNDS = 3 };
    struct tcall call;
    for (int store = 0; store < 2; store++) {
        stored_on(0, 1);
        struct tnode *a = &stored.c.nodes[0];
        TCALL(a, &call,
              member_pool_open(a->member, &call.call, "pool", 1, ROUNDS, in_seconds(&stored.c, 50)));
        assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
        for (uint32_t round = 0; round < ROUNDS; round++) {
            for (unsigned i = 0; i < UNITS; i++) {
                struct work_unit unit = unit_of(a, round);
                assert_int_equal(unit.index, i);
                if (!round && i + 1 == UNITS) {
                    struct work_unit beyond = unit_of(a, round);
                    TCALL(a, &call,
                          member_pool_end(a->member, &call.call, "pool", &beyond, in_seconds(&stored.c, 50)));
                    assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
                }
                stored.c.scheduler->pools->most = 1;
                stored.c.scheduler->calls->pause = ENV_SEC;
                TCALL(a, &call,
                      member_pool_done(a->member, &call.call, "pool", &unit, in_seconds(&stored.c, 50)));
                assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
            }
            const struct sched_pool *pool = stored.c.scheduler->pools->first;
            assert_int_equal(pool->chaining, round + 1 < ROUNDS);
            assert_int_equal(pool->round, round + (round + 1 == ROUNDS));
            stored_scheduler_off(store);
            stored_scheduler_on();
        }
        stored_off();
    }
}

/* All is saved in turns, while values change, come and go and barriers are released; then the scheduler dies. What was
 * acknowledged before is there afterwards, as it was last. */
static void test_whole_save_in_turns(void **state)
{
    (void)state;
    enum { KEYS = 200, MOST = 3 };
    struct tcall call, more[3], barrier[2];
    char key[16];
    unsigned value[KEYS] = {0}, turns = 0;
    stored_on(0, 2);
    struct tnode *a = &stored.c.nodes[0], *b = &stored.c.nodes[1];
    for (unsigned k = 0; k < KEYS; k++) {
        (void)snprintf(key, sizeof key, "k%u", k);
        TCALL(a, &call,
              member_kv_put(a->member, &call.call, key, &value[k], sizeof *value, in_seconds(&stored.c, 50)));
        assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
    }
    for (unsigned round = 1; round < 25; round++) {
        struct sched_saves *saves = stored.c.scheduler->saves;
        saves->most = MOST;
        saves->pause = ENV_MS / 10;
        assert_true(lane_enter(stored.c.lane));
        sched_save_all(stored.c.scheduler);
        sched_save_retry(stored.c.scheduler);
        lane_leave(stored.c.lane);
        assert_true(saves->writing.on && saves->writing.whole);
        uint64_t ended = saves->ended;
        for (unsigned i = 0; i < 3 * round; i++) {
            size_t len = saves->writing.on ? saves->writing.run.w.len : 0;
            assert_true(sim_step(stored.c.sim));
            bool on = saves->writing.on && saves->writing.run.w.len > len;
            turns += on;
            assert_true(!on || saves->writing.run.w.len - len < (size_t)2 * (MOST + 8) * 64);
        }
        /* Some of these keys are written by now, and some are not. */
        for (unsigned i = 0; i < 3; i++) {
            unsigned k = (round * 37 + i * 61) % KEYS;
            value[k] = i == 2 ? 0 : round;
            (void)snprintf(key, sizeof key, "k%u", k);
            TCALL(b, &more[i],
                  i == 2 ? member_kv_delete(b->member, &more[i].call, key, in_seconds(&stored.c, 50))
                         : member_kv_put(b->member, &more[i].call, key, &value[k], sizeof *value,
                                         in_seconds(&stored.c, 50)));
        }
        for (unsigned i = 0; i < 2; i++)
            TCALL(&stored.c.nodes[i], &barrier[i],
                  member_barrier(stored.c.nodes[i].member, &barrier[i].call, PARAMO_GROUP_WORKERS, 0,
                                 in_seconds(&stored.c, 50)));
        if (round % 2)
            for (unsigned i = 0; i < 3; i++)
                assert_int_equal(tcall_wait(&stored.c, &more[i]), PARAMO_OK);
        else
            while (saves->ended == ended && saves->begun == ended)
                assert_true(sim_step(stored.c.sim));
        stored_scheduler_off(true);
        stored_scheduler_on();
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(tcall_wait(&stored.c, &more[i]), PARAMO_OK);
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(tcall_wait(&stored.c, &barrier[i]), PARAMO_OK);
            assert_int_equal(barrier[i].call.result.number, round);
        }
        for (unsigned k = round % 7; k < KEYS; k += 7) {
            unsigned got = 0;
            (void)snprintf(key, sizeof key, "k%u", k);
            TCALL(a, &call, member_kv_get(a->member, &call.call, key, in_seconds(&stored.c, 0.5)));
            paramo_err err = tcall_wait(&stored.c, &call);
            memcpy(&got, call.value, sizeof got);
            assert_true(err == PARAMO_E_TIMEOUT ? value[k] == 0 : !err && got == value[k]);
        }
    }
    assert_true(turns > 200);
    stored_off();
}

/* A worker keeps its work unit; if it does not come back within heartbeat_timeout, another worker gets the unit. */
static void test_a_node_that_does_not_return(void **state)
{
    (void)state;
    stored_on(1, 2);
    struct tnode *a = &stored.c.nodes[1], *b = &stored.c.nodes[2];
    struct tcall call;
    TCALL(a, &call, member_pool_open(a->member, &call.call, "pool", 1, 1, in_seconds(&stored.c, 50)));
    assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
    TCALL(a, &call, member_pool_next(a->member, &call.call, "pool", 0, 0, 0, in_seconds(&stored.c, 50)));
    assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
    assert_int_equal(call.call.result.unit.index, 0);
    stored_scheduler_off(true);
    cluster_kill(a);
    stored_scheduler_on();
    TCALL(b, &call, member_pool_next(b->member, &call.call, "pool", 0, 0, 0, in_seconds(&stored.c, 50)));
    assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
    assert_int_equal(call.call.result.unit.index, 1); /* 0 is still a's */
    cluster_pass(&stored.c, 9);
    assert_true(view_node(member_view(b->member), PARAMO_ID_WORKER(0))->alive);
    cluster_pass(&stored.c, 3);
    assert_false(view_node(member_view(b->member), PARAMO_ID_WORKER(0))->alive);
    TCALL(b, &call, member_pool_next(b->member, &call.call, "pool", 0, 0, 0, in_seconds(&stored.c, 50)));
    assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
    assert_int_equal(call.call.result.unit.index, 0);
    stored_off();
}

/* Loses the first packet of a connection after its WELCOME, and counts what comes this way. */
struct loser {
    const struct simnet_link *link;
    unsigned packets;
};

static struct simnet_fate lose_second(void *arg, struct simnet_link *link)
{
    struct loser *l = arg;
    bool lost = link == l->link && ++l->packets == 2;
    return (struct simnet_fate){.copies = !lost, .delay = {ENV_MS, ENV_MS}};
}

/* A server's answer to REGISTER is lost. It has a place by a view, and serves by that view, when it loses the
 * scheduler; another gets the place, and the scheduler is started again. The next one has not heard of the first,
 * which must not get a place again: it was declared dead. */
static void test_a_place_that_was_not_answered(void **state)
{
    (void)state;
    stored_on(1, 1);
    struct tnode *late = &stored.c.nodes[2], *other = &stored.c.nodes[3];
    cluster_kill(&stored.c.nodes[0]);
    cluster_pass(&stored.c, 2);
    struct member_config config = cluster_member_config(&stored.c, late, SERVER);
    struct simnet_node *from, *to;
    struct simnet_link *out, *back;
    assert_int_equal(simnet_node(stored.c.net, "scheduler", &from), PARAMO_OK);
    assert_int_equal(simnet_node(stored.c.net, "n2", &to), PARAMO_OK);
    assert_int_equal(simnet_link(stored.c.net, from, to, &out), PARAMO_OK);
    assert_int_equal(simnet_link(stored.c.net, to, from, &back), PARAMO_OK);
    van_sim_set_faulty(stored.c.van, 1u << VAN_CONTROL);
    struct loser loser = {.link = out};
    simnet_set_decider(stored.c.net, lose_second, &loser);
    cluster_start_config(late, &config);
    cluster_pass(&stored.c, 1);
    simnet_set_decider(stored.c.net, NULL, NULL);
    const struct view_node *place = view_node(member_view(late->member), PARAMO_ID_SERVER(0));
    assert_true(place->alive && place->incarnation == config.incarnation);
    assert_false(late->joined);
    out->cut = back->cut = true;
    van_sim_reset(late->van, UINT32_MAX);
    cluster_pass(&stored.c, 1);
    cluster_start(&stored.c, other, SERVER);
    assert_true(cluster_run(&stored.c, tnode_joined, other, 3));
    assert_int_equal(other->joined_status, PARAMO_OK);
    stored_scheduler_off(true);
    out->cut = back->cut = false;
    stored_scheduler_on();
    assert_true(cluster_run(&stored.c, tnode_joined, late, 10));
    assert_int_equal(late->joined_status, PARAMO_E_FENCED);
    stored_off();
}

/* Two of three servers do not come back, and the third is to be drained: it is dropped where the second has
 * the rows, too, in the same moment in which the second dies. No view has told it so: it has them still. */
static void all_others_die_at_once(void **state)
{
    (void)state;
    stored_on_copied(3, 1, 1);
    struct tnode *third = &stored.c.nodes[2], *worker = &stored.c.nodes[3];
    struct tcall call;
    paramo_table_options options = {.size = sizeof options, .dim = 1, .replicas = PARAMO_REPLICAS_OF_JOB};
    unsigned lost = 0;
    char text[64];
    TCALL(worker, &call,
          member_table_open(worker->member, &call.call, "t", &options, in_seconds(&stored.c, 50)));
    assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
    stored_scheduler_off(true);
    cluster_kill(&stored.c.nodes[0]);
    cluster_kill(&stored.c.nodes[1]);
    stored_scheduler_on();
    TCALL(third, &call, member_drain(third->member, &call.call, in_seconds(&stored.c, 9)));
    assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
    const struct ring_chains *chains = &member_view(third->member)->chains;
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        lost += chains->level[0].owner[a] < 4 && chains->level[1].owner[a] < 4; /* of two shards each */
    assert_in_range(lost, 1, RING_PARTITIONS / 2);
    struct view *before = view_ref(member_view(third->member));
    assert_true(cluster_run(&stored.c, cluster_over, &stored.c, 20));
    for (size_t a = 0; a < RING_PARTITIONS; a++) { /* where it was the owner it is again, and has all rows */
        bool own = before->shards[view_ring(before)->owner[a]].node == member_id(third->member);
        assert_true((stored.c.scheduler->ring->owner_gone[a] == 0) == own);
    }
    view_unref(before);
    assert_int_equal(stored.c.over_status, PARAMO_E_DATA_LOST);
    snprintf(text, sizeof text, "table t %.1f %% of the keys", 100.0 * lost / RING_PARTITIONS);
    assert_non_null(strstr(stored.c.over_text, text));
    stored_off();
}

/* The next scheduler knows when owners were gone: a server that comes with the view of tables opened between
 * two deaths has lost what each death took, and no more. */
static void owners_that_were_gone(void **state)
{
    (void)state;
    stored_on_copied(4, 1, 2);
    struct tnode *worker = &stored.c.nodes[4];
    struct tcall call;
    uint64_t number;
    worker->arg = &number;
    for (unsigned death = 0; death < 2; death++) {
        struct view *before = view_ref(member_view(worker->member));
        uint32_t dead = member_id(stored.c.nodes[death].member);
        cluster_kill(&stored.c.nodes[death]);
        number = before->number;
        assert_true(cluster_run(&stored.c, has_newer_view, worker, 20));
        const struct view *view = member_view(worker->member);
        assert_false(view_node(view, dead)->alive);
        for (size_t a = 0; a < RING_PARTITIONS; a++) {
            bool gone = before->shards[view_ring(before)->owner[a]].node == dead;
            if (gone)
                assert_in_range(view->owner_gone[a], before->number + 1, view->number);
            else
                assert_int_equal(view->owner_gone[a], before->owner_gone[a]);
        }
        struct view *after = view_ref(member_view(worker->member));
        paramo_table_options options = {.size = sizeof options, .dim = 1};
        const char *name = death ? "second" : "first";
        TCALL(worker, &call,
              member_table_open(worker->member, &call.call, name, &options, in_seconds(&stored.c, 50)));
        assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
        const struct view_table *table = view_table_named(member_view(worker->member), name);
        for (size_t a = 0; a < RING_PARTITIONS; a++)
            assert_true(table->since > after->owner_gone[a]);
        stored_scheduler_off(true);
        number = member_view(worker->member)->number;
        stored_scheduler_on();
        assert_true(cluster_run(&stored.c, has_newer_view, worker, 10));
        assert_memory_equal(member_view(worker->member)->owner_gone, after->owner_gone,
                            sizeof after->owner_gone);
        view_unref(before);
        view_unref(after);
    }
    assert_false(stored.c.over);
    stored_off();
}

struct asked {
    bool over;
    paramo_err status;
};

static void asked_over(void *arg, paramo_err status, struct admin_query_result *result)
{
    (void)result;
    *(struct asked *)arg = (struct asked){.over = true, .status = status};
}

static bool asked_is_over(void *arg)
{
    return ((struct asked *)arg)->over;
}

/* An observer that was told that a server is being drained may go: the next scheduler knows it. */
static void test_drain_is_durable(void **state)
{
    (void)state;
    stored_on(2, 1);
    struct tnode *worker = &stored.c.nodes[2], *admin_client = &stored.c.nodes[9];
    struct asked asked = {0};
    struct admin_query *admin_query;
    struct van *van;
    uint64_t number = 0;
    assert_int_equal(van_sim_create(stored.c.net, "observer", &van), PARAMO_OK);
    stored.c.old_vans[stored.c.old_count++] = van;
    struct admin_query_config config = {.van = van,
                                        .lane = admin_client->lane,
                                        .scheduler = "scheduler:1",
                                        .token = "token",
                                        .incarnation = 99,
                                        .deadline = in_seconds(&stored.c, 10),
                                        .drain = PARAMO_ID_SERVER(1),
                                        .done = asked_over,
                                        .arg = &asked};
    tnode_enter(admin_client);
    assert_int_equal(admin_query_start(&config, &admin_query), PARAMO_OK);
    tnode_leave(admin_client);
    assert_true(cluster_run(&stored.c, asked_is_over, &asked, 20));
    assert_int_equal(asked.status, PARAMO_OK);
    stored_scheduler_off(true);
    number = member_view(worker->member)->number;
    stored_scheduler_on();
    worker->arg = &number;
    assert_true(cluster_run(&stored.c, has_newer_view, worker, 10));
    assert_int_equal(view_node(member_view(worker->member), PARAMO_ID_SERVER(0))->weight, 1);
    assert_int_equal(view_node(member_view(worker->member), PARAMO_ID_SERVER(1))->weight, 0);
    stored_off();
}

/* A disk that takes nothing: calls wait until it does, nothing is said before, and nothing is lost. */
static void test_disk_full(void **state)
{
    (void)state;
    stored_on(0, 2);
    struct tnode *a = &stored.c.nodes[0], *b = &stored.c.nodes[1];
    const double one = 1;
    struct tcall call;
    log_set_sink(stored_log_nothing, NULL);
    for (uint64_t step = 0; step < 12; step++) {
        simfs_plan(stored.disk, step % 2 ? SIMFS_FAIL : SIMFS_HALF, simfs_steps(stored.disk) + step / 4);
        TCALL(a, &call, member_kv_add(a->member, &call.call, "sum", &one, 1, in_seconds(&stored.c, 50)));
        assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
        if (step % 3 == 0) {
            stored_scheduler_off(true);
            stored_scheduler_on();
        }
        assert_true(sum_of(b) == (double)(step + 1));
    }
    log_set_sink(NULL, NULL);
    stored_off();
}

/* A call that is answered while a save is in progress that fails: the save after it has its change, and no other save
 * need follow. */
static void test_answered_during_a_save_that_fails(void **state)
{
    (void)state;
    stored_on(0, 2);
    struct tnode *a = &stored.c.nodes[0], *b = &stored.c.nodes[1];
    struct tcall first, second;
    cluster_pass(&stored.c, 1);
    const struct sched_saves *saves = stored.c.scheduler->saves;
    log_set_sink(stored_log_nothing, NULL);
    simfs_plan(stored.disk, SIMFS_FAIL, simfs_steps(stored.disk));
    TCALL(a, &first, member_kv_put(a->member, &first.call, "a", "x", 1, in_seconds(&stored.c, 50)));
    while (saves->ended == saves->begun)
        assert_true(sim_step(stored.c.sim));
    TCALL(b, &second, member_kv_put(b->member, &second.call, "b", "x", 1, in_seconds(&stored.c, 50)));
    while (sched_kv_count(stored.c.scheduler) < 2)
        assert_true(sim_step(stored.c.sim));
    assert_true(saves->ended < saves->begun && !saves->failing); /* the second was answered in time */
    assert_int_equal(tcall_wait(&stored.c, &first), PARAMO_OK);
    assert_int_equal(tcall_wait(&stored.c, &second), PARAMO_OK);
    log_set_sink(NULL, NULL);
    stored_off();
}

/* The member of the scheduler's own process has left; that of the next scheduler takes its place, and leaves. */
static void test_own_member_leaves_twice(void **state)
{
    (void)state;
    stored_init(0, 1);
    stored.c.config.own_member = true;
    struct tnode *worker = &stored.c.nodes[0], *own = &stored.c.nodes[1];
    stored_scheduler_on();
    cluster_start(&stored.c, worker, WORKER);
    for (int i = 0; i < 2; i++) {
        cluster_start(&stored.c, own, PARAMO_ROLE_SCHEDULER);
        assert_true(cluster_run(&stored.c, tnode_joined, own, 5));
        assert_true(cluster_run(&stored.c, tnode_joined, worker, 5));
        cluster_leave(own);
        cluster_pass(&stored.c, 1);
        assert_int_equal(stored.c.scheduler->roster->slots[SLOTS_SCHEDULER].gone, 1);
        cluster_kill(own);
        stored_scheduler_off(false);
        stored_scheduler_on();
    }
    stored_off();
}

/* A node that has seen a newer view than the store has (which was put back from a copy, say). */
static void test_view_above(void **state)
{
    (void)state;
    stored_on(0, 2);
    struct tnode *a = &stored.c.nodes[0];
    stored_scheduler_off(true);
    tnode_enter(a);
    struct view *seen = member_view(a->member);
    uint64_t newer = (UINT64_C(7) << 32) + 5;
    *(uint64_t *)(uintptr_t)&seen->number = newer;
    tnode_leave(a);
    stored_scheduler_on();
    cluster_pass(&stored.c, 3);
    assert_true(member_view(a->member)->number > newer);
    assert_true(member_view(stored.c.nodes[1].member)->number > newer);
    stored_scheduler_off(
        true); /* the next one's term is below that view's: servers must see that it is another */
    stored_scheduler_on();
    cluster_pass(&stored.c, 3);
    uint64_t term = member_view(a->member)->number >> 32;
    assert_true(term > newer >> 32);
    assert_int_equal(stored.c.scheduler->migrations->machine.next_id >> 32, term);
    stored_off();
}

/* Nothing that a node says brings the job's numbers near their end: it has to be a view that there may have
 * been. */
static void test_no_such_view(void **state)
{
    (void)state;
    static const uint64_t numbers[] = {UINT64_MAX, (UINT64_C(1) << 63) - 1, UINT64_C(2000) << 32,
                                       (UINT64_C(1026) << 32) + UINT32_MAX};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        stored_on(0, 2);
        struct tnode *a = &stored.c.nodes[0];
        bool may_be = i == 3; /* the second scheduler's, and 1,024 after it */
        stored_scheduler_off(true);
        tnode_enter(a);
        *(uint64_t *)(uintptr_t)&member_view(a->member)->number = numbers[i];
        tnode_leave(a);
        stored_scheduler_on();
        cluster_pass(&stored.c, 3);
        assert_int_equal(a->ended, !may_be);
        assert_true(may_be || a->ended_status == PARAMO_E_REFUSED);
        assert_int_equal(member_view(stored.c.nodes[1].member)->number >> 32, may_be ? 1027 : 2);
        stored_scheduler_off(true); /* nor is it in the store */
        stored_scheduler_on();
        cluster_pass(&stored.c, 3);
        assert_int_equal(member_view(stored.c.nodes[1].member)->number >> 32, may_be ? 1028 : 3);
        stored_off();
    }
}

/* When the job is over its store is for another. */
static void test_next_job(void **state)
{
    (void)state;
    stored_on(0, 1);
    uint64_t job = member_view(stored.c.nodes[0].member)->job;
    cluster_leave(&stored.c.nodes[0]);
    assert_true(cluster_run(&stored.c, cluster_over, &stored.c, 10));
    cluster_kill(&stored.c.nodes[0]);
    stored_scheduler_off(true);
    stored_scheduler_on();
    cluster_start(&stored.c, &stored.c.nodes[1], WORKER);
    assert_true(cluster_run(&stored.c, tnode_joined, &stored.c.nodes[1], 5));
    assert_int_equal(stored.c.nodes[1].joined_status, PARAMO_OK);
    assert_true(member_view(stored.c.nodes[1].member)->job != job);
    assert_int_equal(member_view(stored.c.nodes[1].member)->number >> 32, 2);
    stored_off();
}

/* Away for ten minutes: the others give it up, and not before. */
static void test_never_comes_back(void **state)
{
    (void)state;
    stored_on(0, 1);
    stored_scheduler_off(false);
    cluster_pass(&stored.c, 590);
    assert_false(stored.c.nodes[0].ended);
    assert_true(cluster_run(&stored.c, tnode_ended, &stored.c.nodes[0], 20));
    assert_int_equal(stored.c.nodes[0].ended_status, PARAMO_E_NO_SCHEDULER);
    stored_scheduler_on();
    stored_off();
}

/* A stored view that no scheduler writes: it would have places made for more nodes than there can be. */
static void test_more_places_than_nodes(void **state)
{
    (void)state;
    stored_on(1, 1);
    struct view *view = calloc(1, sizeof *view);
    assert_non_null(view);
    const uint32_t many[][2] = {{0, UINT32_MAX}, {UINT32_MAX, UINT32_MAX}, {1, VIEW_NODES_MAX}};
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        view->num_servers = many[i][0];
        view->num_workers = many[i][1];
        assert_int_equal(sched_resume_nodes(stored.c.scheduler, view), PARAMO_E_CORRUPT);
        assert_non_null(strstr(err_text(), "at most 10000 nodes"));
    }
    free(view);
    stored_off();
}

/* A node has CALL_PLACES calls in flight; one that is given up makes room. The next scheduler gets all of them. */
static void test_calls_in_flight(void **state)
{
    (void)state;
    stored_on(0, 2);
    struct tnode *a = &stored.c.nodes[0], *b = &stored.c.nodes[1];
    struct tcall *gets = calloc(CALL_PLACES, sizeof *gets), call;
    assert_non_null(gets);
    for (unsigned i = 0; i < CALL_PLACES; i++)
        TCALL(a, &gets[i], member_kv_get(a->member, &gets[i].call, "later", in_seconds(&stored.c, 90)));
    cluster_pass(&stored.c, 3);
    tcall_init(&call);
    tnode_enter(a);
    assert_int_equal(member_kv_get(a->member, &call.call, "none", in_seconds(&stored.c, 9)), PARAMO_E_AGAIN);
    assert_string_equal(err_text(), "4096 calls to the scheduler are in flight; wait for one of them");
    member_cancel(a->member, &gets[7].call);
    tnode_leave(a);
    assert_int_equal(gets[7].status, PARAMO_E_CANCELLED);
    const double one = 1;
    TCALL(a, &call, member_kv_add(a->member, &call.call, "sum", &one, 1, in_seconds(&stored.c, 9)));
    assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
    stored_scheduler_off(false);
    stored_scheduler_on();
    TCALL(a, &call, member_kv_add(a->member, &call.call, "sum", &one, 1, in_seconds(&stored.c, 50)));
    assert_int_equal(tcall_wait(&stored.c, &call), PARAMO_OK);
    assert_true(sum_of(b) == 2);
    TCALL(b, &call, member_kv_put(b->member, &call.call, "later", "x", 1, in_seconds(&stored.c, 9)));
    for (unsigned i = 0; i < CALL_PLACES; i++)
        assert_int_equal(tcall_wait(&stored.c, &gets[i]), i == 7 ? PARAMO_E_CANCELLED : PARAMO_OK);
    free(gets);
    stored_off();
}

/* A node that waits for a place loses its connection with the others; its own time comes later, and finds nothing. */
static void test_deposed_while_a_node_waits(void **state)
{
    (void)state;
    stored_init(2, 1);
    stored_scheduler_on();
    cluster_start(&stored.c, &stored.c.nodes[0], SERVER);
    cluster_pass(&stored.c, 1);
    assert_non_null(stored.c.scheduler->roster->waiting_first);
    assert_true(lane_enter(stored.c.lane));
    (void)err_set(PARAMO_E_FENCED, "another scheduler leads");
    sched_end_fenced(stored.c.scheduler);
    lane_leave(stored.c.lane);
    assert_true(stored.c.over);
    assert_null(stored.c.scheduler->roster->waiting_first);
    cluster_kill(&stored.c.nodes[0]);
    cluster_pass(&stored.c, 120);
    stored_off();
}

int main(void)
{
    log_set_level(LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_calls_in_flight),
        cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_what_is_shared),
        cmocka_unit_test(test_barrier_in_turns),
        cmocka_unit_test(test_round_in_turns),
        cmocka_unit_test(test_whole_save_in_turns),
        cmocka_unit_test(test_a_node_that_does_not_return),
        cmocka_unit_test(test_a_place_that_was_not_answered),
        cmocka_unit_test(all_others_die_at_once),
        cmocka_unit_test(owners_that_were_gone),
        cmocka_unit_test(test_drain_is_durable),
        cmocka_unit_test(test_disk_full),
        cmocka_unit_test(test_answered_during_a_save_that_fails),
        cmocka_unit_test(test_own_member_leaves_twice),
        cmocka_unit_test(test_view_above),
        cmocka_unit_test(test_no_such_view),
        cmocka_unit_test(test_next_job),
        cmocka_unit_test(test_never_comes_back),
        cmocka_unit_test(test_more_places_than_nodes),
        cmocka_unit_test(test_deposed_while_a_node_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
