/*
 * Whole jobs on a simulated network: every order of starting, a crash after each event, and random faults by
 * seed. What must hold is checked while they run:
 *   - a barrier is released only when every node of its group is in it;
 *   - each part of a pool is counted done once per round, however often it is dealt, and a round is finished
 * only when all are done; parts beyond a stream's end are never counted;
 *   - numbers added to a value are added once;
 *   - no member ever sees an older view (support_cluster.c);
 *   - every job comes to its end, whichever node dies.
 * A failing seed is printed; TEST_SEED=n in the environment runs only that.
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
#include "cluster/support_simcluster.h"

enum { STREAMS = 3, ROUNDS = 3, UNITS = 6 };
static const uint32_t stream_len[STREAMS] = {UNITS, 0, 2};

enum step { START, ALL_IN, TABLE, POOL, NEXT, WORK, DONE, SUM, READ, ALL_OUT, WAIT_END, LEAVE, GONE };

struct script {
    struct tnode *node;
    enum step step;
    struct member_call call;
    struct lane_timer timer; /* work, or waiting to try again */
    uint32_t round;
    struct work_unit unit;
    uint64_t entered[2]; /* barriers: 0 not in, 1 inside, else 1 + the number it was released with */
    bool ghost[2]; /* an earlier incarnation was in it when it was killed: it may have been released just then
                    */
    bool finished; /* LEAVE was answered */
};

static struct {
    struct cluster c;
    uint32_t servers, workers;
    struct script script[CLUSTER_NODES];
    uint32_t sent[ROUNDS][STREAMS][UNITS], counted[ROUNDS][STREAMS][UNITS]; /* DONE */
    uint32_t adds_sent, adds_counted, adds_before_read[CLUSTER_NODES];
    bool calm; /* no faults at all: nothing may fail */
} w;

static void go(struct script *s, enum step step);

static uint64_t later(struct script *s, uint64_t ns)
{
    return lane_now(s->node->lane) + ns;
}

static void wake(struct lane_timer *timer)
{
    struct script *s = container_of(timer, struct script, timer);
    go(s, s->step);
}

static void go_in(struct script *s, enum step step, uint64_t ns)
{
    s->step = step;
    s->timer.fire = wake;
    assert_int_equal(lane_timer_arm(s->node->lane, &s->timer, later(s, ns)), PARAMO_OK);
}

static void check_released(struct script *s, size_t which, uint64_t number)
{
    s->entered[which] = 1 + number;
    for (uint32_t i = which == 0 ? 0 : w.servers; i < w.servers + w.workers; i++) {
        const struct script *other = &w.script[i];
        assert_true(other->entered[which] == 1 || other->entered[which] >= 1 + number || other->ghost[which]);
    }
}

static void check_round_finished(uint32_t round)
{
    for (uint32_t stream = 0; stream < STREAMS; stream++)
        for (uint32_t i = 0; i < stream_len[stream]; i++)
            assert_true(w.sent[round][stream][i] >= 1);
}

static void after_barrier(struct script *s, paramo_err status, size_t which, enum step next)
{
    if (status == PARAMO_OK)
        check_released(s, which, s->call.result.number);
    else
        s->entered[which] = 0;
    if (w.calm)
        assert_int_equal(status, PARAMO_OK);
    go(s, next); /* a barrier that a death broke is not tried again */
}

static void after_next(struct script *s)
{
    if (s->call.result.state == POOL_NONE_NOW) {
        go(s, NEXT);
    } else if (s->call.result.state == POOL_FINISHED) {
        check_round_finished(s->round++);
        go(s, s->round < ROUNDS ? NEXT : SUM);
    } else {
        s->unit = s->call.result.unit;
        assert_int_equal(s->unit.round, s->round);
        assert_true(s->unit.stream < STREAMS);
        go_in(s, DONE, sim_random(w.c.sim) % (20 * ENV_MS));
    }
}

