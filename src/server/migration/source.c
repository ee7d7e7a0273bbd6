#include "server/migration/source.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/sm.h"
#include "server/replication/chain_stream.h"
#include "server/replication/chain_tick.h"
#include "server/replication/chain_wait.h"
#include "server/replication/entry.h"
#include "server/replication/gate.h"
#include "server/replication/records.h"
#include "server/shard/clearing.h"
#include "server/shard/senders.h"
#include "server/shard/shard_tables.h"
#include "server/snapshot/ckpt_rows.h"
#include "wire/order.h"

struct migration_source {
    struct chain *chain;
    struct migration_order order;
    enum migration_source_state state;
    uint64_t term; /* of the scheduler */
    uint64_t partitions[CHAIN_WORDS];
    struct chain_stream *stream; /* NULL: the target is a member */
    uint32_t table;              /* whose rows are being sent; tables of lower ids are done */
    uint64_t cursor;             /* in it */
    bool table_begun;
    uint64_t *keys; /* found and not sent yet */
    size_t keys_count, keys_room;
    size_t rows_out;     /* bytes, not acknowledged */
    uint64_t rows_bytes; /* sent so far */
    int64_t credit;      /* bytes that may be sent now */
    uint64_t credited_at;
    uint64_t last;      /* the number of LAST in the stream */
    bool last_due;      /* it is sent after the records of all senders; these wait while others pass */
    bool records_begun; /* of this sender next: */
    const struct sender *sender;
    uint64_t records_spent; /* by all turns; for tests */
    uint64_t began_at, paused_at;
    shard_migration_done paused;
    void *arg;
    struct lane_timer timer;
};

enum migration_source_state migration_source_state(const struct migration_source *g, uint64_t *id)
{
    *id = g->order.id;
    return g->state;
}

const struct migration_order *migration_source_order(const struct migration_source *g)
{
    return &g->order;
}

static struct chain_name name_of(const struct migration_shard *m)
{
    return (struct chain_name){.node = m->node, .shard = m->index};
}

static uint64_t term_of(const struct shard *s)
{
    return s->view->number >> 32;
}

static bool in_migration(const struct migration_order *m, unsigned partition)
{
    return partition >= m->first && partition < (unsigned)m->first + m->partitions;
}

/* The target's place in a partition's chain by the view; -1: none. */
static int target_level(const struct shard *s, const struct migration_order *m, unsigned partition)
{
    int target = view_shard_index(s->view, m->to.node, m->to.index);
    for (unsigned level = 0; target >= 0 && level <= s->view->chains.replicas; level++)
        if (s->view->chains.level[level].owner[partition] == (unsigned)target)
            return (int)level;
    return -1;
}

/* Does the view have the target at the level that it had before the migration? Not after the commit. */
static bool target_expected(const struct shard *s, const struct migration_order *m, unsigned partition)
{
    return target_level(s, m, partition) == (m->had == MIGRATION_NO_LEVEL ? -1 : m->had);
}

bool migration_source_sends_table(const struct migration_source *g, const struct shard_table *t)
{
    return t->replicas >= g->order.level && t->replicas < g->order.had;
}

bool migration_source_needs_ack(const struct migration_source *g)
{
    return g->state != MIGRATION_SOURCE_COPYING;
}

/* ---- sending ---- */

static struct chain_entry *migration_entry(const struct migration_message *m, const void *payload,
                                           size_t bytes)
{
    struct chain_entry *e = chain_entry_new(bytes);
    if (!e)
        return NULL;
    e->migration = *m;
    e->migration.bytes = bytes;
    if (bytes)
        memcpy(e->data, payload, bytes);
    e->seg[0] = (struct van_seg){.data = e->data, .len = bytes};
    return e;
}

static paramo_err send_step(struct migration_source *g, uint16_t what, const struct writer *payload,
                            uint32_t table)
{
    struct migration_message m = {.what = what, .id = g->order.id, .table = table};
    assert(g->stream && g->stream->migration_source == g);
    assert(what != MIGRATION_STEP_ROWS || g->state == MIGRATION_SOURCE_COPYING);
    if (what == MIGRATION_STEP_BEGIN) {
        m.first = g->order.first;
        m.partitions = g->order.partitions;
    }
    if (payload && payload->failed)
        return err_memory(payload->len);
    struct chain_entry *e = migration_entry(&m, payload ? payload->data : NULL, payload ? payload->len : 0);
    if (!e)
        return err_memory(sizeof *e);
    chain_append(g->stream, e);
    if (what == MIGRATION_STEP_ROWS) {
        g->rows_out += e->bytes;
        g->rows_bytes += payload->len;
        g->credit -= (int64_t)payload->len;
    }
    return PARAMO_OK;
}

