/* The target's side of a move (moving.h). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "server/ckpt_rows.h"
#include "server/moving.h"

struct take {
    struct chain *chain;
    struct move_order order;
    enum take_state state;
    uint64_t term; /* of the scheduler */
    uint64_t arcs[CHAIN_WORDS];
    bool mine[RING_ARCS]; /* the same, as ckpt_rows.h has it */
    struct chain_name from;
    /* A member's, until the move is committed: the order of each arc's last change, and the owner's records.
     * The updates that they speak of may still be on their way on the chain's connection, and be lost there.
     */
    uint64_t *last;
    struct chain_origin *staged;
    struct chain_source *source; /* that has begun it; or NULL */
    uint64_t heard_at;
    shard_moved full; /* NULL: it has been said */
    void *arg;
    struct lane_timer timer;
};

enum take_state taking_state(const struct take *k, uint64_t *id)
{
    *id = k->order.id;
    return k->state;
}

bool taking_has(const struct chain *c, unsigned arc)
{
    return c->take && arcs_has(c->take->arcs, arc);
}

const uint64_t *taking_arcs(const struct chain *c)
{
    return c->take ? c->take->arcs : NULL;
}

static bool is_member(const struct take *k)
{
    return k->order.had != MOVE_NO_LEVEL;
}

bool taking_new(const struct chain *c, unsigned arc)
{
    return taking_has(c, arc) && !is_member(c->take);
}

bool taking_gets(const struct chain *c, const struct shard_table *t)
{
    const struct move_order *m = &c->take->order;
    return t->replicas >= m->level && t->replicas < m->had;
}

/* The owner's records, as they are known here. NULL: another's, who has the arcs now. */
static struct chain_origin *origin_of(const struct take *k)
{
    struct chain_origin *o = k->chain->origin_of[k->order.first];
    return o && chain_same(o->name, k->from) ? o : NULL;
}

bool taking_from(const struct chain_source *source)
{
    const struct take *k = source->shard->chain->take;
    return k && k->source == source;
}

void taking_forget(struct chain *c, const struct chain_message *m)
{
    if (c->take && c->take->staged)
        follow_sender_forget(c->take->staged, m);
}

void taking_source_gone(struct chain *c, const struct chain_source *source)
{
    if (c->take && c->take->source == source)
        c->take->source = NULL;
}

size_t taking_frame_bytes(const struct shard *s)
{
    size_t most = 0;
    uint64_t id;
    void *value;
    for (size_t i = 0; map_next(&s->tables, &i, &id, &value);) {
        const struct shard_table *t = value;
        size_t row = ((size_t)t->row_values + t->state_values) * t->value_bytes;
        most = row > most ? row : most;
    }
    return most + 2 * (size_t)GIVE_BLOCK_BYTES + SHARD_SENDERS_MAX * sizeof(struct ckpt_clock);
}

/* ---- life ---------------------------------------------------------------------------------------------- */

static void say_full(struct take *k, paramo_err err)
{
    shard_moved full = k->full;
    k->full = NULL;
    if (full)
        full(k->arg, err);
}

static void take_free(struct take *k)
{
    k->chain->take = NULL;
    lane_timer_cancel(k->chain->shard->lane, &k->timer);
    free(k->last);
    follow_origin_fini(k->staged);
    free(k);
}

/* A member's rows of the tables that were to come, whatever its level is by now: it may be the owner, since
 * the one that sent them has died, and part of a table is not the table. */
static void rows_drop(const struct take *k)
{
    struct shard *s = k->chain->shard;
    uint64_t id;
    void *value;
    for (size_t i = 0; map_next(&s->tables, &i, &id, &value);) {
        struct shard_table *t = value;
        if (!t->table || !taking_gets(k->chain, t))
            continue;
        shard_table_lose(t, k->arcs, false);
        clearing_begin(s, t, k->arcs);
    }
}

/* What came goes. */
static void take_drop(struct take *k, paramo_err err)
{
    struct chain *c = k->chain;
    uint64_t arcs[CHAIN_WORDS];
    bool member = is_member(k);
    memcpy(arcs, k->arcs, sizeof arcs);
    say_full(k, err);
    if (member)
        rows_drop(k);
    take_free(k);
    if (!member)
        chain_drop(c, arcs);
}

