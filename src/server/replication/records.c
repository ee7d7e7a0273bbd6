#include "server/replication/records.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "server/migration/source.h"
#include "server/replication/acks.h"
#include "server/replication/chain_stream.h"
#include "server/replication/gate.h"
#include "server/replication/origins.h"
#include "server/replication/routing.h"
#include "server/shard/senders.h"
#include "server/shard/slice.h"
#include "server/snapshot/loading.h"
#include "server/snapshot/saving.h"

/* How long a job waits when there is no memory for a record. Arbitrary. */
enum { RETRY_MS = 10, RETRIES = 100 };

enum work { WORK_PASS, WORK_FORGET, WORK_RESTART, WORK_GONE, WORK_END };

/* What a job does in each phase:
 *     PASS     0: each record of `from` is imported by `to`
 *              1: records of `to` of senders that `from` did not know: no number is applied on `partitions`
 *              2: records of `from` forget all but `left`
 *     FORGET   records of `from` forget all but `left`
 *     RESTART  no number is applied on `partitions`
 *     GONE     records of dead senders are freed
 *     END      all records are freed, then the origin */
struct job {
    struct qnode node;
    enum work work;
    unsigned phase;
    struct chain_origin *from, *to; /* NULL: this shard itself */
    bool begun;                     /* this phase ... */
    struct chain_sender *theirs;    /* ... with this record next; or, if it visits the shard's own, */
    struct sender *own;             /* with this one */
    uint64_t arrival;
    uint64_t partitions[CHAIN_WORDS], held[CHAIN_WORDS], left[CHAIN_WORDS];
};

/* ---- one record ---- */

/* A record of an origin, or one of this shard's own; or none. */
struct record {
    struct chain_sender *theirs;
    struct sender *own;
};

static struct applied_window *window_of(struct record r)
{
    return r.theirs ? &r.theirs->applied_window : r.own ? &r.own->applied_window : NULL;
}

/* The record of the same sender at `to`, found or made. None: no memory. */
static struct record record_at(struct chain *c, struct chain_origin *to, struct record r)
{
    assert(!r.theirs != !r.own);
    const struct sender_id *id = r.theirs ? &r.theirs->id : &r.own->id;
    struct record other = {0};
    if (to)
        other.theirs = origin_sender(to, id);
    else
        other.own = shard_sender(c->shard, id);
    return other;
}

unsigned records_cost_of_notes(const struct applied_window *w)
{
    unsigned cost = 0;
    for (const struct applied_note *note = w->applied_notes; note; note = note->next)
        cost += RECORDS_COST_NOTE;
    return cost;
}

unsigned records_cost_of_bits(const struct dedup *a, const struct dedup *b)
{
    unsigned cost = 0;
    for (unsigned i = 0; i < DATA_WINDOW / 64; i++)
        cost += RECORDS_COST_NOTE * (unsigned)__builtin_popcountll(a->bits[i] ^ b->bits[i]);
    return cost;
}

/* from NULL: no number is applied. */
static unsigned cost_of_import(const struct applied_window *to, const struct applied_window *from)
{
    static const struct dedup none;
    return records_cost_of_notes(to) + (from ? records_cost_of_notes(from) : 0) +
           records_cost_of_bits(&to->own, from ? &from->own : &none);
}

static paramo_err import(struct chain *c, const struct job *j, struct record r, unsigned *cost)
{
    const struct applied_window *w = window_of(r);
    assert(j->work == WORK_PASS && j->arrival && j->arrival <= c->arrivals);
    assert(j->from != j->to);
    struct record other = record_at(c, j->to, r);
    struct applied_window *to = window_of(other);
    if (!to)
        return err_memory(sizeof *r.theirs);
    if (other.own) {
        shard_floor(c->shard, other.own, w->own.floor);
        other.own->behind = true;
        other.own->told = 0;
    }
    to->arrival = j->arrival;
    *cost += cost_of_import(to, w);
    return applied_window_import(to, j->held, j->partitions, w);
}

static bool is_gone(const struct chain *c, const struct chain_sender *x)
{
    const struct view_node *node = view_node(c->shard->view, x->id.node);
    return !node || !node->alive || node->incarnation != x->id.incarnation;
}