void migration_source_rows_acked(struct migration_source *g, size_t bytes)
{
    assert(g->rows_out >= bytes);
    assert(g->chain->migration_source == g);
    g->rows_out -= bytes;
}

/* ---- rows ---- */

/* The table of the next id that has rows; NULL: there is none. */
static struct shard_table *next_table(const struct migration_source *g)
{
    struct shard_table *next = NULL;
    struct shard_table *t;
    for (size_t i = 0; (t = shard_table_next(g->chain->shard, &i));) {
        bool later = t->id > g->table || (t->id == g->table && g->table_begun);
        bool has = migration_source_sends_table(g, t);
        if (t->table && has && later && (!next || t->id < next->id))
            next = t;
    }
    return next;
}

struct collector {
    struct migration_source *migration_source;
    const struct shard_table *table;
    bool failed;
};

/* Records follow the last rows, and are sent once requests for the partitions wait. */
static void source_check(const struct migration_source *g)
{
    assert(g->chain->migration_source == g && g->keys_count <= g->keys_room);
    assert(g->state >= MIGRATION_SOURCE_FULL || (!g->records_begun && !g->last_due));
    assert(!g->stream || g->stream->migration_source == g);
}

static void collect_key(void *ctx, uint64_t key)
{
    struct collector *collector = ctx;
    struct migration_source *g = collector->migration_source;
    if (!partition_set_has(g->partitions, ring_partition(ring_position(&collector->table->placement, key))))
        return;
    if (g->keys_count == g->keys_room) {
        size_t room = g->keys_room ? 2 * g->keys_room : 1024;
        uint64_t *keys = realloc(g->keys, room * sizeof *keys);
        if (!keys) {
            collector->failed = true;
            return;
        }
        g->keys = keys;
        g->keys_room = room;
    }
    assert(g->state == MIGRATION_SOURCE_COPYING);
    assert(g->keys_count < g->keys_room);
    g->keys[g->keys_count++] = key;
}

/* Collects the keys of more rows of the migration's partitions. *more: there may be others. */
static paramo_err collect_keys(struct migration_source *g, struct shard_table *t, size_t rows, bool *more)
{
    struct collector collector = {.migration_source = g, .table = t};
    assert(g->table == t->id && g->table_begun);
    if (t->options.kind != PARAMO_TABLE_DENSE) {
        *more = table_sweep(t->table, &g->cursor, rows, collect_key, &collector);
        return collector.failed ? err_memory(rows * sizeof *g->keys) : PARAMO_OK;
    }
    unsigned end = (unsigned)g->order.first + g->order.partitions;
    uint64_t first = ring_first_row(&t->placement, g->order.first);
    uint64_t last = end == RING_PARTITIONS ? t->options.rows : ring_first_row(&t->placement, end);
    uint64_t at = g->cursor > first ? g->cursor : first;
    for (; at < last && rows && !collector.failed; at++, rows--)
        collect_key(&collector, at);
    assert(at >= g->cursor);
    g->cursor = at;
    *more = at < last;
    return collector.failed ? err_memory(rows * sizeof *g->keys) : PARAMO_OK;
}

static paramo_err send_rows(struct migration_source *g, const struct shard_table *t)
{
    assert(g->state == MIGRATION_SOURCE_COPYING && g->table == t->id);
    assert(g->stream && g->keys_count <= g->keys_room);
    paramo_err err = PARAMO_OK;
    for (size_t at = 0, took = 0; at < g->keys_count && !err; at += took) {
        struct writer w = {0};
        struct ckpt_block block;
        err = ckpt_rows_encode(t->table, t->id, &t->placement, g->keys + at, g->keys_count - at, &w, &block,
                               &took);
        if (!err)
            err = send_step(g, MIGRATION_STEP_ROWS, &w, t->id);
        writer_fini(&w);
    }
    return err;
}