/* The owner's records take the place of those that came by the chain. All changes have come: the owner has
 * not said that it has paused before. */
static paramo_err take_records(struct take *k)
{
    struct chain *c = k->chain;
    struct chain_origin *o = origin_of(k);
    if (!o)
        return err_set(PARAMO_E_PROTOCOL, "arcs %u to %u have changed hands during their move",
                       k->order.first, k->order.first + k->order.arcs - 1);
    for (arcs_each(a, k->arcs)) {
        o->arcs--;
        c->origin_of[a] = k->staged;
        k->staged->arcs++;
    }
    paramo_err err = follow_take(c, k->staged, o, k->arcs);
    for (arcs_each(a, k->arcs))
        if (c->origin_of[a] == k->staged) { /* without memory */
            c->origin_of[a] = o;
            o->arcs++;
        }
    return err;
}

/* It has been committed. What came of tables that are not for our level goes: nobody knew of them when the
 * move began. */
static void take_keep(struct take *k)
{
    struct chain *c = k->chain;
    uint64_t arcs[CHAIN_WORDS];
    for (unsigned i = 0; i < k->order.arcs && k->last; i++) {
        uint64_t *last = &c->last[k->order.first + i];
        *last = k->state == TAKE_LAST && k->last[i] > *last ? k->last[i] : *last;
    }
    if (k->state == TAKE_LAST && k->staged) {
        paramo_err err = take_records(k);
        if (err)
            chain_fail(c, err);
    }
    if (k->state == TAKE_LAST && !k->order.level)
        memcpy(c->brought, k->arcs, sizeof c->brought);
    memcpy(arcs, k->arcs, sizeof arcs);
    say_full(k, err_set(PARAMO_E_NOT_FOUND, "the view has changed"));
    take_free(k);
    chain_shed(c, arcs);
}

static void fire(struct lane_timer *timer)
{
    struct take *k = container_of(timer, struct take, timer);
    struct shard *s = k->chain->shard;
    uint64_t now = lane_now(s->lane);
    if (k->state == TAKE_FILLING && now - k->heard_at > 2 * MOVE_STALL_MS * ENV_MS) {
        take_drop(k, err_set(PARAMO_E_TIMEOUT, "nothing has come for %d ms", 2 * MOVE_STALL_MS));
        return;
    }
    if (lane_timer_arm(s->lane, timer, now + ENV_SEC))
        log_error("no memory for a timer: a move to this shard has no deadline");
}

/* Rows that are to come have room. */
static paramo_err make_room(struct shard *s)
{
    uint64_t id;
    void *value;
    for (size_t i = 0; map_next(&s->tables, &i, &id, &value);) {
        struct shard_table *t = value;
        paramo_err err =
            t->options.kind == PARAMO_TABLE_DENSE && t->table ? shard_table_own(s, t) : PARAMO_OK;
        if (err)
            return err;
    }
    return PARAMO_OK;
}

paramo_err taking_begin(struct chain *c, const struct move_order *m, shard_moved done, void *arg)
{
    struct shard *s = c->shard;
    struct chain_name from = {.node = m->from.node, .shard = m->from.index};
    if (c->take)
        take_drop(c->take, err_set(PARAMO_E_NOT_FOUND, "another move has been ordered"));
    bool member = m->had != MOVE_NO_LEVEL;
    for (unsigned a = m->first; a < (unsigned)m->first + m->arcs; a++)
        if (member
                ? chain_level(s, a) != m->had || !c->origin_of[a] || !chain_same(c->origin_of[a]->name, from)
                : chain_level(s, a) >= 0 || c->origin_of[a])
            return err_set(PARAMO_E_NOT_FOUND, "arc %u is here already or not followed, by this shard's view",
                           a);
    struct take *k = calloc(1, sizeof *k);
    struct chain_origin *o = k ? follow_origin(c, from) : NULL;
    uint64_t *last = k && member ? calloc(m->arcs, sizeof *last) : NULL;
    struct chain_origin *staged = k && member ? follow_origin_make(from) : NULL;
    if (!o || (member && (!last || !staged))) {
        free(last);
        follow_origin_fini(staged);
        free(k);
        return err_memory(sizeof *k);
    }
    *k = (struct take){.chain = c,
                       .order = *m,
                       .term = s->view->number >> 32,
                       .from = from,
                       .last = last,
                       .staged = staged,
                       .heard_at = lane_now(s->lane),
                       .timer.fire = fire};
    for (unsigned a = m->first; a < (unsigned)m->first + m->arcs; a++) {
        arcs_add(k->arcs, a);
        k->mine[a] = true;
        c->origin_of[a] = o;
        o->arcs += !member;
    }
    c->take = k;
    paramo_err err = make_room(s);
    if (!err)
        err = lane_timer_arm(s->lane, &k->timer, k->heard_at + ENV_SEC);
    if (err) {
        take_drop(k, err);
        return err;
    }
    if (MUTANT(replica_counted_early)) {
        done(arg, PARAMO_OK);
    } else {
        k->full = done;
        k->arg = arg;
    }
    for (struct chain_source *source = c->sources; source; source = source->next)
        if (source->moves && chain_same(source->from, from)) { /* what came before the order */
            source->again = true;
            follow_ack_soon(source);
        }
    return PARAMO_OK;
}