/* MEMORY: it may be visited again. */
static paramo_err visit(struct chain *c, const struct job *j, struct record r, unsigned *cost)
{
    struct applied_window *w = window_of(r);
    paramo_err err = PARAMO_OK;
    if (j->work == WORK_GONE || j->work == WORK_END) {
        assert(r.theirs);
        *cost = RECORDS_COST_FREE;
        if (j->work == WORK_END || is_gone(c, r.theirs))
            origin_sender_free(j->from, r.theirs);
        return PARAMO_OK;
    }
    *cost = RECORDS_COST;
    if (j->work == WORK_FORGET || j->phase == 2) {
        *cost += records_cost_of_notes(w);
        applied_window_retain(w, j->left);
    } else if (j->work == WORK_PASS && j->phase == 0) {
        err = import(c, j, r, cost);
    } else if (j->work == WORK_RESTART || w->arrival != j->arrival) {
        *cost += cost_of_import(w, NULL);
        err = applied_window_import(w, j->held, j->partitions, NULL);
    }
    return err;
}

/* ---- jobs ---- */

/* Whose records this phase visits; NULL: the shard's own. */
static struct chain_origin *visited(const struct job *j)
{
    return j->work == WORK_PASS && j->phase == 1 ? j->to : j->from;
}

static void phase_begin(const struct chain *c, struct job *j)
{
    const struct chain_origin *o = visited(j);
    assert(!j->begun && (j->work == WORK_PASS ? j->phase <= 2 : !j->phase));
    assert(!j->theirs && !j->own);
    j->begun = true;
    j->theirs = o ? o->senders : NULL;
    j->own = o ? NULL : senders_first(c->shard);
}

/* Visits records until the turn is used up, or all are visited: *done. */
static paramo_err job_turn(struct chain *c, struct job *j, unsigned *left, bool *done)
{
    *done = false;
    while (*left) {
        if (!j->begun)
            phase_begin(c, j);
        struct record r = {.theirs = j->theirs, .own = j->own};
        assert(!r.theirs || !r.own);
        if (!r.theirs && !r.own) {
            *done = j->work != WORK_PASS || j->phase == 2;
            if (*done)
                return PARAMO_OK;
            j->phase++;
            j->begun = false;
            continue;
        }
        struct chain_sender *theirs = r.theirs ? r.theirs->next : NULL; /* the visit may free it */
        struct sender *own = r.own ? r.own->next : NULL;
        unsigned cost = 0;
        paramo_err err = visit(c, j, r, &cost);
        if (err)
            return err;
        j->theirs = theirs;
        j->own = own;
        c->records.spent += cost;
        assert(j->begun);
        *left -= cost < *left ? cost : *left;
    }
    return PARAMO_OK;
}

static void job_end(struct job *j)
{
    assert(j->work != WORK_PASS || j->from != j->to);
    assert(j->work != WORK_END || !j->from->partitions);
    if (j->work == WORK_END)
        origin_fini(j->from);
    free(j);
}

/* All entries are in the streams. */
static void routed(struct chain *c)
{
    assert(!chain_routes(c));
    for (struct chain_stream *st = c->streams; st && c->routing.gated; st = st->next)
        st->gate = st->seq;
    c->routing.gated = false;
    memset(c->routing.left, 0, sizeof c->routing.left);
    migration_source_mark_streams(c);
    saving_mark(c->shard);
}

static void route(struct chain *c, unsigned *left)
{
    while (*left && chain_routes(c)) {
        unsigned cost = chain_route(c);
        c->records.spent += cost;
        *left -= cost < *left ? cost : *left;
    }
    if (!chain_routes(c))
        routed(c);
}

/* OK: the turn is used up, or nothing is left. */
static paramo_err turn(struct chain *c, unsigned left)
{
    if (chain_routes(c))
        route(c, &left);
    while (left && c->records.jobs.head) {
        struct job *j = container_of(c->records.jobs.head, struct job, node);
        bool done;
        paramo_err err = job_turn(c, j, &left, &done);
        if (err)
            return err;
        if (!done)
            continue;
        assert(c->records.jobs.head == &j->node);
        (void)queue_pop(&c->records.jobs);
        job_end(j);
    }
    return PARAMO_OK;
}