static const struct sm machine = {"migration_source",
                                  {[MIGRATION_SOURCE_COPYING] = {"copying", SM_TO(MIGRATION_SOURCE_FULL)},
                                   [MIGRATION_SOURCE_FULL] = {"full", SM_TO(MIGRATION_SOURCE_PAUSING)},
                                   [MIGRATION_SOURCE_PAUSING] = {"pausing", SM_TO(MIGRATION_SOURCE_PAUSED)},
                                   [MIGRATION_SOURCE_PAUSED] = {"paused", 0}}};

static void move(struct migration_source *g, enum migration_source_state to)
{
    sm_check(&machine, g->state, to);
    source_check(g);
    g->state = to;
}

/* One turn: sends one block of rows, or examines MIGRATION_TURN_ROWS rows. */
static paramo_err turn(struct migration_source *g)
{
    size_t looked = 0;
    uint64_t sent = g->rows_bytes;
    assert(g->stream && !g->keys_count);
    while (g->state == MIGRATION_SOURCE_COPYING && looked < MIGRATION_TURN_ROWS &&
           g->rows_bytes - sent < MIGRATION_BLOCK_BYTES) {
        struct shard_table *t = next_table(g);
        if (!t) {
            paramo_err err = send_step(g, MIGRATION_STEP_FULL, NULL, 0);
            if (!err)
                move(g, MIGRATION_SOURCE_FULL);
            return err;
        }
        if (clearing_touches(t, g->partitions)) /* removed rows are not sent */
            return PARAMO_OK;
        if (!g->table_begun || t->id != g->table) {
            g->table = t->id;
            g->table_begun = true;
            g->cursor = 0;
        }
        size_t row = t->stored_values * (size_t)t->value_bytes;
        size_t rows = MIGRATION_BLOCK_BYTES / (row + 64) + 1;
        rows = rows < MIGRATION_TURN_ROWS - looked ? rows : MIGRATION_TURN_ROWS - looked;
        bool more;
        uint64_t before = g->cursor;
        paramo_err err = collect_keys(g, t, rows, &more);
        assert(err || !more || g->cursor > before); /* each turn makes progress */
        if (!err)
            err = send_rows(g, t);
        g->keys_count = 0;
        if (err) { /* the next turn collects these keys again, and sends the rows as they are then */
            g->cursor = before;
            return err;
        }
        looked += rows;
        if (!more)
            g->table_begun = false;
        if (!more && !next_table(g))
            continue; /* FULL follows at once */
    }
    return PARAMO_OK;
}

static void credit_more(struct migration_source *g, uint64_t now)
{
    int64_t rate = (int64_t)g->order.kib_per_s << 10;
    uint64_t passed = now - g->credited_at;
    assert(now >= g->credited_at);
    g->credited_at = now;
    if (passed > ENV_SEC)
        passed = ENV_SEC;
    g->credit += (int64_t)((double)rate * (double)passed / (double)ENV_SEC);
    if (g->credit > rate)
        g->credit = rate;
    assert(g->credit <= rate);
}

/* ---- the end ---- */

static void report_paused(struct migration_source *g, paramo_err err)
{
    assert(!g->paused || g->state >= MIGRATION_SOURCE_PAUSING);
    source_check(g);
    shard_migration_done paused = g->paused;
    g->paused = NULL;
    if (paused)
        paused(g->arg, err);
}

static void source_free(struct migration_source *g)
{
    struct chain *c = g->chain;
    struct queue entries = {0};
    report_paused(g, err_set(PARAMO_E_NOT_FOUND, "the migration is over"));
    assert(c->migration_source == g);
    c->migration_source = NULL;
    lane_timer_cancel(c->shard->lane, &g->timer);
    if (g->stream) {
        chain_stream_close(c, g->stream, &entries);
        for (struct qnode *node;
             (node = queue_pop(&entries));) { /* the target is no member: no answer depends on it any more */
            struct chain_entry *e = container_of(node, struct chain_entry, node);
            struct chain_wait *wait = e->wait;
            chain_entry_free(e);
            chain_wait_done(wait);
        }
    }
    assert(!g->paused);
    free(g->keys);
    free(g);
}

