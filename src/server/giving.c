/* The owner's side of a move (moving.h), and what both sides share. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "server/ckpt_rows.h"
#include "server/moving.h"
#include "wire/order.h"

struct give {
    struct chain *chain;
    struct move_order order;
    enum give_state state;
    uint64_t term; /* of the scheduler */
    uint64_t arcs[CHAIN_WORDS];
    struct chain_stream *stream; /* NULL: the target is a member */
    uint32_t table;              /* whose rows are being sent: those of lower ids have been */
    uint64_t cursor;             /* in it */
    bool table_begun;
    uint64_t *keys; /* met and not sent yet */
    size_t keys_count, keys_room;
    size_t rows_out;     /* bytes, not acknowledged */
    uint64_t rows_bytes; /* sent so far */
    int64_t credit;      /* bytes that may be sent now */
    uint64_t credited_at;
    uint64_t last; /* the place of LAST */
    uint64_t began_at, paused_at;
    bool reads_wait;
    shard_moved paused;
    void *arg;
    struct lane_timer timer;
};

enum give_state giving_state(const struct give *g, uint64_t *id)
{
    *id = g->order.id;
    return g->state;
}

uint32_t giving_target(const struct give *g)
{
    return g->order.to.node;
}

static struct chain_name name_of(const struct move_shard *m)
{
    return (struct chain_name){.node = m->node, .shard = m->index};
}

static uint64_t term_of(const struct shard *s)
{
    return s->view->number >> 32;
}

/* A shard gives, and takes, one move after the other, by rising ids: an order of an earlier one has been
 * overtaken. */
static paramo_err overtaken(uint64_t *over, uint64_t id)
{
    if (id <= *over)
        return err_set(PARAMO_E_NOT_FOUND, "the move is over");
    *over = id - 1;
    return PARAMO_OK;
}

static void is_over(uint64_t *over, uint64_t id)
{
    *over = id > *over ? id : *over;
}

static bool in_move(const struct move_order *m, unsigned arc)
{
    return arc >= m->first && arc < (unsigned)m->first + m->arcs;
}

/* The target's place in an arc's chain by the view; -1: none. */
static int target_level(const struct shard *s, const struct move_order *m, unsigned arc)
{
    int target = view_shard_index(s->view, m->to.node, m->to.index);
    for (unsigned level = 0; target >= 0 && level <= s->view->chains.replicas; level++)
        if (s->view->chains.level[level].owner[arc] == (unsigned)target)
            return (int)level;
    return -1;
}

/* What the view has to say of the target before the move is committed. */
static bool target_waits(const struct shard *s, const struct move_order *m, unsigned arc)
{
    return target_level(s, m, arc) == (m->had == MOVE_NO_LEVEL ? -1 : m->had);
}

bool giving_has(const struct give *g, const struct shard_table *t)
{
    return t->replicas >= g->order.level && t->replicas < g->order.had;
}

bool giving_waits(const struct give *g)
{
    return g->state != GIVE_COPYING;
}

/* ---- sending ------------------------------------------------------------------------------------------- */

static struct chain_entry *move_entry(const struct move_message *m, const void *payload, size_t bytes)
{
    struct chain_entry *e = chain_entry_new(bytes);
    if (!e)
        return NULL;
    e->move = *m;
    e->move.bytes = bytes;
    if (bytes)
        memcpy(e->data, payload, bytes);
    e->seg[0] = (struct van_seg){.data = e->data, .len = bytes};
    return e;
}

static paramo_err say(struct give *g, uint16_t what, const struct writer *payload, uint32_t table)
{
    struct move_message m = {.what = what, .id = g->order.id, .table = table};
    if (what == MOVE_STEP_BEGIN) {
        m.first = g->order.first;
        m.arcs = g->order.arcs;
    }
    if (payload && payload->failed)
        return err_memory(payload->len);
    struct chain_entry *e = move_entry(&m, payload ? payload->data : NULL, payload ? payload->len : 0);
    if (!e)
        return err_memory(sizeof *e);
    chain_append(g->stream, e);
    if (what == MOVE_STEP_ROWS) {
        g->rows_out += e->bytes;
        g->rows_bytes += payload->len;
        g->credit -= (int64_t)payload->len;
    }
    return PARAMO_OK;
}