/* Without memory for a timer or a job. */
static void all_turns(struct chain *c)
{
    while (records_pending(c)) {
        paramo_err err = turn(c, UINT32_MAX);
        if (!err)
            continue;
        chain_fail(c, err);
        job_end(container_of(queue_pop(&c->records.jobs), struct job, node));
    }
}

static void turn_in(struct chain *c, uint64_t ns)
{
    struct shard *s = c->shard;
    if (lane_timer_arm(s->lane, &c->records.timer, lane_now(s->lane) + ns))
        all_turns(c);
}

/* The shard continues. */
static void over(struct chain *c)
{
    struct shard *s = c->shard;
    assert(!records_pending(c) && !c->records.waits);
    shard_senders_check(s);
    for (struct chain_source *source = c->sources; source; source = source->next)
        if (source->again)
            acks_send(source);
    migration_source_records_over(c);
    c->held = true;
    chain_reopen(s);
    loading_check(s);
}

/* True: jobs are left, and their next turn will come. */
static bool turn_taken(struct chain *c)
{
    paramo_err err = turn(c, records_turn(c->shard));
    c->records.tries = err ? c->records.tries + 1 : 0;
    if (c->records.tries > RETRIES) {
        chain_fail(c, err);
        records_close(c);
    }
    if (!records_pending(c))
        return false;
    /* In a simulation, other events come between two turns. */
    turn_in(c, err ? RETRY_MS * ENV_MS : c->shard->config.turn_records ? ENV_MS : 0);
    assert(c->records.tries <= RETRIES);
    return records_pending(c);
}

void records_fire(struct lane_timer *timer)
{
    struct chain *c = container_of(timer, struct chain, records.timer);
    assert(c->shard->chain == c);
    bool routes = chain_routes(c);
    c->records.waits = turn_taken(c);
    assert(c->records.waits == records_pending(c));
    if (routes)
        chain_send_all(c);
    if (routes && !chain_routes(c)) { /* the next members may have acknowledged all */
        migration_source_check_pause(c);
        saving_check(c->shard);
    }
    if (!c->records.waits)
        over(c);
}

/* Members take takeovers in order. So where one is acknowledged, all members have the earlier ones, and sending an
 * earlier one again would bring a former owner back. An earlier one may still be in the list, because it also has
 * partitions whose chains have not acknowledged it. */
static void forget_passed(struct queue *entries)
{
    uint32_t passed[RING_PARTITIONS] = {0}, at = 0; /* the last that is acknowledged, counted from 1 */
    for (struct qnode *node = entries->head; node; node = node->next) {
        const struct chain_entry *e = container_of(node, struct chain_entry, node);
        at++;
        if (e->m.what == CHAIN_TAKEOVER && e->acked)
            for (partition_set_each(a, e->m.partitions))
                passed[a] = at;
    }
    at = 0;
    for (struct qnode *node = entries->head; node; node = node->next) {
        struct chain_entry *e = container_of(node, struct chain_entry, node);
        at++;
        if (e->m.what == CHAIN_TAKEOVER && !e->acked)
            for (partition_set_each(a, e->m.partitions))
                if (passed[a] > at)
                    partition_set_remove(e->m.partitions, a);
    }
}

void records_route(struct chain *c, struct queue *entries, const uint64_t nothing[CHAIN_WORDS], bool gated)
{
    unsigned left = records_turn(c->shard);
    assert(c->shard->chain == c);
    forget_passed(entries);
    queue_append(entries, &c->routing.entries);
    queue_append(&c->routing.entries, entries);
    assert(queue_empty(entries));
    for (unsigned i = 0; i < CHAIN_WORDS; i++)
        c->routing.left[i] |= nothing[i];
    c->routing.gated |= gated;
    if (!c->records.waits || !chain_routes(c))
        route(c, &left);
    if (chain_routes(c) && !c->records.waits) {
        turn_in(c, c->shard->config.turn_records ? ENV_MS : 0);
        c->records.waits = records_pending(c);
    }
}

