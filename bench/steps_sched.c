/* Processor time of the steps in which the scheduler answers many callers at once and saves its state. bench/steps.sh
 * builds and runs it. The nodes have no connections: what an answer costs on its way to a node is not counted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_barrier.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_kv.h"
#include "cluster/scheduler/sched_pool.h"
#include "cluster/scheduler/sched_pool_records.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_save.h"
#include "cluster/scheduler/sched_units.h"
#include "cluster/scheduler/scheduler.h"
#include "env/lane.h"
#include "van/van.h"
#include "wire/barrier_call.h"
#include "wire/kv_calls.h"
#include "wire/pool_calls.h"

enum { WORKERS = 9999 };

static struct {
    struct lane *lane;
    struct scheduler *sched;
    struct sched_node *nodes;
    uint64_t next; /* number of a node's next call, without its place */
    store_saved_fn *saved;
    void *arg;
    size_t bytes; /* of the last save */
} bench;

static struct {
    double sum, longest;
    unsigned long steps;
} took;

static double cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void step_took(double ms)
{
    took.sum += ms;
    took.longest = ms > took.longest ? ms : took.longest;
    took.steps++;
}

static void report(const char *what, size_t n)
{
    printf("%-34s %10zu:              longest step %7.3f ms, %7lu steps, %9.1f ms in all\n", what, n,
           took.longest, took.steps, took.sum);
    fflush(stdout);
    memset(&took, 0, sizeof took);
}

static bool fired(struct lane_timer *timer)
{
    if (!timer->slot)
        return false;
    lane_timer_cancel(bench.lane, timer);
    double start = cpu();
    timer->fire(timer);
    step_took(cpu() - start);
    return true;
}

/* ---- a store that keeps nothing ------------------------------------------------------------------------ */

static paramo_err save(struct store *store, struct writer *records, bool whole, store_saved_fn *done,
                       void *arg)
{
    (void)store, (void)whole;
    bench.bytes = records->len;
    bench.saved = done;
    bench.arg = arg;
    writer_fini(records);
    return PARAMO_OK;
}

static bool sure(const struct store *store)
{
    (void)store;
    return true;
}

static void closed(struct store *store)
{
    (void)store;
}