static void answered(struct member_call *call, paramo_err status)
{
    struct script *s = container_of(call, struct script, call);
    /* The job may have ended before (this node was declared dead, or all others are gone). */
    bool over = status == PARAMO_E_CLOSED || status == PARAMO_E_FENCED || status == PARAMO_E_SHUTDOWN ||
                status == PARAMO_E_NO_SCHEDULER || status == PARAMO_E_NODE_LOST;
    if (s->step == LEAVE) {
        s->finished = true;
        s->step = GONE;
        return;
    }
    if (over) {
        assert_false(w.calm);
        if (s->step == ALL_IN || s->step == ALL_OUT)
            s->entered[s->step == ALL_OUT] = 0;
        s->step = WAIT_END;
        return;
    }
    switch (s->step) {
    case ALL_IN:
        after_barrier(s, status, 0, s->node->role == PARAMO_ROLE_WORKER ? TABLE : WAIT_END);
        return;
    case ALL_OUT:
        after_barrier(s, status, 1, LEAVE);
        return;
    case DONE:
        if (status == PARAMO_OK && s->unit.index < stream_len[s->unit.stream]) {
            uint32_t *counted = &w.counted[s->unit.round][s->unit.stream][s->unit.index];
            ++*counted;
            assert_int_equal(*counted, 1);
        } else if (status == PARAMO_E_NOT_FOUND) {
            assert_false(w.calm);
        } else {
            assert_int_equal(status, PARAMO_OK);
        }
        go(s, NEXT);
        return;
    case NEXT:
        assert_int_equal(status, PARAMO_OK);
        after_next(s);
        return;
    case SUM:
        w.adds_counted++;
        assert_int_equal(status, PARAMO_OK);
        go(s, READ);
        return;
    case READ: {
        double sum;
        assert_int_equal(status, PARAMO_OK);
        assert_int_equal(s->call.result.value_len, sizeof sum);
        memcpy(&sum, s->call.result.value, sizeof sum);
        assert_true(sum >= w.adds_before_read[s - w.script] && sum <= w.adds_sent);
        go(s, ALL_OUT);
        return;
    }
    case TABLE:
        assert_int_equal(status, PARAMO_OK);
        assert_non_null(view_table(member_view(s->node->member), s->call.result.table));
        go(s, POOL);
        return;
    default:
        assert_int_equal(s->step, POOL);
        assert_int_equal(status, PARAMO_OK);
        go(s, NEXT);
    }
}

static void go(struct script *s, enum step step)
{
    struct member *m = s->node->member;
    const paramo_table_options options = {.dim = 2};
    const double one = 1;
    uint64_t deadline = later(s, 60 * ENV_SEC);
    paramo_err err = PARAMO_OK;
    s->step = step;
    s->call = (struct member_call){.done = answered};
    switch (step) {
    case ALL_IN:
        s->entered[0] = 1;
        err = member_barrier(m, &s->call, 6, 0, later(s, 30 * ENV_SEC));
        break;
    case TABLE:
        err = member_table_open(m, &s->call, "w", &options, deadline);
        break;
    case POOL:
        err = member_pool_open(m, &s->call, "p", STREAMS, ROUNDS, deadline);
        break;
    case NEXT:
        err = member_pool_next(m, &s->call, "p", 0, s->round, 5000, deadline);
        break;
    case DONE:
        if (s->unit.index < stream_len[s->unit.stream]) {
            w.sent[s->unit.round][s->unit.stream][s->unit.index]++;
            err = member_pool_done(m, &s->call, "p", &s->unit, deadline);
        } else {
            assert_int_equal(s->unit.round, 0);
            err = member_pool_end(m, &s->call, "p", &s->unit, deadline);
        }
        break;
    case SUM:
        w.adds_sent++;
        err = member_kv_add(m, &s->call, "sum", &one, 1, deadline);
        break;
    case READ:
        w.adds_before_read[s - w.script] = w.adds_counted;
        err = member_kv_get(m, &s->call, "sum", deadline);
        break;
    case ALL_OUT:
        s->entered[1] = 1;
        err = member_barrier(m, &s->call, 4, 1, later(s, 30 * ENV_SEC));
        break;
    case LEAVE:
        err = member_leave(m, &s->call, deadline);
        break;
    default:
        break;
    }
    if (err) {
        assert_false(w.calm);
        assert_int_equal(err, PARAMO_E_CLOSED); /* the job has ended between two calls */
        if (step == ALL_IN || step == ALL_OUT)
            s->entered[step == ALL_OUT] = 0;
        s->step = WAIT_END;
    }
}