void migration_source_end(struct chain *c)
{
    struct migration_source *g = c->migration_source;
    struct shard *s = c->shard;
    char label[VIEW_LABEL_MAX];
    bool was_paused = g && g->state >= MIGRATION_SOURCE_PAUSING;
    assert(!g || g->chain == c);
    if (g)
        migration_set_over(&c->sources_over, g->order.id); /* a late PAUSE of this migration is refused */
    if (was_paused) {
        uint64_t ns = lane_now(s->lane) - g->paused_at;
        spread_add(&s->pauses, ns / ENV_US);
        log_info("%s, shard %u: partitions %u to %u paused for %.1f ms (%s), %" PRIu64
                 " KiB migrated in %.2f s",
                 view_id_label(s->config.node, label), s->config.index, g->order.first,
                 g->order.first + g->order.partitions - 1, (double)ns / ENV_MS,
                 g->order.takes_over ? "all requests" : "changes", g->rows_bytes >> 10,
                 (double)(lane_now(s->lane) - g->began_at) / ENV_SEC);
    }
    if (g)
        source_free(g);
    assert(!c->migration_source);
    c->held |= was_paused; /* chain_reopen handles the requests */
}

/* The source aborts, which it may until it has reported PAUSED. */
static void abort_migration(struct migration_source *g, paramo_err err)
{
    struct chain *c = g->chain;
    assert(c->migration_source == g && err);
    struct shard *s = c->shard;
    char label[VIEW_LABEL_MAX];
    log_info("%s, shard %u: migration of partitions %u to %u aborted: %s",
             view_id_label(s->config.node, label), s->config.index, g->order.first,
             g->order.first + g->order.partitions - 1, err_text());
    report_paused(g, err);
    migration_source_end(c);
    chain_reopen(s);
}

static bool stalled(const struct migration_source *g, uint64_t now)
{
    const struct chain_stream *st = g->stream;
    return st && st->count &&
           now > st->progressed_at + MIGRATION_STALL_MS * ENV_MS; /* progressed_at may be later than now */
}

static bool too_slow(const struct migration_source *g)
{
    const struct chain_stream *st = g->stream;
    return g->state == MIGRATION_SOURCE_COPYING && st &&
           (st->bytes >= CHAIN_STREAM_BYTES + (size_t)MIGRATION_WINDOW_BYTES ||
            st->count >= CHAIN_STREAM_ENTRIES);
}

/* ---- what is sent at the pause ---- */

/* The numbers of one sender that are applied on some of the partitions. */
static void put_applied_notes(const struct migration_source *g, const struct sender *x, struct writer *w)
{
    for (const struct applied_note *from = x->applied_window.applied_notes; from; from = from->next) {
        if (!applied_note_splits(from, g->partitions))
            continue;
        struct sender_note note = {.sender = x->id, .number = from->number};
        for (unsigned i = 0; i < CHAIN_WORDS; i++)
            note.partitions[i] = from->partitions[i] & g->partitions[i];
        sender_note_encode(&note, w);
    }
}

/* Sends the records of some senders: numbers that are applied on all of the partitions, and after them notes of those
 * that are applied on some. Requests for the partitions wait, so a record that has left does not change there. A turn
 * has at most 1 MiB of notes, and those of one sender. *done: these were the last. */
static paramo_err send_records(struct migration_source *g, bool *done)
{
    source_check(g);
    unsigned left = records_turn(g->chain->shard);
    assert(g->last_due && g->records_begun);
    size_t n = 0, most = left / RECORDS_COST + 1;
    struct writer windows = {0}, notes = {0};
    struct sender_window *list = calloc(most, sizeof *list);
    if (!list)
        return err_memory(most * sizeof *list);
    for (; g->sender && left && n < most; g->sender = g->sender->next) {
        const struct applied_window *w = &g->sender->applied_window;
        unsigned cost = RECORDS_COST + records_cost_of_notes(w);
        list[n].sender = g->sender->id;
        list[n++].dedup = applied_window_extract(w, g->partitions);
        put_applied_notes(g, g->sender, &notes);
        g->records_spent += cost;
        left -= cost < left ? cost : left;
    }
    migration_records_encode(g->partitions, list, n, &windows);
    free(list);
    paramo_err err = send_step(g, MIGRATION_STEP_RECORDS, &windows, 0);
    if (!err && (notes.len || notes.failed))
        err = send_step(g, MIGRATION_STEP_NOTES, &notes, 0);
    writer_fini(&windows);
    writer_fini(&notes);
    *done = !g->sender;
    return err;
}

void migration_source_sender_gone(struct chain *c, const struct sender *sender)
{
    struct migration_source *g = c->migration_source;
    assert(!g || !g->sender || g->records_begun);
    if (g && g->sender == sender)
        g->sender = sender->next;
}