bool taking_whole(const struct chain *c)
{
    return c->take && c->take->state == TAKE_LAST;
}

void taking_view(struct chain *c)
{
    const struct shard *s = c->shard;
    uint64_t moved = s->self >= 0 ? s->view->shards[s->self].moved : 0;
    bool committed = s->self >= 0 && c->in_view && moved > c->moved;
    if (committed && !(taking_whole(c) && c->take->order.id == moved)) /* never zeros in silence */
        chain_fail(c,
                   err_set(PARAMO_E_PROTOCOL, "a move to this shard was committed that has not ended here"));
    c->in_view = s->self >= 0;
    c->moved = moved;
    taking_end(c, false);
}

void taking_end(struct chain *c, bool over)
{
    struct take *k = c->take;
    const struct shard *s = c->shard;
    if (!k)
        return;
    bool given = false; /* its owner is dead: some of the arcs are ours, or nearer, without what it had */
    for (arcs_each(a, k->arcs))
        given |= s->view && chain_level(s, a) != (is_member(k) ? k->order.had : -1);
    if (s->view && s->self >= 0 && s->view->shards[s->self].moved == k->order.id) {
        take_keep(k); /* of arcs that have left since, the rows go with the view */
    } else if (over || given || s->self < 0 || s->view->number >> 32 != k->term) {
        take_drop(k, err_set(PARAMO_E_NOT_FOUND, "the move is over"));
    }
}

void taking_close(struct chain *c)
{
    if (!c->take)
        return;
    say_full(c->take, err_set(PARAMO_E_CLOSED, "the shard is closed"));
    take_free(c->take);
}

void taking_ordered(struct chain *c, const struct move_order *m)
{
    if (c->take && c->take->order.id == m->id)
        taking_end(c, true);
}

/* ---- what comes ---------------------------------------------------------------------------------------- */

static paramo_err wrong(const char *what)
{
    return err_set(PARAMO_E_PROTOCOL, "a move: %s", what);
}

static paramo_err on_rows(struct take *k, const struct move_message *m, bool *done)
{
    struct shard_table *t = shard_table_find(k->chain->shard, m->table);
    struct ckpt_block block = {.kind = CKPT_ROWS,
                               .table = m->table,
                               .arc = k->order.first,
                               .arcs = k->order.arcs,
                               .payload = m->payload,
                               .bytes = m->bytes};
    if (!t || !t->table || t->lacks || clearing_touches(t, k->arcs))
        return PARAMO_OK; /* it comes again when the table is there, without the rows before */
    if (!taking_gets(k->chain, t))
        return wrong("rows of a table that is here already");
    paramo_err err = ckpt_rows_apply(t->table, &t->placement, k->mine, &block);
    *done = !err;
    return err == PARAMO_E_MEMORY ? PARAMO_OK : err ? wrong(err_text()) : PARAMO_OK;
}