void records_go(struct chain *c)
{
    if (c->records.waits || !records_pending(c))
        return;
    c->records.waits = turn_taken(c);
    assert(c->records.waits == records_pending(c));
    if (!c->records.waits)
        lane_timer_cancel(c->shard->lane, &c->records.timer);
}

void records_close(struct chain *c)
{
    lane_timer_cancel(c->shard->lane, &c->records.timer);
    for (struct qnode *node; (node = queue_pop(&c->records.jobs));)
        job_end(container_of(node, struct job, node));
}

/* ---- what is added ---- */

static void add(struct chain *c, struct job *j)
{
    assert(!j->begun && !j->phase && !j->theirs && !j->own);
    assert(j->work != WORK_PASS || j->from != j->to);
    queue_push(&c->records.jobs, &j->node);
    if (!c->records.timer.slot)
        turn_in(c, 0);
}

/* Adds a copy of the job, or does it now, after all others. */
static void add_or_do(struct chain *c, const struct job *j)
{
    struct job *copy = malloc(sizeof *copy);
    assert(j->work != WORK_PASS && !j->begun);
    if (copy) {
        *copy = *j;
        add(c, copy);
        return;
    }
    struct job now = *j;
    unsigned left = UINT32_MAX;
    bool done;
    all_turns(c);
    paramo_err err = job_turn(c, &now, &left, &done);
    if (err) /* these jobs need no memory */
        chain_fail(c, err);
    if (now.work == WORK_END)
        origin_fini(now.from);
}

paramo_err records_pass(struct chain *c, struct chain_origin *from, struct chain_origin *to,
                        const uint64_t partitions[CHAIN_WORDS])
{
    assert(from != to);
    struct job *j = malloc(sizeof *j);
    if (!j)
        return err_memory(sizeof *j);
    *j = (struct job){.work = WORK_PASS, .from = from, .to = to, .arrival = ++c->arrivals};
    for (partition_set_each(a, partitions))
        if (c->origin_of[a] == from)
            partition_set_add(j->partitions, a);
    if (to)
        origin_partitions(c, to, j->held);
    else
        memcpy(j->held, c->mine, sizeof j->held);
    for (partition_set_each(a, j->partitions)) {
        c->origin_of[a] = to;
        if (from) {
            assert(from->partitions > 0);
            from->partitions--;
        }
        if (to)
            to->partitions++;
    }
    assert(!to || to->partitions > 0);
    if (from)
        origin_partitions(c, from, j->left);
    for (unsigned i = 0; i < CHAIN_WORDS && !from; i++)
        j->left[i] = c->mine[i] & ~j->partitions[i];
    add(c, j);
    return PARAMO_OK;
}

void records_forget(struct chain *c)
{
    for (struct chain_origin *o = c->origins; o; o = o->next) {
        struct job j = {.work = WORK_FORGET, .from = o};
        origin_partitions(c, o, j.left);
        add_or_do(c, &j);
    }
    struct job own = {.work = WORK_FORGET};
    memcpy(own.left, c->mine, sizeof own.left);
    add_or_do(c, &own);
}

paramo_err records_restart(struct chain *c, struct chain_origin *o, const uint64_t partitions[CHAIN_WORDS])
{
    struct job *j = malloc(sizeof *j);
    if (!j)
        return err_memory(sizeof *j);
    *j = (struct job){.work = WORK_RESTART, .from = o};
    memcpy(j->partitions, partitions, sizeof j->partitions);
    if (o)
        origin_partitions(c, o, j->held);
    else
        memcpy(j->held, c->mine, sizeof j->held);
    add(c, j);
    return PARAMO_OK;
}

void records_of_gone(struct chain *c, struct chain_origin *o)
{
    if (o->senders)
        add_or_do(c, &(struct job){.work = WORK_GONE, .from = o});
}

void records_end(struct chain *c, struct chain_origin *o)
{
    struct chain_origin **at = &c->origins;
    assert(!o || !o->partitions);
    while (*at && *at != o)
        at = &(*at)->next;
    if (*at && o)
        *at = o->next;
    if (o)
        add_or_do(c, &(struct job){.work = WORK_END, .from = o});
}