static void script_joined(struct tnode *node)
{
    struct script *s = node->arg;
    if (node->joined_status) {
        /* Only a node that came too late for the job, or for its place. */
        assert_false(w.calm);
        s->step = GONE;
        s->finished = true;
    } else {
        go(s, ALL_IN);
    }
}

static void script_ended(struct tnode *node)
{
    struct script *s = node->arg;
    if (node->ended_status == PARAMO_E_FENCED || node->ended_status == PARAMO_E_NO_SCHEDULER) {
        assert_false(w.calm);
        s->step = GONE;
        s->finished = true;
        lane_timer_cancel(node->lane, &s->timer);
    } else if (s->step == WAIT_END || s->step == DONE) {
        lane_timer_cancel(node->lane, &s->timer);
        go(s, LEAVE);
    }
}

static void start_node(uint32_t i)
{
    struct tnode *node = &w.c.nodes[i];
    uint32_t role = i < w.servers ? PARAMO_ROLE_SERVER : PARAMO_ROLE_WORKER;
    bool ghost[2] = {w.script[i].ghost[0], w.script[i].ghost[1]};
    w.script[i] = (struct script){.node = node, .ghost = {ghost[0], ghost[1]}};
    node->arg = &w.script[i];
    node->on_joined = script_joined;
    node->on_ended = script_ended;
    struct member_config config = cluster_member_config(&w.c, node, role);
    config.connect_timeout_ms = 60000;
    cluster_start_config(node, &config);
}

static void kill_node(uint32_t i)
{
    struct script *s = &w.script[i];
    if (!w.c.nodes[i].member)
        return;
    tnode_enter(&w.c.nodes[i]);
    lane_timer_cancel(w.c.nodes[i].lane, &s->timer);
    tnode_leave(&w.c.nodes[i]);
    for (size_t which = 0; which < 2; which++)
        s->ghost[which] = s->ghost[which] || s->entered[which];
    s->step = LEAVE; /* what cluster_kill answers ends the script */
    cluster_kill(&w.c.nodes[i]);
    s->entered[0] = s->entered[1] = 0;
    s->finished = true;
}

static void job_init(uint64_t seed, uint32_t servers, uint32_t workers)
{
    memset(&w, 0, sizeof w);
    w.servers = servers;
    w.workers = workers;
    cluster_init(&w.c, seed, servers, workers);
}

/* Nodes' scripts may still run while the cluster goes down. */
static void job_fini(void)
{
    for (uint32_t i = 0; i < w.servers + w.workers; i++)
        kill_node(i);
    cluster_fini(&w.c);
}

static bool job_done(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < w.servers + w.workers; i++)
        if (!w.script[i].finished)
            return false;
    return w.c.over;
}

static void check_complete(void)
{
    assert_int_equal(w.c.over_status, PARAMO_OK);
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (uint32_t stream = 0; stream < STREAMS; stream++)
            for (uint32_t i = 0; i < stream_len[stream]; i++)
                assert_int_equal(w.counted[round][stream][i], 1);
    assert_int_equal(w.adds_counted, w.workers);
}

/* ---- every order of starting -------------------------------------------------------------------------- */

static void run_order(const uint32_t *order)
{
    job_init(1, 2, 2);
    w.calm = true;
    for (uint32_t i = 0; i < 5; i++) {
        if (order[i] == 4)
            cluster_start_scheduler(&w.c);
        else
            start_node(order[i]);
        cluster_pass(&w.c, 0.7);
    }
    assert_true(cluster_run(&w.c, job_done, NULL, 60));
    check_complete();
    job_fini();
}

static void permute(uint32_t *order, uint32_t from)
{
    if (from == 5) {
        run_order(order);
        return;
    }
    for (uint32_t i = from; i < 5; i++) {
        uint32_t t = order[from];
        order[from] = order[i];
        order[i] = t;
        permute(order, from + 1);
        order[i] = order[from];
        order[from] = t;
    }
}

static void test_start_orders(void **state)
{
    (void)state;
    permute((uint32_t[]){0, 1, 2, 3, 4}, 0);
}