uint64_t migration_source_records_spent(const struct migration_source *g)
{
    return g->records_spent;
}

/* Sends which rows are lost: the loss goes with the partitions. */
static paramo_err send_lost(struct migration_source *g)
{
    struct shard_table *t;
    assert(!g->records_begun && !g->sender && g->stream);
    paramo_err err = PARAMO_OK;
    for (size_t i = 0; (t = shard_table_next(g->chain->shard, &i)) && !err;) {
        struct writer w = {0};
        uint64_t lost[CHAIN_WORDS];
        bool any = false;
        for (unsigned k = 0; k < CHAIN_WORDS; k++) {
            lost[k] = t->lost_partitions[k] & g->partitions[k];
            any |= lost[k] != 0;
        }
        partition_bits_encode(lost, &w);
        if (any && migration_source_sends_table(g, t))
            err = send_step(g, MIGRATION_STEP_LOST, &w, t->id);
        writer_fini(&w);
    }
    return err;
}

static paramo_err send_last(struct migration_source *g)
{
    struct chain *c = g->chain;
    struct writer w = {0};
    assert(g->state == MIGRATION_SOURCE_FULL || g->state == MIGRATION_SOURCE_PAUSING);
    assert(g->last_due && !records_pending(c)); /* all records are here */
    migration_last_encode(&c->last[g->order.first], g->order.partitions, &w);
    paramo_err err = send_step(g, MIGRATION_STEP_LAST, &w, 0);
    writer_fini(&w);
    g->last = g->stream->seq;
    g->last_due = false;
    return err;
}

/* What the target gets before the commit. OK: or some of it is sent later. */
static paramo_err end_turn(struct migration_source *g)
{
    source_check(g);
    paramo_err err = PARAMO_OK;
    bool done = false;
    if (!g->last_due || records_pending(g->chain))
        return PARAMO_OK;
    if (!g->records_begun) {
        err = send_lost(g);
        g->records_begun = true;
        g->sender = senders_first(g->chain->shard);
    }
    if (!err)
        err = send_records(g, &done);
    return err || !done ? err : send_last(g);
}

/* ---- turns ---- */

/* In a simulation, other events come between two turns with records. err: of the last turn. */
static uint64_t next_fire(const struct migration_source *g, paramo_err err)
{
    const struct shard *s = g->chain->shard;
    uint64_t now = lane_now(s->lane);
    if (g->last_due && !records_pending(g->chain))
        return now + (s->config.turn_records ? ENV_MS : 0);
    return now + (g->state != MIGRATION_SOURCE_COPYING || err ? 10 : MIGRATION_TURN_MS) * ENV_MS;
}

static void fire(struct lane_timer *timer)
{
    struct migration_source *g = container_of(timer, struct migration_source, timer);
    struct chain *c = g->chain;
    struct shard *s = c->shard;
    uint64_t now = lane_now(s->lane);
    paramo_err err = PARAMO_OK;
    source_check(g);
    credit_more(g, now);
    if (g->state == MIGRATION_SOURCE_COPYING && g->rows_out < MIGRATION_WINDOW_BYTES &&
        (g->credit > 0 || !g->order.kib_per_s))
        err = turn(g);
    if (!err && g->state != MIGRATION_SOURCE_PAUSED && stalled(g, now))
        err = err_set(PARAMO_E_TIMEOUT, "no acknowledgement from the target for %d ms", MIGRATION_STALL_MS);
    if (!err && too_slow(g))
        err = err_set(PARAMO_E_TIMEOUT, "changes come faster than the target receives them");
    if (!err && g->state == MIGRATION_SOURCE_PAUSING && now - g->paused_at > MIGRATION_PAUSE_MS * ENV_MS)
        err = err_set(PARAMO_E_TIMEOUT, "some members of the chain did not get the last change within %d ms",
                      MIGRATION_PAUSE_MS);
    bool due = g->last_due, pausing = g->state == MIGRATION_SOURCE_PAUSING;
    if (!err)
        err = end_turn(g);
    if (err && !(err == PARAMO_E_MEMORY && g->state == MIGRATION_SOURCE_COPYING)) {
        abort_migration(g, err);
        return;
    }
    if (lane_timer_arm(s->lane, &g->timer, next_fire(g, err)))
        log_error("no memory for a timer: a migration from this shard has stalled");
    if (due)
        migration_source_mark_streams(c);
    chain_send_all(c);
    if (pausing)
        migration_source_check_pause(c);
}

