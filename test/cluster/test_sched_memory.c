/*
 * Allocations of the scheduler fail, and of the blocking jobs that work for it. Each scene is played again and
 * again: first its first allocation fails, then its second, and so on, until the scene has no more; then the
 * same with several failures in a row. Whatever fails, all calls are answered, what was acknowledged stays, and
 * the job continues.
 */
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/support_ckpt_job.h"

#include <stdio.h>
#include <string.h>

#include "cluster/member/admin_query.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_roster.h"
#include "env/lane_impl.h"

/* The linker directs the program's allocations to these (CMakeLists.txt). */
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);

enum { FIRST_EXTRA = CKPT_SERVERS + 1, GROUP_ALL = 7, TRIES = 40 };

/* On the one thread of a simulation: */
static struct {
    uint64_t after; /* this many allocations from now on one fails; 0: none does */
    unsigned row;   /* how many in a row */
    bool struck;
    unsigned held; /* in the simulation's own allocations */
    bool turn;     /* a lane or a blocking job runs */
} memory;

static bool fails(void)
{
    const struct lane *lane = ckpt_job.c.lane;
    if (!memory.after || memory.held || !lane || !(lane_held(lane) || (memory.turn && !lane_inside())))
        return false;
    if (--memory.after)
        return false;
    memory.struck = true;
    memory.after = --memory.row ? 1 : 0;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return fails() ? NULL : __real_realloc(p, size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

static void turn(void *arg, uint32_t host)
{
    (void)arg;
    memory.turn = host != UINT32_MAX;
}

static void hold(void *arg, bool on)
{
    (void)arg;
    memory.held += on ? 1u : -1u;
}

/* ---- the job ------------------------------------------------------------------------------------------- */

static uint64_t present;     /* the allocation of the scene that fails */
static unsigned present_row; /* how many in a row */

static struct tnode *node_at(unsigned i)
{
    return &ckpt_job.c.nodes[i];
}

static void fail_from_here(void)
{
    static const struct sim_turns turns = {turn, hold, NULL};
    sim_set_turns(ckpt_job.c.sim, &turns);
    memory.held = 0;
    memory.turn = memory.struck = false;
    memory.row = present_row;
    memory.after = present;
}

static void fail_no_more(void)
{
    memory.after = 0;
}

/* Every member has joined, each under an id of its own. */
static void check_joined(unsigned nodes)
{
    for (unsigned i = 0; i < nodes; i++) {
        assert_true(cluster_run(&ckpt_job.c, tnode_joined, node_at(i), 30));
        assert_int_equal(node_at(i)->joined_status, PARAMO_OK);
        for (unsigned k = 0; k < i; k++)
            assert_int_not_equal(member_id(node_at(i)->member), member_id(node_at(k)->member));
    }
}

static void job_on(bool keeps, uint32_t replicas)
{
    ckpt_job.keeps = keeps;
    ckpt_job.replicas = replicas;
    ckpt_job.migrates = true;
    ckpt_on("");
    check_joined(FIRST_EXTRA);
}

static void job_off(void)
{
    ckpt_off();
    ckpt_disk_end();
}

/* The call's end. A call that had no memory changed nothing, and is made again. */
#define AGAIN_WITHOUT_MEMORY(node, t, ...)                                                                   \
    do {                                                                                                     \
        unsigned tries = 0;                                                                                  \
        do {                                                                                                 \
            assert_true(tries++ < TRIES);                                                                    \
            TCALL(node, t, __VA_ARGS__);                                                                     \
        } while (tcall_wait(&ckpt_job.c, t) == PARAMO_E_MEMORY);                                             \
        assert_int_equal((t)->status, PARAMO_OK);                                                            \
    } while (0)

static void add_one(double expected)
{
    struct tcall t;
    struct tnode *w = ckpt_worker();
    const double one = 1;
    double sum;
    AGAIN_WITHOUT_MEMORY(w, &t,
                         member_kv_add(w->member, &t.call, "sum", &one, 1, in_seconds(&ckpt_job.c, 40)));
    AGAIN_WITHOUT_MEMORY(w, &t, member_kv_get(w->member, &t.call, "sum", in_seconds(&ckpt_job.c, 40)));
    memcpy(&sum, t.value, sizeof sum);
    assert_true(sum == expected);
}

static uint32_t open_table(const char *name)
{
    struct tcall t;
    struct tnode *w = ckpt_worker();
    paramo_table_options options = {.size = sizeof options, .dim = 1, .replicas = PARAMO_REPLICAS_OF_JOB};
    AGAIN_WITHOUT_MEMORY(w, &t,
                         member_table_open(w->member, &t.call, name, &options, in_seconds(&ckpt_job.c, 40)));
    assert_non_null(view_table(member_view(w->member), t.call.result.table));
    return t.call.result.table;
}

/* All nodes that the job began with meet. A node that has no memory to enter enters again. */
static uint64_t meet(void)
{
    struct tcall t[FIRST_EXTRA];
    bool all = false;
    for (unsigned i = 0; i < FIRST_EXTRA; i++)
        TCALL(node_at(i), &t[i],
              member_barrier(node_at(i)->member, &t[i].call, GROUP_ALL & 6, 0, in_seconds(&ckpt_job.c, 50)));
    for (unsigned tries = 0; !all; tries++) {
        assert_true(tries < TRIES);
        cluster_pass(&ckpt_job.c, 2);
        all = true;
        for (unsigned i = 0; i < FIRST_EXTRA; i++) {
            all = all && t[i].done && !t[i].status;
            if (t[i].done && t[i].status == PARAMO_E_MEMORY)
                TCALL(node_at(i), &t[i],
                      member_barrier(node_at(i)->member, &t[i].call, GROUP_ALL & 6, 0,
                                     in_seconds(&ckpt_job.c, 50)));
            else
                assert_true(!t[i].done || !t[i].status);
        }
    }
    for (unsigned i = 1; i < FIRST_EXTRA; i++)
        assert_int_equal(t[i].call.result.number, t[0].call.result.number);
    return t[0].call.result.number;
}

static bool converged(void *arg)
{
    (void)arg;
    return sched_migrations_converged(ckpt_job.c.scheduler);
}

/* The job does what jobs do. */
static void check_usable(bool whole)
{
    fail_no_more();
    (void)open_table("afterwards");
    struct tcall t;
    struct tnode *w = ckpt_worker();
    AGAIN_WITHOUT_MEMORY(w, &t,
                         member_kv_put(w->member, &t.call, "after", "x", 1, in_seconds(&ckpt_job.c, 40)));
    if (whole)
        (void)meet();
    assert_true(cluster_run(&ckpt_job.c, converged, NULL, 30));
    assert_false(ckpt_job.c.over);
}

/* The scheduler dies at once, and another continues with its state. */
static void restart(void)
{
    fail_no_more();
    ckpt_scheduler_off();
    ckpt_scheduler_on();
}

/* ---- the scenes ---------------------------------------------------------------------------------------- */

/* Each of the first `dense` allocations fails, and fewer and fewer of the later ones. */
static void play(void (*scene)(void), unsigned dense)
{
    static const unsigned rows[] = {1, 3};
    for (size_t i = 0; i < UNIT_SEEDS(sizeof rows / sizeof *rows); i++) {
        present_row = rows[i];
        memory.struck = true;
        for (present = 1 + i; memory.struck; present += 1 + present / dense)
            scene();
    }
}

static void gathers(void)
{
    ckpt_job.replicas = 1;
    ckpt_job.migrates = true;
    ckpt_on("");
    fail_from_here();
    check_joined(FIRST_EXTRA);
    check_usable(true);
    job_off();
}

static void joins(uint32_t role)
{
    job_on(false, 1);
    fail_from_here();
    if (role == PARAMO_ROLE_SERVER)
        ckpt_start_server(FIRST_EXTRA);
    else
        cluster_start(&ckpt_job.c, node_at(FIRST_EXTRA), role);
    check_joined(FIRST_EXTRA + 1);
    cluster_pass(&ckpt_job.c, 3);
    check_usable(true);
    job_off();
}

static void worker_joins(void)
{
    joins(PARAMO_ROLE_WORKER);
}

static void server_joins(void)
{
    joins(PARAMO_ROLE_SERVER);
}

static void server_dies(void)
{
    job_on(false, 1);
    ckpt_start_server(FIRST_EXTRA);
    check_joined(FIRST_EXTRA + 1);
    assert_true(cluster_run(&ckpt_job.c, converged, NULL, 30));
    fail_from_here();
    cluster_kill(node_at(1));
    cluster_pass(&ckpt_job.c, 3);
    check_usable(false);
    job_off();
}

static void server_comes_back(void)
{
    job_on(false, 1);
    cluster_kill(node_at(1));
    cluster_pass(&ckpt_job.c, 2);
    fail_from_here();
    ckpt_start_server(1);
    check_joined(FIRST_EXTRA);
    cluster_pass(&ckpt_job.c, 3);
    check_usable(true);
    job_off();
}

static void server_is_drained(void)
{
    struct tcall t;
    job_on(false, 0);
    ckpt_start_server(FIRST_EXTRA);
    check_joined(FIRST_EXTRA + 1);
    assert_true(cluster_run(&ckpt_job.c, converged, NULL, 30));
    fail_from_here();
    do {
        TCALL(node_at(FIRST_EXTRA), &t,
              member_drain(node_at(FIRST_EXTRA)->member, &t.call, in_seconds(&ckpt_job.c, 40)));
    } while (tcall_wait(&ckpt_job.c, &t) == PARAMO_E_MEMORY);
    assert_true(t.status == PARAMO_OK || t.status == PARAMO_E_SHUTDOWN); /* an answer that is sent late */
    assert_true(cluster_run(&ckpt_job.c, tnode_ended, node_at(FIRST_EXTRA), 30));
    assert_int_equal(node_at(FIRST_EXTRA)->ended_status, PARAMO_OK);
    check_usable(true);
    job_off();
}

static void table_opens(void)
{
    job_on(true, 0);
    fail_from_here();
    uint32_t id = open_table("t");
    restart();
    assert_int_equal(open_table("t"), id);
    check_usable(true);
    job_off();
}

static void nodes_meet(void)
{
    job_on(true, 0);
    fail_from_here();
    assert_int_equal(meet(), 1);
    assert_int_equal(meet(), 2);
    restart();
    assert_int_equal(meet(), 3);
    check_usable(true);
    job_off();
}

static void values_change(void)
{
    struct tcall t;
    job_on(true, 0);
    fail_from_here();
    struct tnode *w = ckpt_worker();
    add_one(1);
    AGAIN_WITHOUT_MEMORY(
        w, &t, member_kv_put(w->member, &t.call, "longer", "12345", 6, in_seconds(&ckpt_job.c, 40)));
    add_one(2);
    AGAIN_WITHOUT_MEMORY(w, &t,
                         member_kv_put(w->member, &t.call, "gone", "12345", 6, in_seconds(&ckpt_job.c, 40)));
    AGAIN_WITHOUT_MEMORY(w, &t, member_kv_delete(w->member, &t.call, "gone", in_seconds(&ckpt_job.c, 40)));
    restart();
    add_one(3);
    AGAIN_WITHOUT_MEMORY(w, &t, member_kv_get(w->member, &t.call, "longer", in_seconds(&ckpt_job.c, 40)));
    assert_string_equal(t.value, "12345");
    TCALL(w, &t, member_kv_get(w->member, &t.call, "gone", in_seconds(&ckpt_job.c, 1)));
    assert_int_equal(tcall_wait(&ckpt_job.c, &t), PARAMO_E_TIMEOUT);
    check_usable(true);
    job_off();
}

/* One waits for a value that another puts. */
static void value_is_awaited(void)
{
    struct tcall t, put;
    job_on(false, 0);
    fail_from_here();
    struct tnode *w = ckpt_worker(), *s = node_at(0);
    do {
        TCALL(w, &t, member_kv_get(w->member, &t.call, "late", in_seconds(&ckpt_job.c, 40)));
        cluster_pass(&ckpt_job.c, 2);
        AGAIN_WITHOUT_MEMORY(
            s, &put, member_kv_put(s->member, &put.call, "late", "x", 2, in_seconds(&ckpt_job.c, 40)));
    } while (tcall_wait(&ckpt_job.c, &t) == PARAMO_E_MEMORY);
    assert_int_equal(t.status, PARAMO_OK);
    assert_string_equal(t.value, "x");
    check_usable(true);
    job_off();
}

/* Takes work units until `round` has no more, and says that they are done; from unit `units` on there are none.
 * Each is dealt once. */
static unsigned work(uint32_t round, uint32_t units, bool restarts)
{
    struct tcall t;
    struct tnode *w = ckpt_worker();
    unsigned done = 0, dealt = 0;
    for (;;) {
        AGAIN_WITHOUT_MEMORY(
            w, &t, member_pool_next(w->member, &t.call, "p", 0, round, 1000, in_seconds(&ckpt_job.c, 40)));
        if (t.call.result.state != POOL_GOT)
            break;
        struct work_unit unit = t.call.result.unit;
        bool there = unit.index < units;
        assert_int_equal(dealt >> unit.index & 1, 0);
        dealt |= 1u << unit.index;
        if (there)
            AGAIN_WITHOUT_MEMORY(
                w, &t, member_pool_done(w->member, &t.call, "p", &unit, in_seconds(&ckpt_job.c, 40)));
        else
            AGAIN_WITHOUT_MEMORY(
                w, &t, member_pool_end(w->member, &t.call, "p", &unit, in_seconds(&ckpt_job.c, 40)));
        done += there;
        if (restarts && done == 1)
            restart();
    }
    assert_int_equal(t.call.result.state, POOL_FINISHED);
    return done;
}

static void units_are_dealt(void)
{
    struct tcall t;
    struct tnode *w;
    job_on(true, 0);
    fail_from_here();
    w = ckpt_worker();
    AGAIN_WITHOUT_MEMORY(w, &t, member_pool_open(w->member, &t.call, "p", 1, 2, in_seconds(&ckpt_job.c, 40)));
    assert_int_equal(work(0, 3, false), 3);
    assert_int_equal(work(1, 3, true), 3);
    check_usable(true);
    job_off();
}

static void checkpoints(uint32_t replicas)
{
    struct tcall t;
    job_on(false, replicas);
    (void)open_table("t");
    fail_from_here();
    struct tnode *w = ckpt_worker();
    do {
        TCALL(w, &t, member_ckpt_save(w->member, &t.call, CKPT_DIR, false, in_seconds(&ckpt_job.c, 40)));
    } while (tcall_wait(&ckpt_job.c, &t) == PARAMO_E_MEMORY || t.status == PARAMO_E_AGAIN);
    assert_int_equal(t.status, PARAMO_OK);
    do {
        TCALL(w, &t, member_ckpt_load(w->member, &t.call, CKPT_DIR, 0, in_seconds(&ckpt_job.c, 40)));
    } while (tcall_wait(&ckpt_job.c, &t) == PARAMO_E_MEMORY || t.status == PARAMO_E_AGAIN);
    assert_int_equal(t.status, PARAMO_OK);
    check_usable(true);
    job_off();
}

static void checkpoint_is_taken(void)
{
    checkpoints(0);
}

static void checkpoint_with_copies(void)
{
    checkpoints(1);
}

static void checkpoint_by_the_clock(void)
{
    ckpt_job.applied_window_retain = 2;
    job_on(false, 0);
    fail_from_here();
    cluster_pass(&ckpt_job.c, 35);
    fail_no_more();
    unsigned before = ckpt_job.saves;
    cluster_pass(&ckpt_job.c, 11);
    assert_true(ckpt_job.saves > before);
    check_usable(true);
    ckpt_job.applied_window_retain = 0;
    job_off();
}

/* The rows of a dead server return to a checkpoint. */
static void lost_rows_return(void)
{
    struct tcall t;
    ckpt_job.on_loss = true;
    job_on(true, 0);
    (void)open_table("t");
    assert_int_equal(ckpt_save(&t), PARAMO_OK);
    fail_from_here();
    cluster_kill(node_at(1));
    cluster_pass(&ckpt_job.c, 5);
    assert_true(ckpt_job.restores > 0);
    check_usable(false);
    job_off();
}

/* The same with copies, and with servers that could get more partitions: none migrates before the rows are there. */
static void lost_rows_return_first(void)
{
    struct tcall t;
    ckpt_job.on_loss = true;
    job_on(true, 1);
    for (unsigned i = FIRST_EXTRA; i < FIRST_EXTRA + 2; i++) {
        ckpt_start_server(i);
        check_joined(i + 1);
    }
    assert_true(cluster_run(&ckpt_job.c, converged, NULL, 30));
    (void)open_table("t");
    assert_int_equal(ckpt_save(&t), PARAMO_OK);
    fail_from_here();
    cluster_kill(node_at(1));
    cluster_kill(node_at(FIRST_EXTRA));
    cluster_pass(&ckpt_job.c, 5);
    assert_true(ckpt_job.restores > 0);
    check_usable(false);
    job_off();
}

/* Another scheduler continues with the state that the first has saved. */
static void scheduler_starts(void)
{
    struct tcall t;
    job_on(true, 1);
    struct tnode *w = ckpt_worker();
    uint32_t id = open_table("t");
    add_one(1);
    assert_int_equal(meet(), 1);
    TCALL(w, &t, member_pool_open(w->member, &t.call, "p", 1, 1, in_seconds(&ckpt_job.c, 40)));
    assert_int_equal(tcall_wait(&ckpt_job.c, &t), PARAMO_OK);
    TCALL(w, &t, member_pool_next(w->member, &t.call, "p", 0, 0, 0, in_seconds(&ckpt_job.c, 40)));
    assert_int_equal(tcall_wait(&ckpt_job.c, &t), PARAMO_OK);
    struct work_unit unit = t.call.result.unit;
    restart(); /* once more, so that the state is one file without a log */
    ckpt_scheduler_off();
    fail_from_here();
    ckpt_scheduler_on();
    AGAIN_WITHOUT_MEMORY(w, &t,
                         member_pool_done(w->member, &t.call, "p", &unit, in_seconds(&ckpt_job.c, 40)));
    add_one(2);
    assert_int_equal(meet(), 2);
    assert_int_equal(open_table("t"), id);
    check_usable(true);
    job_off();
}

/* A job begins with a checkpoint: its load is carried out again when memory is there. */
static void job_begins_with_one(void)
{
    struct tcall t;
    job_on(false, 0);
    (void)open_table("t");
    add_one(1);
    assert_int_equal(ckpt_save(&t), PARAMO_OK);
    ckpt_off();
    ckpt_on(CKPT_DIR);
    fail_from_here();
    check_joined(FIRST_EXTRA);
    add_one(2);
    check_usable(true);
    job_off();
}

struct answer {
    bool over;
    paramo_err status;
};

static void query_done(void *arg, paramo_err status, struct admin_query_result *result)
{
    struct answer *a = arg;
    (void)result;
    assert_false(a->over);
    *a = (struct answer){true, status};
}

static bool query_over(void *arg)
{
    return ((struct answer *)arg)->over;
}

/* As a program of its own would. Without memory for its connection or its answer the client may lose that. */
static void ask_as_admin(const struct ckpt_order *ckpt, uint32_t drain, bool status)
{
    paramo_err err = PARAMO_E_MEMORY;
    for (unsigned tries = 0; err == PARAMO_E_MEMORY || err == PARAMO_E_CONNECT ||
                             err == PARAMO_E_DISCONNECTED || err == PARAMO_E_AGAIN;
         tries++) {
        struct answer a = {0};
        struct admin_query *query;
        struct van *van;
        assert_true(tries < TRIES);
        assert_int_equal(van_sim_create(ckpt_job.c.net, "observer", &van), PARAMO_OK);
        struct admin_query_config config = {.van = van,
                                            .lane = node_at(9)->lane,
                                            .scheduler = "scheduler:1",
                                            .token = "token",
                                            .incarnation = 99,
                                            .deadline = in_seconds(&ckpt_job.c, 20),
                                            .ckpt = ckpt,
                                            .drain = drain,
                                            .status = status,
                                            .done = query_done,
                                            .arg = &a};
        tnode_enter(node_at(9));
        assert_int_equal(admin_query_start(&config, &query), PARAMO_OK);
        tnode_leave(node_at(9));
        assert_true(cluster_run(&ckpt_job.c, query_over, &a, 40));
        ckpt_job.c.old_vans[ckpt_job.c.old_count++] = van;
        bool drained =
            drain && tries && a.status == PARAMO_E_NOT_FOUND; /* by a query whose answer was lost */
        err = drained ? PARAMO_OK : a.status;
        cluster_pass(&ckpt_job.c, 0.2);
    }
    assert_int_equal(err, PARAMO_OK);
}

static void admin_asks(void)
{
    struct ckpt_order order = {.timeout_ms = 10000};
    snprintf(order.dir, sizeof order.dir, CKPT_DIR);
    job_on(true, 0);
    ckpt_start_server(FIRST_EXTRA);
    check_joined(FIRST_EXTRA + 1);
    assert_true(cluster_run(&ckpt_job.c, converged, NULL, 30));
    fail_from_here();
    ask_as_admin(NULL, 0, false);
    ask_as_admin(NULL, 0, true);
    ask_as_admin(&order, 0, false);
    ask_as_admin(NULL, member_id(node_at(FIRST_EXTRA)->member), false);
    assert_true(cluster_run(&ckpt_job.c, tnode_ended, node_at(FIRST_EXTRA), 30));
    check_usable(true);
    job_off();
}

static void members_leave(void)
{
    struct tcall t;
    job_on(true, 0);
    fail_from_here();
    for (unsigned i = FIRST_EXTRA; i-- > 0;) {
        TCALL(node_at(i), &t, member_leave(node_at(i)->member, &t.call, in_seconds(&ckpt_job.c, 40)));
        assert_int_equal(tcall_wait(&ckpt_job.c, &t), PARAMO_OK);
    }
    assert_true(cluster_run(&ckpt_job.c, cluster_over, &ckpt_job.c, 40));
    assert_int_equal(ckpt_job.c.over_status, PARAMO_OK);
    fail_no_more();
    job_off();
}

static void member_shuts_down(void)
{
    struct tcall t;
    job_on(true, 0);
    fail_from_here();
    TCALL(ckpt_worker(), &t,
          member_shutdown(ckpt_worker()->member, &t.call, "enough", in_seconds(&ckpt_job.c, 40)));
    (void)tcall_wait(&ckpt_job.c, &t); /* the end may come before the answer */
    for (unsigned i = 0; i < FIRST_EXTRA; i++) {
        assert_true(cluster_run(&ckpt_job.c, tnode_ended, node_at(i), 40));
        assert_int_equal(node_at(i)->ended_status, PARAMO_E_SHUTDOWN);
    }
    assert_true(cluster_run(&ckpt_job.c, cluster_over, &ckpt_job.c, 40));
    fail_no_more();
    job_off();
}

static unsigned handled;

static void count_call(struct sched_call *call, struct reader *body)
{
    (void)call, (void)body; /* it stays unanswered, until its node is gone */
    handled++;
}

static void call_arrives(uint64_t number)
{
    struct sched_node *node = sched_roster_find(ckpt_job.c.scheduler, member_id(ckpt_worker()->member));
    struct wire_call head = {.what = CALL_KV_ADD, .number = number, .floor = 1};
    struct reader body = reader_over(NULL, 0);
    assert_non_null(node);
    assert_true(lane_enter(ckpt_job.c.lane));
    assert_int_equal(sched_calls_received(node, &head, &body, count_call), PARAMO_OK);
    lane_leave(ckpt_job.c.lane);
}

/* There is no memory for a call that uses another's place again. An old copy of the other is still recognized. */
static void test_place_is_used_again(void **state)
{
    enum { OTHER = 9 * CALL_PLACES - 1, SAME_PLACE = 10 * CALL_PLACES - 1 };
    (void)state;
    job_on(false, 0);
    handled = 0;
    call_arrives(OTHER);
    assert_int_equal(handled, 1);
    present = present_row = 1;
    fail_from_here();
    call_arrives(SAME_PLACE);
    assert_true(memory.struck);
    assert_int_equal(handled, 1);
    call_arrives(OTHER);
    assert_int_equal(handled, 1);
    call_arrives(SAME_PLACE);
    assert_int_equal(handled, 2);
    check_usable(true);
    job_off();
}

/* ---- the tests ----------------------------------------------------------------------------------------- */

enum { ALL = UNIT_SEEDS(16), SOME = UNIT_SEEDS(4) }; /* scenes with migrations are long */

#define TEST(scene, dense)                                                                                   \
    static void test_##scene(void **state)                                                                   \
    {                                                                                                        \
        (void)state;                                                                                         \
        play(scene, dense);                                                                                  \
    }

TEST(gathers, ALL)
TEST(worker_joins, ALL)
TEST(server_joins, SOME)
TEST(server_dies, SOME)
TEST(server_comes_back, SOME)
TEST(server_is_drained, SOME)
TEST(table_opens, ALL)
TEST(nodes_meet, ALL)
TEST(values_change, ALL)
TEST(value_is_awaited, ALL)
TEST(units_are_dealt, ALL)
TEST(checkpoint_is_taken, ALL)
TEST(checkpoint_with_copies, ALL)
TEST(checkpoint_by_the_clock, SOME)
TEST(lost_rows_return, ALL)
TEST(lost_rows_return_first, SOME)
TEST(scheduler_starts, ALL)
TEST(job_begins_with_one, ALL)
TEST(admin_asks, SOME)
TEST(members_leave, ALL)
TEST(member_shuts_down, ALL)

/* There is no memory for the timer of the job's end, and for a while none comes. */
static void test_end_has_no_timer(void **state)
{
    (void)state;
    static struct lane_timer filler[256];
    size_t fillers = 0;
    present = 1;
    present_row = UINT32_MAX;
    job_on(true, 0);
    struct lane *lane = ckpt_job.c.lane;
    assert_true(lane_enter(lane));
    for (; lane->timers_count + 1 < lane->timers_capacity; fillers++) {
        assert_true(fillers < sizeof filler / sizeof *filler);
        assert_int_equal(lane_timer_arm(lane, &filler[fillers], UINT64_MAX), PARAMO_OK);
    }
    fail_from_here();
    scheduler_end(ckpt_job.c.scheduler, PARAMO_E_DATA_LOST, "all is lost");
    assert_true(memory.struck);
    fail_no_more();
    for (size_t i = 0; i < fillers; i++)
        lane_timer_cancel(lane, &filler[i]);
    lane_leave(lane);
    for (unsigned i = 0; i < FIRST_EXTRA; i++) {
        assert_true(cluster_run(&ckpt_job.c, tnode_ended, node_at(i), 5));
        assert_int_equal(node_at(i)->ended_status, PARAMO_E_DATA_LOST);
    }
    assert_true(cluster_run(&ckpt_job.c, cluster_over, &ckpt_job.c, 10));
    job_off();
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end_has_no_timer),
        cmocka_unit_test(test_place_is_used_again),
        cmocka_unit_test(test_gathers),
        cmocka_unit_test(test_worker_joins),
        cmocka_unit_test(test_server_joins),
        cmocka_unit_test(test_server_dies),
        cmocka_unit_test(test_server_comes_back),
        cmocka_unit_test(test_server_is_drained),
        cmocka_unit_test(test_table_opens),
        cmocka_unit_test(test_nodes_meet),
        cmocka_unit_test(test_values_change),
        cmocka_unit_test(test_value_is_awaited),
        cmocka_unit_test(test_units_are_dealt),
        cmocka_unit_test(test_checkpoint_is_taken),
        cmocka_unit_test(test_checkpoint_with_copies),
        cmocka_unit_test(test_checkpoint_by_the_clock),
        cmocka_unit_test(test_lost_rows_return),
        cmocka_unit_test(test_lost_rows_return_first),
        cmocka_unit_test(test_scheduler_starts),
        cmocka_unit_test(test_job_begins_with_one),
        cmocka_unit_test(test_admin_asks),
        cmocka_unit_test(test_members_leave),
        cmocka_unit_test(test_member_shuts_down),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed)
        printf("the last scene: allocation %u fails, and %u in a row\n", (unsigned)present, present_row);
    return failed;
}