/* All turns of a save, up to what goes to the store; then all turns of the answers that wait for it. */
static void saves(const char *what, const char *answers, size_t n)
{
    struct scheduler *s = bench.sched;
    while (!bench.saved && (fired(&s->saves->timer) || fired(&s->saves->writing.timer))) {
    }
    if (!bench.saved)
        exit(1);
    report(what, n);
    store_saved_fn *done = bench.saved;
    bench.saved = NULL;
    double start = cpu();
    done(bench.arg, PARAMO_OK);
    step_took(cpu() - start);
    while (fired(&s->calls->timer)) {
    }
    if (answers)
        report(answers, n);
    memset(&took, 0, sizeof took);
    while (fired(&s->saves->timer) || fired(&s->saves->writing.timer) || bench.saved) {
        if (bench.saved) {
            done = bench.saved;
            bench.saved = NULL;
            done(bench.arg, PARAMO_OK);
        }
    }
    memset(&took, 0, sizeof took);
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static void called(struct sched_node *node, uint32_t kind, uint64_t number, const struct writer *body,
                   void (*handle)(struct sched_call *call, struct reader *body))
{
    struct wire_call head = {.what = kind, .number = number};
    struct reader r = reader_over(body->data, body->len);
    double start = cpu();
    if (sched_calls_received(node, &head, &r, handle))
        exit(1);
    step_took(cpu() - start);
}

/* Each node makes `each` calls of this kind. */
static void all_call(unsigned each, uint32_t kind, const struct writer *body,
                     void (*handle)(struct sched_call *call, struct reader *body))
{
    bench.next++;
    for (unsigned k = 0; k < each; k++)
        for (unsigned i = 0; i < WORKERS; i++)
            called(&bench.nodes[i], kind, bench.next * CALL_PLACES + k, body, handle);
}

static void barrier(unsigned each)
{
    size_t n = (size_t)each * WORKERS;
    struct writer w = {0};
    barrier_call_encode(&(struct barrier_call){.group = PARAMO_GROUP_WORKERS, .timeout_ms = 600000}, &w);
    struct sched_node *last = &bench.nodes[WORKERS - 1];
    bench.next++;
    for (unsigned k = 0; k < each; k++)
        for (unsigned i = 0; i + 1 < WORKERS; i++)
            called(&bench.nodes[i], CALL_BARRIER, bench.next * CALL_PLACES + k, &w, sched_barrier_enter);
    report("a barrier is entered", n);
    called(last, CALL_BARRIER, bench.next * CALL_PLACES, &w, sched_barrier_enter);
    while (fired(&bench.sched->calls->timer)) {
    }
    report("and released", n);
    saves("saved", "and its answers leave", n);
    writer_fini(&w);
}

static void values(unsigned each, uint32_t bytes)
{
    size_t n = (size_t)each * WORKERS;
    struct writer w = {0}, put = {0};
    kv_get_encode(&(struct kv_get){.key = "a", .timeout_ms = 600000}, &w);
    all_call(each, CALL_KV_GET, &w, sched_kv_get);
    report("a value is waited for", n);
    uint8_t *value = calloc(1, bytes);
    kv_put_encode(&(struct kv_put){.key = "a", .value = value, .len = bytes}, &put);
    called(&bench.nodes[0], CALL_KV_PUT, ++bench.next * CALL_PLACES, &put, sched_kv_put);
    while (fired(&bench.sched->calls->timer)) {
    }
    report("and put", n);
    saves("saved", "and the answers leave", n);
    writer_fini(&w);
    writer_fini(&put);
    put = (struct writer){0};
    struct kv_delete gone = {.key = "a"};
    kv_delete_encode(&gone, &put);
    called(&bench.nodes[0], CALL_KV_DELETE, ++bench.next * CALL_PLACES, &put, sched_kv_delete);
    saves("", NULL, n);
    writer_fini(&put);
    free(value);
}

/* The last node never enters: the calls of all others time out, one after the other. */
static void barrier_late(void)
{
    struct writer w = {0};
    barrier_call_encode(
        &(struct barrier_call){.group = PARAMO_GROUP_WORKERS, .customer = 1u << 20, .timeout_ms = 600000},
        &w);
    bench.next++;
    for (unsigned i = 0; i + 1 < WORKERS; i++)
        called(&bench.nodes[i], CALL_BARRIER, bench.next * CALL_PLACES, &w, sched_barrier_enter);
    memset(&took, 0, sizeof took);
    for (unsigned i = 0; i + 1 < WORKERS; i++) {
        struct sched_call *call = bench.nodes[i].calls.kept[0];
        lane_timer_cancel(bench.lane, &call->timer);
        double start = cpu();
        call->timed_out(call);
        step_took(cpu() - start);
    }
    report("calls of a barrier time out", WORKERS - 1);
    writer_fini(&w);
}

/* Each node takes `each` work units, and asks for one more than there are. A report ends the round: the first turn of
 * the answers is part of its step. */
static void pool(unsigned each)
{
    struct scheduler *s = bench.sched;
    struct writer open = {0}, next = {0}, end = {0};
    struct pool_next_result got;
    uint64_t number = ++bench.next * CALL_PLACES;
    pool_open_encode(&(struct pool_open){.name = "p", .streams = 1, .rounds = 1}, &open);
    pool_next_encode(&(struct pool_next){.name = "p", .timeout_ms = 600000}, &next);
    called(&bench.nodes[0], CALL_POOL_OPEN, number, &open, sched_pool_open);
    all_call(each, CALL_POOL_NEXT, &next, sched_pool_next);
    report("work units are dealt", (size_t)each * WORKERS);
    double start = cpu();
    sched_pool_record(s, RECORD_UNITS, 0, &end);
    step_took(cpu() - start);
    report("a record of 64 of them", (size_t)each * WORKERS);
    writer_fini(&end);
    bench.next++;
    called(&bench.nodes[0], CALL_POOL_NEXT, bench.next * CALL_PLACES, &next, sched_pool_next);
    struct reader r =
        reader_over(bench.nodes[0].calls.kept[0]->answer.data, bench.nodes[0].calls.kept[0]->answer.len);
    if (pool_next_result_decode(&r, &got))
        exit(1);
    struct pool_report m = {.name = "p", .unit = got.unit};
    end = (struct writer){0};
    pool_report_encode(&m, &end);
    called(&bench.nodes[0], CALL_POOL_END, ++bench.next * CALL_PLACES, &end, sched_pool_end);
    all_call(1, CALL_POOL_NEXT, &next, sched_pool_next);
    report("callers wait for a work unit", WORKERS);
    sched_pool_node_gone(&bench.nodes[1]);
    memset(&took, 0, sizeof took);
    for (unsigned all = 0; all < 2; all++) {
        s->calls->most = all ? 1u << 30 : SCHED_CALLS_TURN;
        all_call(1, CALL_POOL_NEXT, &next, sched_pool_next);
        memset(&took, 0, sizeof took);
        start = cpu();
        sched_pool_node_gone(&bench.nodes[2 + all]);
        step_took(cpu() - start);
        report(all ? "a node is gone: answers in one step" : "a node is gone: first turn", each);
    }
    s->calls->most = SCHED_CALLS_TURN;
    saves("", NULL, 0);
    writer_fini(&open);
    writer_fini(&next);
    writer_fini(&end);
}

/* The last of n work units is reported, and the next round begins. */
static void round_begins(const char *name, uint32_t n)
{
    struct writer open = {0}, next = {0}, done = {0};
    struct pool_open m_open = {.streams = 1, .rounds = 2};
    struct pool_next m_next = {.timeout_ms = 600000};
    struct pool_report m_done = {0};
    struct pool_next_result got;
    struct sched_node *node = &bench.nodes[0];
    snprintf(m_open.name, sizeof m_open.name, "%s", name);
    snprintf(m_next.name, sizeof m_next.name, "%s", name);
    snprintf(m_done.name, sizeof m_done.name, "%s", name);
    pool_open_encode(&m_open, &open);
    pool_next_encode(&m_next, &next);
    called(node, CALL_POOL_OPEN, ++bench.next * CALL_PLACES, &open, sched_pool_open);
    called(node, CALL_POOL_NEXT, ++bench.next * CALL_PLACES, &next, sched_pool_next);
    struct reader r = reader_over(node->calls.kept[0]->answer.data, node->calls.kept[0]->answer.len);
    struct sched_pool *pool = bench.sched->pools->first;
    struct unit *units = realloc(pool->units, n * sizeof *units);
    if (!units || pool_next_result_decode(&r, &got) || pool->count != 1)
        exit(1);
    for (uint32_t i = 1; i < n; i++)
        units[i] = (struct unit){.index = i, .owner = 0, .next = NO_UNIT, .state = UNIT_DONE};
    pool->units = units;
    pool->count = pool->capacity = n;
    pool->done = n - 1;
    pool->stream = 1;
    m_done.unit = got.unit;
    pool_report_encode(&m_done, &done);
    memset(&took, 0, sizeof took);
    called(node, CALL_POOL_DONE, ++bench.next * CALL_PLACES, &done, sched_pool_done);
    while (fired(&pool->round_turn)) {
    }
    if (pool->round != 1 || pool->free != n)
        exit(1);
    report("a round of work units begins", n);
    for (uint32_t i = 0; i + 1 < n; i++) { /* others do all but the last */
        unit_move(pool, &pool->units[i], UNIT_LEASED);
        unit_move(pool, &pool->units[i], UNIT_DONE);
    }
    pool->free = 1;
    pool->done = n - 1;
    m_next.round = 1;
    writer_fini(&next);
    next = (struct writer){0};
    pool_next_encode(&m_next, &next);
    memset(&took, 0, sizeof took);
    called(&bench.nodes[1], CALL_POOL_NEXT, ++bench.next * CALL_PLACES, &next, sched_pool_next);
    report("the last free one is found", n);
    if (pool->free)
        exit(1);
    sched_pool_fini(bench.sched); /* a pool of this size does not fit into a save */
    saves("", NULL, 0);
    writer_fini(&open);
    writer_fini(&next);
    writer_fini(&done);
}

/* Everything that can be saved: values, barriers, and answers of all nodes. */
static void state(unsigned count, uint32_t bytes)
{
    struct scheduler *s = bench.sched;
    uint8_t *value = calloc(1, bytes);
    for (unsigned i = 0; i < count; i++) {
        struct writer w = {0};
        struct kv_put m = {.value = value, .len = bytes};
        snprintf(m.key, sizeof m.key, "key %u", i);
        kv_put_encode(&m, &w);
        called(&bench.nodes[i % WORKERS], CALL_KV_PUT, (++bench.next + 1) * CALL_PLACES, &w, sched_kv_put);
        writer_fini(&w);
        w = (struct writer){0};
        barrier_call_encode(&(struct barrier_call){.group = PARAMO_GROUP_WORKERS, .customer = i + 1}, &w);
        called(&bench.nodes[i % WORKERS], CALL_BARRIER, (++bench.next + 1) * CALL_PLACES + 1, &w,
               sched_barrier_enter);
        writer_fini(&w);
    }
    report("values are put, barriers entered", count);
    saves("they are saved", "and the answers leave", count);
    sched_save_all(s);
    double start = cpu();
    sched_save_retry(s);
    step_took(cpu() - start);
    saves("a whole save", NULL, count);
    printf("(%.1f MB)\n", 1e-6 * (double)bench.bytes);
    struct sched_save_copy copy;
    sched_save_copy_begin(s, &copy);
    for (bool all = false; !all;) {
        start = cpu();
        all = sched_save_copy_turn(s, false);
        step_took(cpu() - start);
    }
    report("a checkpoint copies values, pools", count);
    sched_save_copy_end(s);
    writer_fini(&copy.run.w);
    free(value);
}

int main(void)
{
    static const struct store_ops ops = {.save = save, .sure = sure, .close = closed};
    static struct store store = {.ops = &ops};
    static const struct store_state nothing = {.term = 1};
    struct van *van;
    if (lane_create(env_real(), "steps", 0, &bench.lane) || van_inproc_create(env_real(), &van))
        return 1;
    while (!lane_enter(bench.lane)) {
    }
    struct scheduler_config config = {.van = van,
                                      .lane = bench.lane,
                                      .address = "steps",
                                      .token = "",
                                      .num_workers = WORKERS,
                                      .store = &store,
                                      .found = &nothing};
    if (scheduler_create(&config, &bench.sched))
        return 1;
    struct scheduler *s = bench.sched;
    s->state = SCHED_RUNNING;
    bench.nodes = calloc(WORKERS, sizeof *bench.nodes);
    for (uint32_t i = 0; i < WORKERS; i++) {
        struct sched_node *node = &bench.nodes[i];
        *node = (struct sched_node){.sched = s, .state = SNODE_JOINED, .rank = i};
        node->info = (struct view_node){
            .id = PARAMO_ID_WORKER(i), .role = PARAMO_ROLE_WORKER, .incarnation = i + 1, .alive = true};
        s->roster->slots[SLOTS_WORKERS].node[i] = node;
    }
    sched_save_retry(s);
    saves("", NULL, 0);
    barrier(1);
    barrier(20);
    values(1, 100);
    values(20, 100);
    barrier_late();
    pool(20);
    round_begins("million", 1000000);
    round_begins("most", POOL_UNITS_MAX);
    state(60000, 900);
    values(1, KV_VALUE_MAX);
    return 0;
}