paramo_err migration_source_begin(struct chain *c, const struct migration_order *m)
{
    struct shard *s = c->shard;
    const struct view_node *node = view_node(s->view, m->to.node);
    if (c->migration_source && c->migration_source->state == MIGRATION_SOURCE_PAUSED)
        return err_set(PARAMO_E_AGAIN, "another migration from this shard has not ended");
    if (c->migration_source)
        migration_source_end(c);
    chain_reopen(s);
    for (unsigned a = m->first; a < (unsigned)m->first + m->partitions; a++)
        if (chain_level(s, a) != 0 || !target_expected(s, m, a))
            return err_set(PARAMO_E_NOT_FOUND, "this shard cannot migrate partition %u: its view differs", a);
    if (!node || !node->alive)
        return err_set(PARAMO_E_NOT_FOUND, "the target is not in this shard's view");
    struct migration_source *g = calloc(1, sizeof *g);
    struct chain_stream *st = g ? chain_stream_open(c, node, name_of(&m->to)) : NULL;
    if (!st) {
        free(g);
        return err_memory(sizeof *st);
    }
    g->chain = c;
    g->order = *m;
    g->term = term_of(s);
    g->stream = st;
    g->began_at = g->credited_at = lane_now(s->lane);
    g->timer.fire = fire;
    st->migration_source = g;
    for (unsigned a = m->first; a < (unsigned)m->first + m->partitions; a++) {
        partition_set_add(g->partitions, a);
        partition_set_add(st->partitions, a);
    }
    assert(!c->migration_source);
    c->migration_source = g;
    paramo_err err = send_step(g, MIGRATION_STEP_BEGIN, NULL, 0);
    if (!err)
        err = lane_timer_arm(s->lane, &g->timer, g->began_at);
    source_check(g);
    if (err) {
        migration_source_end(c);
        return err;
    }
    chain_connect(c);
    chain_tick_start(c);
    return PARAMO_OK;
}

/* ---- the pause ---- */

void migration_source_mark_streams(struct chain *c)
{
    assert(!c->migration_source || c->migration_source->chain == c);
    if (!c->migration_source || c->migration_source->state != MIGRATION_SOURCE_PAUSING)
        return;
    for (struct chain_stream *st = c->streams; st; st = st->next) {
        st->mark = st->migration_source ? c->migration_source->last : st->seq;
        assert(st->mark <= st->seq);
    }
}

/* This shard may have taken the place of a dead owner whose lease is not over yet. The target knows nothing of that
 * lease, so it gets no partition before. */
void migration_source_check_pause(struct chain *c)
{
    struct migration_source *g = c->migration_source;
    if (!g || g->state != MIGRATION_SOURCE_PAUSING || g->last_due || chain_routes(c) ||
        lane_now(c->shard->lane) < c->wait_until)
        return;
    for (const struct chain_stream *st = c->streams; st; st = st->next) {
        bool concerned = false;
        for (unsigned i = 0; i < CHAIN_WORDS; i++)
            concerned |= (st->partitions[i] & g->partitions[i]) != 0;
        if (concerned && st->acked < st->mark)
            return;
    }
    assert(g->paused && !g->last_due);
    move(g, MIGRATION_SOURCE_PAUSED);
    report_paused(g, PARAMO_OK);
}

void migration_source_records_over(struct chain *c)
{
    struct migration_source *g = c->migration_source;
    if (!g || !g->last_due)
        return;
    assert(g->state == MIGRATION_SOURCE_PAUSING && g->stream);
    source_check(g);
    paramo_err err = end_turn(g);
    if (err) {
        abort_migration(g, err);
        return;
    }
    migration_source_mark_streams(c);
    chain_send_all(c);
    migration_source_check_pause(c);
}