void giving_rows_acked(struct give *g, size_t bytes)
{
    g->rows_out -= bytes;
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

/* The table of the next id that has rows; NULL: there are no more. */
static struct shard_table *next_table(const struct give *g)
{
    struct shard_table *next = NULL;
    uint64_t id;
    void *value;
    for (size_t i = 0; map_next(&g->chain->shard->tables, &i, &id, &value);) {
        struct shard_table *t = value;
        bool later = t->id > g->table || (t->id == g->table && g->table_begun);
        bool has = giving_has(g, t) && !(MUTANT(refill_skips_short_table) && t->replicas < RING_REPLICAS_MAX);
        if (t->table && has && later && (!next || t->id < next->id))
            next = t;
    }
    return next;
}

struct met {
    struct give *give;
    const struct shard_table *table;
    bool failed;
};

static void key_met(void *ctx, uint64_t key)
{
    struct met *met = ctx;
    struct give *g = met->give;
    if (!arcs_has(g->arcs, ring_arc(ring_position(&met->table->placement, key))))
        return;
    if (g->keys_count == g->keys_room) {
        size_t room = g->keys_room ? 2 * g->keys_room : 1024;
        uint64_t *keys = realloc(g->keys, room * sizeof *keys);
        if (!keys) {
            met->failed = true;
            return;
        }
        g->keys = keys;
        g->keys_room = room;
    }
    g->keys[g->keys_count++] = key;
}

/* The keys of some more rows of the move's arcs; *more: there may be others. */
static paramo_err meet(struct give *g, struct shard_table *t, size_t rows, bool *more)
{
    struct met met = {.give = g, .table = t};
    if (t->options.kind != PARAMO_TABLE_DENSE) {
        *more = table_sweep(t->table, &g->cursor, rows, key_met, &met);
        return met.failed ? err_memory(rows * sizeof *g->keys) : PARAMO_OK;
    }
    unsigned end = (unsigned)g->order.first + g->order.arcs;
    uint64_t first = ring_first_row(&t->placement, g->order.first);
    uint64_t last = end == RING_ARCS ? t->options.rows : ring_first_row(&t->placement, end);
    uint64_t at = g->cursor > first ? g->cursor : first;
    for (; at < last && rows && !met.failed; at++, rows--)
        key_met(&met, at);
    g->cursor = at;
    *more = at < last;
    return met.failed ? err_memory(rows * sizeof *g->keys) : PARAMO_OK;
}

static paramo_err send_rows(struct give *g, const struct shard_table *t)
{
    paramo_err err = PARAMO_OK;
    for (size_t at = 0, took = 0; at < g->keys_count && !err; at += took) {
        struct writer w = {0};
        struct ckpt_block block;
        err = ckpt_rows_encode(t->table, t->id, &t->placement, g->keys + at, g->keys_count - at, &w, &block,
                               &took);
        if (!err)
            err = say(g, MOVE_STEP_ROWS, &w, t->id);
        writer_fini(&w);
    }
    return err;
}

/* As much as fills a block, or as may be looked at in a turn. */
static paramo_err turn(struct give *g)
{
    size_t looked = 0;
    uint64_t sent = g->rows_bytes;
    while (g->state == GIVE_COPYING && looked < GIVE_TURN_ROWS && g->rows_bytes - sent < GIVE_BLOCK_BYTES) {
        struct shard_table *t = next_table(g);
        if (!t) {
            paramo_err err = say(g, MOVE_STEP_FULL, NULL, 0);
            if (!err)
                g->state = GIVE_FULL;
            return err;
        }
        if (clearing_touches(t, g->arcs)) /* what is gone is not sent */
            return PARAMO_OK;
        if (!g->table_begun || t->id != g->table) {
            g->table = t->id;
            g->table_begun = true;
            g->cursor = 0;
        }
        size_t row = (t->row_values + t->state_values) * (size_t)t->value_bytes;
        size_t rows = GIVE_BLOCK_BYTES / (row + 64) + 1;
        rows = rows < GIVE_TURN_ROWS - looked ? rows : GIVE_TURN_ROWS - looked;
        bool more;
        uint64_t before = g->cursor;
        paramo_err err = meet(g, t, rows, &more);
        if (!err)
            err = send_rows(g, t);
        g->keys_count = 0;
        if (err) { /* the next turn meets them all again, and sends them as they are then */
            g->cursor = MUTANT(rows_met_and_lost) ? g->cursor : before;
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

static void credit_more(struct give *g, uint64_t now)
{
    int64_t rate = (int64_t)g->order.kib_per_s << 10;
    uint64_t passed = now - g->credited_at;
    g->credited_at = now;
    if (passed > ENV_SEC)
        passed = ENV_SEC;
    g->credit += (int64_t)((double)rate * (double)passed / (double)ENV_SEC);
    if (g->credit > rate)
        g->credit = rate;
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static void say_paused(struct give *g, paramo_err err)
{
    shard_moved paused = g->paused;
    g->paused = NULL;
    if (paused)
        paused(g->arg, err);
}

static void give_free(struct give *g)
{
    struct chain *c = g->chain;
    struct queue entries = {0};
    say_paused(g, err_set(PARAMO_E_NOT_FOUND, "the move is over"));
    c->give = NULL;
    lane_timer_cancel(c->shard->lane, &g->timer);
    if (g->stream) {
        chain_stream_close(c, g->stream, &entries);
        for (struct qnode *node; (node = queue_pop(&entries));) { /* nobody needs to have it there */
            struct chain_entry *e = container_of(node, struct chain_entry, node);
            struct chain_wait *wait = e->wait;
            chain_entry_free(e);
            chain_wait_done(wait);
        }
    }
    free(g->keys);
    free(g);
}

void giving_end(struct chain *c)
{
    struct give *g = c->give;
    struct shard *s = c->shard;
    char label[VIEW_LABEL_MAX];
    bool waited = g && g->state >= GIVE_PAUSING;
    if (g && !MUTANT(pause_after_give_up))
        is_over(&c->gives_over, g->order.id); /* a PAUSE that is on its way comes too late */
    if (waited) {
        uint64_t ns = lane_now(s->lane) - g->paused_at;
        spread_add(&s->pauses, ns / ENV_US);
        log_info("%s, shard %u: arcs %u to %u were held for %.1f ms (%s), %" PRIu64 " KiB moved in %.2f s",
                 view_id_label(s->config.node, label), s->config.index, g->order.first,
                 g->order.first + g->order.arcs - 1, (double)ns / ENV_MS,
                 g->reads_wait ? "all requests" : "changes", g->rows_bytes >> 10,
                 (double)(lane_now(s->lane) - g->began_at) / ENV_SEC);
    }
    if (g)
        give_free(g);
    c->held |= waited; /* chain_reopen has them handled */
}

/* The owner gives it up, which it may for as long as it has not said that it has paused. */
static void give_up(struct give *g, paramo_err err)
{
    struct chain *c = g->chain;
    struct shard *s = c->shard;
    char label[VIEW_LABEL_MAX];
    log_info("%s, shard %u: arcs %u to %u are not given away: %s", view_id_label(s->config.node, label),
             s->config.index, g->order.first, g->order.first + g->order.arcs - 1, err_text());
    say_paused(g, err);
    giving_end(c);
    chain_reopen(s);
}

static bool stalled(const struct give *g, uint64_t now)
{
    const struct chain_stream *st = g->stream;
    return st && st->count &&
           now > st->moved_at + MOVE_STALL_MS * ENV_MS; /* what moved may be later than now */
}

static bool too_slow(const struct give *g)
{
    const struct chain_stream *st = g->stream;
    return g->state == GIVE_COPYING && st &&
           (st->bytes >= CHAIN_STREAM_BYTES + (size_t)GIVE_WINDOW || st->count >= CHAIN_STREAM_ENTRIES);
}

/* ---- turns --------------------------------------------------------------------------------------------- */

static void fire(struct lane_timer *timer)
{
    struct give *g = container_of(timer, struct give, timer);
    struct chain *c = g->chain;
    struct shard *s = c->shard;
    uint64_t now = lane_now(s->lane), next = GIVE_TURN_MS;
    paramo_err err = PARAMO_OK;
    credit_more(g, now);
    if (g->state == GIVE_COPYING && g->rows_out < GIVE_WINDOW && (g->credit > 0 || !g->order.kib_per_s))
        err = turn(g);
    if (!err && g->state != GIVE_PAUSED && stalled(g, now))
        err = err_set(PARAMO_E_TIMEOUT, "the target has acknowledged nothing for %d ms", MOVE_STALL_MS);
    if (!err && too_slow(g))
        err = err_set(PARAMO_E_TIMEOUT, "the target is too slow for what changes meanwhile");
    if (!err && g->state == GIVE_PAUSING && now - g->paused_at > GIVE_PAUSE_MS * ENV_MS)
        err = err_set(PARAMO_E_TIMEOUT, "not all had the last change after %d ms", GIVE_PAUSE_MS);
    if (MUTANT(owner_resumes_by_timer) && g->state == GIVE_PAUSED && now - g->paused_at > 20 * ENV_MS)
        err = err_set(PARAMO_E_TIMEOUT, "no answer");
    if (err && !(err == PARAMO_E_MEMORY && g->state == GIVE_COPYING)) {
        give_up(g, err);
        return;
    }
    chain_send_all(c);
    if (g->state != GIVE_COPYING || err)
        next = 10;
    if (lane_timer_arm(s->lane, &g->timer, now + next * ENV_MS))
        log_error("no memory for a timer: a move of this shard stands still");
}

paramo_err giving_begin(struct chain *c, const struct move_order *m)
{
    struct shard *s = c->shard;
    const struct view_node *node = view_node(s->view, m->to.node);
    if (c->give && c->give->state == GIVE_PAUSED)
        return err_set(PARAMO_E_AGAIN, "another move waits for its end");
    if (c->give)
        giving_end(c);
    chain_reopen(s);
    for (unsigned a = m->first; a < (unsigned)m->first + m->arcs; a++)
        if (chain_level(s, a) != 0 || !target_waits(s, m, a))
            return err_set(PARAMO_E_NOT_FOUND, "arc %u is not this shard's to give, by its view", a);
    if (!node || !node->alive)
        return err_set(PARAMO_E_NOT_FOUND, "the target is not there, by this shard's view");
    struct give *g = calloc(1, sizeof *g);
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
    st->give = g;
    for (unsigned a = m->first; a < (unsigned)m->first + m->arcs; a++) {
        arcs_add(g->arcs, a);
        arcs_add(st->arcs, a);
    }
    c->give = g;
    paramo_err err = say(g, MOVE_STEP_BEGIN, NULL, 0);
    if (!err)
        err = lane_timer_arm(s->lane, &g->timer, g->began_at);
    if (err) {
        giving_end(c);
        return err;
    }
    chain_dial(c);
    chain_tick_start(c);
    return PARAMO_OK;
}

/* ---- the pause ----------------------------------------------------------------------------------------- */

/* What is done on all of the arcs. */
static paramo_err send_records(struct give *g)
{
    const struct shard *s = g->chain->shard;
    uint8_t bits[MOVE_ARCS / 8] = {0};
    size_t n = 0;
    for (arcs_each(a, g->arcs))
        bits[a / 8] |= (uint8_t)(1u << (a % 8));
    struct ckpt_clock *list = calloc(s->senders_count + 1, sizeof *list);
    if (!list)
        return err_memory(s->senders_count * sizeof *list);
    for (const struct sender *x = s->senders; x; x = x->next) {
        list[n] = (struct ckpt_clock){.node = x->node,
                                      .app = x->app,
                                      .customer = x->customer,
                                      .incarnation = x->incarnation,
                                      .dedup = clock_of(&x->clock, g->arcs)};
        if (MUTANT(move_without_window))
            memset(list[n].dedup.bits, 0, sizeof list[n].dedup.bits);
        n++;
    }
    struct writer w = {0};
    write_bytes(&w, bits, sizeof bits);
    ckpt_clocks_encode(list, n, &w);
    free(list);
    paramo_err err = say(g, MOVE_STEP_RECORDS, &w, 0);
    writer_fini(&w);
    return err;
}

/* What is done on some of them, behind that. */
static paramo_err send_parts(struct give *g)
{
    struct writer w = {0};
    paramo_err err = PARAMO_OK;
    for (const struct sender *x = g->chain->shard->senders; x && !err; x = x->next)
        for (const struct part *part = x->clock.parts; part && !err; part = part->next) {
            if (!part_splits(part, g->arcs))
                continue;
            write_u32(&w, x->node);
            write_u32(&w, x->app);
            write_u32(&w, x->customer);
            write_u64(&w, x->incarnation);
            write_u64(&w, part->number);
            for (unsigned i = 0; i < CHAIN_WORDS; i++)
                write_u64(&w, part->arcs[i] & g->arcs[i]);
            if (w.len < GIVE_BLOCK_BYTES && !w.failed)
                continue;
            err = say(g, MOVE_STEP_PARTS, &w, 0);
            writer_fini(&w);
            w = (struct writer){0};
        }
    if (!err && (w.len || w.failed))
        err = say(g, MOVE_STEP_PARTS, &w, 0);
    writer_fini(&w);
    return err;
}

/* What is gone goes with the arcs, too. */
static paramo_err send_lost(struct give *g)
{
    uint64_t id;
    void *value;
    paramo_err err = PARAMO_OK;
    for (size_t i = 0; map_next(&g->chain->shard->tables, &i, &id, &value) && !err;) {
        const struct shard_table *t = value;
        struct writer w = {0};
        bool any = false;
        for (unsigned k = 0; k < CHAIN_WORDS; k++) {
            write_u64(&w, t->lost_arcs[k] & g->arcs[k]);
            any |= (t->lost_arcs[k] & g->arcs[k]) != 0;
        }
        if (any && giving_has(g, t))
            err = say(g, MOVE_STEP_LOST, &w, t->id);
        writer_fini(&w);
    }
    return err;
}

static paramo_err send_last(struct give *g)
{
    struct chain *c = g->chain;
    struct writer w = {0};
    paramo_err err = send_lost(g);
    if (!err)
        err = send_records(g);
    if (!err)
        err = send_parts(g);
    for (unsigned i = 0; i < g->order.arcs; i++)
        write_u64(&w, c->last[g->order.first + i]);
    if (!err)
        err = say(g, MOVE_STEP_LAST, &w, 0);
    writer_fini(&w);
    g->last = g->stream->seq;
    return err;
}

void giving_mark(struct chain *c)
{
    if (!c->give || c->give->state != GIVE_PAUSING)
        return;
    for (struct chain_stream *st = c->streams; st; st = st->next)
        st->mark = st->give ? c->give->last : st->seq;
}

void giving_check(struct chain *c)
{
    struct give *g = c->give;
    if (!g || g->state != GIVE_PAUSING)
        return;
    for (const struct chain_stream *st = c->streams; st; st = st->next) {
        bool concerned = false;
        for (unsigned i = 0; i < CHAIN_WORDS; i++)
            concerned |= (st->arcs[i] & g->arcs[i]) != 0;
        if (concerned && st->acked < st->mark && !MUTANT(paused_too_soon))
            return;
    }
    g->state = GIVE_PAUSED;
    say_paused(g, PARAMO_OK);
}

paramo_err giving_pause(struct chain *c, const struct move_order *m, shard_moved done, void *arg)
{
    struct shard *s = c->shard;
    struct give *g = c->give;
    if (!g || g->order.id != m->id) {
        bool handover = m->handover || (MUTANT(pause_after_give_up) && m->had != MOVE_NO_LEVEL);
        for (unsigned a = m->first; a < (unsigned)m->first + m->arcs; a++)
            if (!handover || chain_level(s, a) != 0 || !target_waits(s, m, a))
                return err_set(PARAMO_E_NOT_FOUND, "this shard knows nothing of such a move");
        if (g && g->state == GIVE_PAUSED)
            return err_set(PARAMO_E_AGAIN, "another move waits for its end");
        if (g)
            giving_end(c);
        chain_reopen(s);
        g = calloc(1, sizeof *g);
        if (!g)
            return err_memory(sizeof *g);
        *g = (struct give){.chain = c, .order = *m, .state = GIVE_FULL, .term = term_of(s)};
        for (unsigned a = m->first; a < (unsigned)m->first + m->arcs; a++)
            arcs_add(g->arcs, a);
        g->began_at = g->credited_at = lane_now(s->lane);
        g->timer.fire = fire;
        c->give = g;
    }
    if (g->state != GIVE_FULL && !MUTANT(replica_counted_early))
        return err_set(PARAMO_E_NOT_FOUND, "not all rows have been sent");
    paramo_err err = g->stream && !MUTANT(move_drops_last) ? send_last(g) : PARAMO_OK;
    if (!err && !g->timer.slot)
        err = lane_timer_arm(s->lane, &g->timer, lane_now(s->lane));
    if (err) {
        giving_end(c);
        chain_reopen(s);
        return err;
    }
    g->state = GIVE_PAUSING;
    g->paused_at = lane_now(s->lane);
    g->reads_wait = m->takes_over;
    g->paused = done;
    g->arg = arg;
    giving_mark(c);
    chain_send_all(c);
    giving_check(c);
    return PARAMO_OK;
}

/* The target is to be the owner; or it may be in the chain already, and owner when we are taken for dead,
 * since the scheduler knows that we have paused: it counts as any next member does. */
static bool reads_wait(const struct give *g)
{
    return g->reads_wait || (g->state == GIVE_PAUSED && g->stream && !chain_leased(g->stream) &&
                             !MUTANT(target_without_lease));
}

bool giving_holds(struct shard *s, const struct wire_head *h, const struct van_seg *seg)
{
    const struct give *g = s->chain ? s->chain->give : NULL;
    if (!g || g->state < GIVE_PAUSING)
        return false;
    const struct shard_table *t = shard_table_find(s, h->table);
    bool reads = h->kind == WIRE_PULL || h->kind == WIRE_SCAN || h->kind == WIRE_STAT;
    if (!t || t->options.kind == PARAMO_TABLE_USER || !(data_changes(h->kind) || (reads && reads_wait(g))))
        return false;
    bool holds = !h->count || h->kind == WIRE_SCAN;
    const uint64_t *keys = h->count ? seg[WIRE_SEG_KEYS].data : NULL;
    for (size_t i = 0; i < h->count && !holds; i++)
        holds = arcs_has(g->arcs, ring_arc(ring_position(&t->placement, keys[i])));
    s->chain->held |= holds && reads && !g->reads_wait; /* the target's next answer has it looked at again */
    return holds;
}

/* ---- both sides ---------------------------------------------------------------------------------------- */

/* By the view: it has been committed; it will not be any more. */
static void judge(const struct shard *s, const struct move_order *m, uint64_t term, bool rows,
                  bool *committed, bool *off)
{
    int level = target_level(s, m, m->first);
    int to = view_shard_index(s->view, m->to.node, m->to.index);
    const struct view_node *node = view_node(s->view, m->to.node);
    *committed = rows ? to >= 0 && s->view->shards[to].moved >= m->id /* a later one: it is over, too */
                      : level >= 0 && level < m->had;
    *off = !*committed && (s->self < 0 || !target_waits(s, m, m->first) || to < 0 || !node || !node->alive ||
                           term_of(s) != term);
}

void moving_view(struct chain *c)
{
    struct shard *s = c->shard;
    struct give *g = c->give;
    bool committed, off;
    if (g) {
        judge(s, &g->order, g->term, g->stream, &committed, &off);
        for (unsigned a = g->order.first; in_move(&g->order, a) && !committed; a++)
            off |= chain_level(s, a) != 0;
        if (committed || off)
            giving_end(c); /* requests that wait are handled when this view has been taken */
    }
    taking_view(c);
}

void moving_close(struct chain *c)
{
    if (c->give)
        give_free(c->give);
    taking_close(c);
}

paramo_err moving_suspend(struct shard *s)
{
    struct chain *c = s->chain;
    if (c && ((c->give && c->give->state == GIVE_PAUSED) || taking_whole(c)))
        return err_set(PARAMO_E_AGAIN, "arcs of this shard are changing hands");
    if (c) {
        giving_end(c);
        chain_reopen(s);
        taking_end(c, true);
    }
    return PARAMO_OK;
}

void shard_move(struct shard *s, uint32_t what, const struct move_order *m, shard_moved done, void *arg)
{
    struct chain *c = s->chain;
    paramo_err err = PARAMO_OK;
    bool later = false;
    struct move_shard self = {.node = s->config.node, .index = (uint16_t)s->config.index};
    if (what == ORDER_MOVE_END) {
        if (c && chain_same(name_of(&m->from), name_of(&self)))
            is_over(&c->gives_over, m->id);
        else if (c)
            is_over(&c->takes_over, m->id);
        if (c && c->give && c->give->order.id == m->id)
            giving_end(c);
        if (c)
            taking_ordered(c, m);
        if (c)
            chain_reopen(s);
    } else if (!c || !s->view || s->self < 0 || c->failed) {
        err = err_set(PARAMO_E_NOT_FOUND, "this shard has no part in chains now");
    } else if (s->loading) {
        err = err_set(PARAMO_E_AGAIN, "a checkpoint is being loaded");
    } else if (what == ORDER_MOVE_GIVE) {
        err = overtaken(&c->gives_over, m->id);
        if (!err)
            err = giving_begin(c, m);
    } else if (what == ORDER_MOVE_TAKE) {
        err = overtaken(&c->takes_over, m->id);
        if (!err)
            err = taking_begin(c, m, done, arg);
        later = !err;
    } else {
        err = overtaken(&c->gives_over, m->id);
        if (!err)
            err = giving_pause(c, m, done, arg);
        later = !err;
    }
    if (!later)
        done(arg, err);
}