/* They take the place of what was known here of these arcs. MEMORY: of some senders they may have. */
static paramo_err arrive(struct take *k, const uint64_t arcs[CHAIN_WORDS], const struct ckpt_clock *list,
                         size_t n)
{
    struct chain_origin *o = k->staged && !MUTANT(records_before_commit) ? k->staged : origin_of(k);
    uint64_t held[CHAIN_WORDS];
    paramo_err err = PARAMO_OK;
    follow_arcs(k->chain, o, held);
    k->chain->arrivals++;
    for (size_t i = 0; i < n && !err; i++) {
        struct clock theirs = {.own = list[i].dedup};
        struct chain_sender *x =
            follow_sender(o, list[i].node, list[i].app, list[i].customer, list[i].incarnation);
        if (!x)
            return err_memory(sizeof *x);
        x->clock.arrival = k->chain->arrivals;
        err = clock_arrive(&x->clock, held, arcs, &theirs);
    }
    for (struct chain_sender *x = o->senders; x && !err; x = x->next)
        if (x->clock.arrival != k->chain->arrivals)
            err = clock_arrive(&x->clock, held, arcs, NULL);
    return err;
}

static paramo_err on_records(struct take *k, const struct move_message *m, bool *done)
{
    struct ckpt_block block = {.kind = CKPT_CLOCKS, .payload = m->payload, .bytes = m->bytes};
    struct ckpt_clock *list;
    size_t n;
    uint64_t arcs[CHAIN_WORDS] = {0};
    for (unsigned a = 0; a < RING_ARCS; a++)
        if (move_has(m, a)) {
            arcs_add(arcs, a);
            if (!arcs_has(k->arcs, a))
                return wrong("records of other arcs");
        }
    if (!origin_of(k))
        return PARAMO_OK;
    paramo_err err = ckpt_clocks_decode(&block, &list, &n);
    if (err)
        return err == PARAMO_E_MEMORY ? PARAMO_OK : wrong(err_text());
    err = arrive(k, arcs, list, n);
    free(list);
    *done = !err;
    return PARAMO_OK; /* MEMORY: it comes again */
}

static paramo_err on_parts(struct take *k, const struct move_message *m, bool *done)
{
    struct reader r = reader_over(m->payload, m->bytes);
    struct chain_origin *o = k->staged ? k->staged : origin_of(k);
    paramo_err err = o ? PARAMO_OK : PARAMO_E_NOT_FOUND;
    while (r.left && !r.failed && !err) {
        uint64_t arcs[CHAIN_WORDS];
        uint32_t node = read_u32(&r), app = read_u32(&r), customer = read_u32(&r);
        uint64_t incarnation = read_u64(&r), number = read_u64(&r);
        for (unsigned i = 0; i < CHAIN_WORDS; i++)
            arcs[i] = read_u64(&r) & k->arcs[i];
        struct chain_sender *x = r.failed ? NULL : follow_sender(o, node, app, customer, incarnation);
        err = x ? clock_note(&x->clock, number, arcs) : err_memory(sizeof *x);
    }
    *done = !err && !r.failed; /* twice does no harm */
    return r.failed ? wrong("where chunks have been done") : PARAMO_OK;
}

static paramo_err on_lost(struct take *k, const struct move_message *m, bool *done)
{
    struct shard_table *t = shard_table_find(k->chain->shard, m->table);
    struct reader r = reader_over(m->payload, m->bytes);
    uint64_t arcs[CHAIN_WORDS];
    if (!t)
        return PARAMO_OK;
    for (unsigned i = 0; i < CHAIN_WORDS; i++)
        arcs[i] = read_u64(&r) & k->arcs[i];
    if (!reader_done(&r))
        return wrong("what is lost");
    if (!taking_gets(k->chain, t))
        return wrong("what is lost of a table that is here already");
    shard_table_lose(t, arcs, true);
    *done = true;
    return PARAMO_OK;
}