paramo_err migration_source_pause(struct chain *c, const struct migration_order *m, shard_migration_done done,
                                  void *arg)
{
    struct shard *s = c->shard;
    struct migration_source *g = c->migration_source;
    if (!g || g->order.id != m->id) {
        for (unsigned a = m->first; a < (unsigned)m->first + m->partitions; a++)
            if (!m->handover || chain_level(s, a) != 0 || !target_expected(s, m, a))
                return err_set(PARAMO_E_NOT_FOUND, "this shard has no such migration");
        if (g && g->state == MIGRATION_SOURCE_PAUSED)
            return err_set(PARAMO_E_AGAIN, "another migration from this shard has not ended");
        if (g)
            migration_source_end(c);
        chain_reopen(s);
        g = calloc(1, sizeof *g);
        if (!g)
            return err_memory(sizeof *g);
        *g = (struct migration_source){
            .chain = c, .order = *m, .state = MIGRATION_SOURCE_FULL, .term = term_of(s)};
        for (unsigned a = m->first; a < (unsigned)m->first + m->partitions; a++)
            partition_set_add(g->partitions, a);
        g->began_at = g->credited_at = lane_now(s->lane);
        g->timer.fire = fire;
        c->migration_source = g;
    }
    if (g->state != MIGRATION_SOURCE_FULL)
        return err_set(PARAMO_E_NOT_FOUND, "some rows are not sent yet");
    g->last_due = g->stream;
    paramo_err err = end_turn(g);
    if (!err && (g->last_due || !g->timer.slot))
        err = lane_timer_arm(s->lane, &g->timer, next_fire(g, PARAMO_OK));
    if (err) {
        migration_source_end(c);
        chain_reopen(s);
        return err;
    }
    assert(g->chain == c && !g->keys_count);
    move(g, MIGRATION_SOURCE_PAUSING);
    assert(!g->paused);
    g->paused_at = lane_now(s->lane);
    g->order.takes_over = m->takes_over;
    g->paused = done;
    g->arg = arg;
    migration_source_mark_streams(c);
    chain_send_all(c);
    migration_source_check_pause(c);
    return PARAMO_OK;
}

/* Do reads wait? They do if the target is the next owner. After PAUSED the target may also be in the chain
 * already, and take over if this shard is declared dead: then its lease counts as any next member's does. */
static bool reads_wait(const struct migration_source *g)
{
    return g->order.takes_over ||
           (g->state == MIGRATION_SOURCE_PAUSED && g->stream && !chain_leased(g->stream));
}

bool migration_source_defers(struct shard *s, const struct wire_head *h, const struct van_seg *seg)
{
    const struct migration_source *g = s->chain ? s->chain->migration_source : NULL;
    if (!g || g->state < MIGRATION_SOURCE_PAUSING)
        return false;
    const struct shard_table *t = shard_table_find(s, h->table);
    bool reads =
        h->kind == WIRE_PULL || h->kind == WIRE_SCAN || h->kind == WIRE_STAT || h->kind == WIRE_REDUCE;
    if (!t || t->options.kind == PARAMO_TABLE_USER || !(data_changes(h->kind) || (reads && reads_wait(g))))
        return false;
    bool holds = !h->count || h->kind == WIRE_SCAN;
    const uint64_t *keys = h->count ? seg[WIRE_SEG_KEYS].data : NULL;
    for (size_t i = 0; i < h->count && !holds; i++)
        holds = partition_set_has(g->partitions, ring_partition(ring_position(&t->placement, keys[i])));
    s->chain->held |= holds && reads && !g->order.takes_over; /* the target's next answer checks again */
    return holds;
}

/* By the view: *committed, or *off (it cannot be committed any more). */
static void judge(const struct shard *s, const struct migration_order *m, uint64_t term, bool rows,
                  bool *committed, bool *off)
{
    int level = target_level(s, m, m->first);
    int to = view_shard_index(s->view, m->to.node, m->to.index);
    const struct view_node *node = view_node(s->view, m->to.node);
    *committed = rows ? to >= 0 && s->view->shards[to].last_migration >=
                                       m->id /* a later migration: this one is over, too */
                      : level >= 0 && level < m->had;
    *off = !*committed && (s->self < 0 || !target_expected(s, m, m->first) || to < 0 || !node ||
                           !node->alive || term_of(s) != term);
}

void migration_source_view_changed(struct chain *c)
{
    struct migration_source *g = c->migration_source;
    bool committed, off;
    if (!g)
        return;
    assert(g->chain == c);
    source_check(g);
    judge(c->shard, &g->order, g->term, g->stream, &committed, &off);
    for (unsigned a = g->order.first; in_migration(&g->order, a) && !committed; a++)
        off |= chain_level(c->shard, a) != 0;
    if (committed || off)
        migration_source_end(c); /* requests that wait are handled when this view has been taken */
}

void migration_source_close(struct chain *c)
{
    if (c->migration_source)
        source_free(c->migration_source);
    assert(!c->migration_source);
}