/* ---- a crash after each event ------------------------------------------------------------------------- */

/* Crashes one node after this many events, and starts it again (or not) a while later. False: the job was over
 * before. */
static bool run_crash(uint32_t victim, unsigned events, bool again)
{
    job_init(2, 1, 3);
    cluster_start_scheduler(&w.c);
    for (uint32_t i = 0; i < 4; i++)
        start_node(i);
    for (unsigned i = 0; i < events && !job_done(NULL); i++)
        assert_true(sim_step(w.c.sim));
    bool reached = !job_done(NULL);
    bool was_complete = w.c.nodes[victim].joined;
    kill_node(victim);
    if (again || !was_complete) { /* before it is complete a job needs everybody */
        cluster_pass(&w.c, 0.01 * (events % 100));
        start_node(victim);
    }
    assert_true(cluster_run(&w.c, job_done, NULL, 300));
    job_fini();
    return reached;
}

static void test_crash_after_each_event(void **state)
{
    (void)state;
    unsigned runs = 0;
    for (unsigned events = 1; run_crash(3, events, events % 3 == 0); events += 1 + events / 40)
        runs++;
    for (unsigned events = 1; run_crash(0, events, events % 3 != 0); events += 3 + events / 20)
        runs++;
    assert_true(runs > 100);
}

/* ---- random faults ------------------------------------------------------------------------------------ */

static void run_seed(uint64_t seed)
{
    job_init(seed, 0, 0);
    w.servers = (uint32_t)(sim_random(w.c.sim) % 3);
    w.workers = 1 + (uint32_t)(sim_random(w.c.sim) % 4);
    w.c.config.num_servers = w.servers;
    w.c.config.num_workers = w.workers;
    uint32_t nodes = w.servers + w.workers;
    struct simnet_link *link = simnet_defaults(w.c.net);
    link->loss_ppm = (uint32_t)(sim_random(w.c.sim) % 50000);
    link->repeat_ppm = (uint32_t)(sim_random(w.c.sim) % 50000);
    link->late_ppm = (uint32_t)(sim_random(w.c.sim) % 50000);
    link->late_ns = sim_random(w.c.sim) % (500 * ENV_MS);
    if (seed % 2)
        w.c.faulty = 1 << VAN_CONTROL;
    unsigned kills = seed % 3 ? (unsigned)(sim_random(w.c.sim) % 4) : 0;
    bool deaths = kills > 0;
    cluster_start_scheduler(&w.c);
    for (uint32_t i = 0; i < nodes; i++) {
        start_node(i);
        cluster_pass(&w.c, (double)(sim_random(w.c.sim) % 300) / 1000);
    }
    while (kills--) {
        cluster_pass(&w.c, (double)(sim_random(w.c.sim) % 2000) / 1000);
        uint32_t victim = (uint32_t)(sim_random(w.c.sim) % nodes);
        bool joined = w.c.nodes[victim].joined;
        kill_node(victim);
        cluster_pass(&w.c, (double)(sim_random(w.c.sim) % 1500) / 1000);
        if (!joined || sim_random(w.c.sim) % 4)
            start_node(victim);
    }
    assert_true(cluster_run(&w.c, job_done, NULL, 400));
    if (!deaths)
        check_complete();
    job_fini();
}

static uint64_t seed_now;

static void test_seeds(void **state)
{
    (void)state;
    const char *only = getenv("TEST_SEED");
    if (only) {
        run_seed(strtoull(only, NULL, 10));
        return;
    }
    seed_now = 13735; /* a server restarted before the news of its death had come got no place */
    run_seed(seed_now);
    for (seed_now = 1; seed_now <= 400; seed_now++)
        run_seed(seed_now);
    seed_now = 0;
}

/* The seed is known only here when an assertion has jumped out of the test. */
static int print_seed(void **state)
{
    (void)state;
    if (seed_now)
        (void)fprintf(stderr, "failing seed: TEST_SEED=%llu\n", (unsigned long long)seed_now);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start_orders),
        cmocka_unit_test(test_crash_after_each_event),
        cmocka_unit_test_teardown(test_seeds, print_seed),
    };
    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