static paramo_err on_move(struct chain_source *source, const struct move_message *m, bool *done)
{
    struct chain *c = source->shard->chain;
    struct take *k = c->take;
    if (!k || k->order.id != m->id || !chain_same(k->from, source->from))
        return PARAMO_OK; /* the order may still come */
    if (m->what == MOVE_STEP_BEGIN) {
        if (m->first != k->order.first || m->arcs != k->order.arcs || k->source || k->state != TAKE_FILLING)
            return wrong("it begins otherwise than was ordered");
        k->source = source;
        *done = true;
        return PARAMO_OK;
    }
    if (k->source != source || k->state == TAKE_LAST)
        return wrong("it has not begun, or has ended");
    switch (m->what) {
    case MOVE_STEP_ROWS:
        return k->state == TAKE_FILLING ? on_rows(k, m, done) : wrong("rows after the last");
    case MOVE_STEP_FULL:
        k->state = TAKE_FULL;
        say_full(k, PARAMO_OK);
        break;
    case MOVE_STEP_RECORDS:
        return on_records(k, m, done);
    case MOVE_STEP_PARTS:
        return on_parts(k, m, done);
    case MOVE_STEP_LOST:
        return on_lost(k, m, done);
    default:
        if (m->bytes != 8 * (size_t)k->order.arcs)
            return wrong("orders of other arcs");
        for (unsigned i = 0; i < k->order.arcs; i++)
            *(k->last ? &k->last[i] : &c->last[k->order.first + i]) = move_order_of(m, i);
        k->state = TAKE_LAST;
    }
    *done = true;
    return PARAMO_OK;
}

/* A change of the arcs, made by their owner meanwhile. Its record comes with all others. */
static paramo_err on_change(struct chain_source *source, const struct chain_message *m,
                            const struct van_seg *seg, unsigned nseg, bool *done)
{
    struct shard *s = source->shard;
    struct take *k = s->chain->take;
    uint64_t arcs[CHAIN_WORDS];
    if (!k || k->source != source)
        return PARAMO_OK;
    if (m->what != CHAIN_UPDATE || !chain_same(m->origin, source->from) || k->state == TAKE_LAST)
        return wrong("what is no change of its arcs");
    struct shard_table *t = shard_table_find(s, m->request.table);
    if (!t || t->options.kind == PARAMO_TABLE_USER || !t->table || t->lacks)
        return t && t->options.kind == PARAMO_TABLE_USER ? wrong("a table without rows") : PARAMO_OK;
    if (!taking_gets(s->chain, t))
        return wrong("a change of a table that is here already");
    paramo_err err = apply_check_rows(t, &m->request, seg, nseg);
    const uint64_t *keys = m->request.count ? seg[WIRE_SEG_KEYS].data : NULL;
    if (!err && m->request.count)
        err = apply_check_order(t, keys, m->request.count);
    memcpy(arcs, m->arcs, sizeof arcs);
    for (size_t i = 0; i < m->request.count && !err; i++)
        arcs_add(arcs, ring_arc(ring_position(&t->placement, keys[i])));
    for (unsigned a = 0; a < RING_ARCS && !err; a++)
        if (arcs_has(arcs, a) && !arcs_has(k->arcs, a))
            err = wrong("a change of another arc");
    if (err || (m->request.kind != WIRE_CLEAR && clearing_touches(t, arcs)))
        return err;
    uint64_t pushes = t->pushes; /* counted where clients ask */
    err = parted_change(s, t, &m->request, seg, nseg, arcs);
    t->pushes = pushes;
    if (!err && m->request.kind == WIRE_CLEAR)
        shard_table_lose(t, arcs, false);
    *done = !err;
    return err == PARAMO_E_MEMORY ? PARAMO_OK : err;
}

paramo_err taking_frame(struct chain_source *source, const struct wire_head *head, const struct van_seg *seg,
                        unsigned nseg)
{
    struct shard *s = source->shard;
    struct chain_message change;
    struct move_message move;
    bool is_move = head->kind == WIRE_MOVE, done = false;
    paramo_err err = is_move ? move_decode(head, seg, nseg, &move) : chain_decode(head, seg, nseg, &change);
    if (err)
        return err;
    uint64_t seq = head->ts;
    if (seq <= source->received)
        return PARAMO_OK;
    if (seq == source->received + 1 && s->view && s->self >= 0 && head->view <= s->view->number)
        err = is_move ? on_move(source, &move, &done) : on_change(source, &change, seg, nseg, &done);
    if (err)
        return err;
    if (!done) {
        source->again = true; /* said with the next tick, order or view */
        return PARAMO_OK;
    }
    source->received = source->acked = seq;
    if (s->chain->take)
        s->chain->take->heard_at = lane_now(s->lane);
    follow_ack_soon(source);
    return PARAMO_OK;
}
