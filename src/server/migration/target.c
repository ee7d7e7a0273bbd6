#include "server/migration/target.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/sm.h"
#include "server/replication/acks.h"
#include "server/replication/gate.h"
#include "server/replication/origins.h"
#include "server/replication/records.h"
#include "server/replication/succession.h"
#include "server/shard/apply_rows.h"
#include "server/shard/clearing.h"
#include "server/shard/partial_apply.h"
#include "server/shard/shard_tables.h"
#include "server/snapshot/ckpt_rows.h"

struct migration_target {
    struct chain *chain;
    struct migration_order order;
    enum migration_target_state state;
    uint64_t term; /* of the scheduler */
    uint64_t partitions[CHAIN_WORDS];
    bool mine[RING_PARTITIONS]; /* the same, for ckpt_rows.h */
    struct chain_name from;
    /* If the target is a member, until the commit: the number of each partition's last change, and the
     * owner's records. Updates that they count may still be on their way through the chain, and be lost
     * there. */
    uint64_t *last;
    struct chain_origin *staged;
    bool emptied;                /* the owner's records replace what is known: that begins with nothing */
    struct chain_source *source; /* the stream that began it; or NULL */
    uint64_t heard_at;
    shard_migration_done full; /* NULL: it has been called */
    void *arg;
    struct lane_timer timer;
};

enum migration_target_state migration_target_state(const struct migration_target *k, uint64_t *id)
{
    *id = k->order.id;
    return k->state;
}

bool migration_target_has(const struct chain *c, unsigned partition)
{
    return c->migration_target && partition_set_has(c->migration_target->partitions, partition);
}

const uint64_t *migration_target_partitions(const struct chain *c)
{
    return c->migration_target ? c->migration_target->partitions : NULL;
}

static bool is_member(const struct migration_target *k)
{
    return k->order.had != MIGRATION_NO_LEVEL;
}

bool migration_target_is_new(const struct chain *c, unsigned partition)
{
    return migration_target_has(c, partition) && !is_member(c->migration_target);
}

bool migration_target_gets_table(const struct chain *c, const struct shard_table *t)
{
    const struct migration_order *m = &c->migration_target->order;
    return t->replicas >= m->level && t->replicas < m->had;
}

/* The source's records, as they are known here. NULL: another shard owns the partitions now. */
static struct chain_origin *origin_of(const struct migration_target *k)
{
    struct chain_origin *o = k->chain->origin_of[k->order.first];
    return o && chain_same(o->name, k->from) ? o : NULL;
}

bool migration_target_is_source(const struct chain_source *source)
{
    const struct migration_target *k = source->shard->chain->migration_target;
    return k && k->source == source;
}

void migration_target_forget_sender(struct chain *c, const struct chain_message *m)
{
    assert(!c->migration_target || c->migration_target->chain == c);
    if (c->migration_target && c->migration_target->staged)
        origin_sender_forget(c->migration_target->staged, m);
}

void migration_target_source_closed(struct chain *c, const struct chain_source *source)
{
    if (!c->migration_target || c->migration_target->source != source)
        return;
    assert(source->for_migration);
    assert(source->shard->chain == c);
    c->migration_target->source = NULL;
}

size_t migration_target_frame_bytes(const struct shard *s)
{
    size_t most = 0;
    struct shard_table *t;
    for (size_t i = 0; (t = shard_table_next(s, &i));) {
        size_t row = (size_t)t->stored_values * t->value_bytes;
        most = row > most ? row : most;
    }
    return most + 2 * (size_t)MIGRATION_BLOCK_BYTES;
}

/* ---- life ---- */

/* A stream of the owner that began it brings what is migrated. */
static void target_check(const struct migration_target *k)
{
    assert(k->chain->migration_target == k);
    assert(!k->source || (k->source->for_migration && chain_same(k->from, k->source->from)));
    assert(k->source || k->state != MIGRATION_TARGET_FILLING || !k->emptied);
}

static void report_full(struct migration_target *k, paramo_err err)
{
    target_check(k);
    shard_migration_done full = k->full;
    k->full = NULL;
    if (full)
        full(k->arg, err);
}

static void target_free(struct migration_target *k)
{
    assert(k->chain->migration_target == k);
    assert(!k->full);
    k->chain->migration_target = NULL;
    lane_timer_cancel(k->chain->shard->lane, &k->timer);
    free(k->last);
    records_end(k->chain, k->staged);
    free(k);
}

/* Drops rows of the tables that were arriving, at any level of this shard: part of a table is not the table.
 * The shard may be the owner by now, if the source died. */
static void rows_drop(const struct migration_target *k)
{
    struct shard *s = k->chain->shard;
    struct shard_table *t;
    target_check(k);
    assert(is_member(k)); /* another shard has no level to keep: it drops all */
    size_t room = clearing_room(s);
    for (size_t i = 0; (t = shard_table_next(s, &i));) {
        if (!t->table || !migration_target_gets_table(k->chain, t))
            continue;
        shard_table_lose(t, k->partitions, false);
        clearing_begin_some(s, t, k->partitions, &room);
    }
}

/* Drops everything that arrived. */
static void target_abort(struct migration_target *k, paramo_err err)
{
    struct chain *c = k->chain;
    uint64_t partitions[CHAIN_WORDS];
    bool member = is_member(k);
    assert(err && c->migration_target == k);
    memcpy(partitions, k->partitions, sizeof partitions);
    report_full(k, err);
    if (member)
        rows_drop(k);
    target_free(k);
    assert(!c->migration_target);
    if (!member)
        chain_drop(c, partitions);
}

/* The owner's records replace those that came through the chain. All changes have arrived: the owner reports
 * PAUSED only then. */
static paramo_err adopt_records(struct migration_target *k)
{
    struct chain *c = k->chain;
    assert(k->staged && k->state == MIGRATION_TARGET_LAST);
    struct chain_origin *o = origin_of(k);
    bool all = o;
    for (partition_set_each(a, k->partitions))
        all = all && c->origin_of[a] == o; /* the member before may have sent a takeover of some */
    if (!all)
        return err_set(PARAMO_E_PROTOCOL, "partitions %u to %u changed owner during their migration",
                       k->order.first, k->order.first + k->order.partitions - 1);
    for (partition_set_each(a, k->partitions)) {
        assert(o->partitions > 0);
        o->partitions--;
        c->origin_of[a] = k->staged;
        k->staged->partitions++;
    }
    paramo_err err = records_pass(c, k->staged, o, k->partitions);
    for (partition_set_each(a, k->partitions))
        if (c->origin_of[a] == k->staged) { /* it failed without memory */
            c->origin_of[a] = o;
            o->partitions++;
            k->staged->partitions--;
        }
    return err;
}

/* The migration is committed. Drops rows of tables that our level does not have: they were not known when it
 * began. */
static void target_commit(struct migration_target *k)
{
    struct chain *c = k->chain;
    assert(c->shard->view->shards[c->shard->self].last_migration == k->order.id);
    uint64_t partitions[CHAIN_WORDS];
    for (unsigned i = 0; i < k->order.partitions && k->last; i++) {
        uint64_t *last = &c->last[k->order.first + i];
        *last = k->state == MIGRATION_TARGET_LAST && k->last[i] > *last ? k->last[i] : *last;
    }
    assert(!k->last == !k->staged && !k->last == !is_member(k));
    if (k->state == MIGRATION_TARGET_LAST && k->staged) {
        paramo_err err = adopt_records(k);
        if (err)
            chain_fail(c, err);
    }
    memcpy(partitions, k->partitions, sizeof partitions);
    report_full(k, err_set(PARAMO_E_NOT_FOUND, "the view has changed"));
    target_free(k);
    chain_shed(c, partitions);
}

static void fire(struct lane_timer *timer)
{
    struct migration_target *k = container_of(timer, struct migration_target, timer);
    struct shard *s = k->chain->shard;
    uint64_t now = lane_now(s->lane);
    assert(k->chain->migration_target == k && now >= k->heard_at);
    if (k->state == MIGRATION_TARGET_FILLING && now - k->heard_at > 2 * MIGRATION_STALL_MS * ENV_MS) {
        target_abort(
            k, err_set(PARAMO_E_TIMEOUT, "no message from the source for %d ms", 2 * MIGRATION_STALL_MS));
        return;
    }
    if (lane_timer_arm(s->lane, timer, now + ENV_SEC))
        log_error("no memory for a timer: a migration to this shard has no deadline");
}

/* Makes room in dense tables for rows that will arrive. */
static paramo_err make_room(struct shard *s)
{
    struct shard_table *t;
    size_t room = clearing_room(s);
    for (size_t i = 0; (t = shard_table_next(s, &i));) {
        paramo_err err =
            t->options.kind == PARAMO_TABLE_DENSE && t->table ? shard_table_own(s, t, &room) : PARAMO_OK;
        if (err)
            return err;
    }
    return PARAMO_OK;
}

paramo_err migration_target_begin(struct chain *c, const struct migration_order *m, shard_migration_done done,
                                  void *arg)
{
    struct shard *s = c->shard;
    struct chain_name from = {.node = m->from.node, .shard = m->from.index};
    if (c->migration_target)
        target_abort(c->migration_target,
                     err_set(PARAMO_E_NOT_FOUND, "the scheduler ordered another migration"));
    bool member = m->had != MIGRATION_NO_LEVEL;
    for (unsigned a = m->first; a < (unsigned)m->first + m->partitions; a++)
        if (member
                ? chain_level(s, a) != m->had || !c->origin_of[a] || !chain_same(c->origin_of[a]->name, from)
                : chain_level(s, a) >= 0 || c->origin_of[a])
            return err_set(PARAMO_E_NOT_FOUND,
                           "this shard cannot take partition %u: it has it already, or does not follow it",
                           a);
    struct migration_target *k = calloc(1, sizeof *k);
    struct chain_origin *o = k ? origin_get(c, from) : NULL;
    uint64_t *last = k && member ? calloc(m->partitions, sizeof *last) : NULL;
    struct chain_origin *staged = k && member ? origin_make(from) : NULL;
    if (!o || (member && (!last || !staged))) {
        free(last);
        origin_fini(staged);
        free(k);
        return err_memory(sizeof *k);
    }
    *k = (struct migration_target){.chain = c,
                                   .order = *m,
                                   .term = s->view->number >> 32,
                                   .from = from,
                                   .last = last,
                                   .staged = staged,
                                   .heard_at = lane_now(s->lane),
                                   .timer.fire = fire};
    for (unsigned a = m->first; a < (unsigned)m->first + m->partitions; a++) {
        partition_set_add(k->partitions, a);
        k->mine[a] = true;
        c->origin_of[a] = o;
        o->partitions += !member;
    }
    assert(!c->migration_target);
    c->migration_target = k;
    paramo_err err = make_room(s);
    if (!err)
        err = lane_timer_arm(s->lane, &k->timer, k->heard_at + ENV_SEC);
    if (err) {
        target_abort(k, err);
        return err;
    }
    k->full = done;
    k->arg = arg;
    for (struct chain_source *source = c->sources; source; source = source->next)
        if (source->for_migration &&
            chain_same(source->from, from)) { /* the messages that came before the order */
            source->again = true;
            acks_soon(source);
        }
    target_check(k);
    return PARAMO_OK;
}

bool migration_target_complete(const struct chain *c)
{
    return c->migration_target && c->migration_target->state == MIGRATION_TARGET_LAST;
}

void migration_target_view_changed(struct chain *c)
{
    const struct shard *s = c->shard;
    assert(s->chain == c);
    assert(s->view);
    uint64_t last_migration = s->self >= 0 ? s->view->shards[s->self].last_migration : 0;
    bool committed = s->self >= 0 && c->in_view && last_migration > c->last_migration;
    if (committed && !(migration_target_complete(c) &&
                       c->migration_target->order.id == last_migration)) /* never zeros without an error */
        chain_fail(c, err_set(PARAMO_E_PROTOCOL,
                              "a migration to this shard was committed before all rows had arrived"));
    c->in_view = s->self >= 0;
    c->last_migration = last_migration;
    migration_target_end(c, false);
}

void migration_target_end(struct chain *c, bool over)
{
    struct migration_target *k = c->migration_target;
    const struct shard *s = c->shard;
    if (!k)
        return;
    target_check(k);
    bool given = false; /* the owner is dead: some partitions are ours, or nearer to us, without its rows */
    for (partition_set_each(a, k->partitions))
        given |= s->view && chain_level(s, a) != (is_member(k) ? k->order.had : -1);
    if (s->view && s->self >= 0 && s->view->shards[s->self].last_migration == k->order.id) {
        target_commit(k); /* the view removes rows of partitions that have left since */
    } else if (over || given || s->self < 0 || s->view->number >> 32 != k->term) {
        target_abort(k, err_set(PARAMO_E_NOT_FOUND, "the migration is over"));
        assert(!c->migration_target);
    }
}

void migration_target_close(struct chain *c)
{
    if (!c->migration_target)
        return;
    assert(c->migration_target->chain == c);
    report_full(c->migration_target, err_set(PARAMO_E_CLOSED, "the shard is closed"));
    target_free(c->migration_target);
    assert(!c->migration_target);
}

void migration_target_end_ordered(struct chain *c, const struct migration_order *m)
{
    if (c->migration_target && c->migration_target->order.id == m->id)
        migration_target_end(c, true);
}

/* ---- messages of the source ---- */

static paramo_err wrong(const char *what)
{
    return err_set(PARAMO_E_PROTOCOL, "a message of a migration is not valid: %s", what);
}

static paramo_err on_rows(struct migration_target *k, const struct migration_message *m, bool *done)
{
    struct shard_table *t = shard_table_find(k->chain->shard, m->table);
    assert(k->source && k->state == MIGRATION_TARGET_FILLING);
    struct ckpt_block block = {.kind = CKPT_ROWS,
                               .table = m->table,
                               .partition = k->order.first,
                               .partitions = k->order.partitions,
                               .payload = m->payload,
                               .bytes = m->bytes};
    if (!t || !t->table || t->lacks || clearing_touches(t, k->partitions))
        return PARAMO_OK; /* it comes again when the table exists, without earlier rows */
    if (!migration_target_gets_table(k->chain, t))
        return wrong("it has rows of a table that this shard already has");
    paramo_err err = ckpt_rows_apply(t->table, &t->placement, k->mine, &block);
    *done = !err;
    return err == PARAMO_E_MEMORY ? PARAMO_OK : err ? wrong(err_text()) : PARAMO_OK;
}

/* Before the first records: nothing is applied on the partitions. *done: all records have been visited. */
static paramo_err records_empty(struct migration_target *k, struct chain_origin *o, bool *done)
{
    target_check(k);
    assert(o);
    paramo_err err = k->emptied ? PARAMO_OK : records_restart(k->chain, o, k->partitions);
    if (!err && !k->emptied)
        records_go(k->chain);
    k->emptied |= !err;
    *done = !err && !records_pending(k->chain);
    return err;
}

/* These records, on these partitions. MEMORY: perhaps for some senders only. */
static paramo_err arrive(struct migration_target *k, struct chain_origin *o,
                         const uint64_t partitions[CHAIN_WORDS], const struct sender_window *list, size_t n)
{
    assert(k->state == MIGRATION_TARGET_FULL && k->emptied);
    uint64_t held[CHAIN_WORDS];
    paramo_err err = PARAMO_OK;
    origin_partitions(k->chain, o, held);
    for (size_t i = 0; i < n && !err; i++) {
        struct applied_window theirs = {.own = list[i].dedup};
        struct chain_sender *x = origin_sender(o, &list[i].sender);
        err =
            x ? applied_window_import(&x->applied_window, held, partitions, &theirs) : err_memory(sizeof *x);
    }
    return err;
}

static paramo_err on_records(struct migration_target *k, const struct migration_message *m, bool *done)
{
    struct sender_window *list;
    size_t n;
    uint64_t partitions[CHAIN_WORDS];
    assert(k->source && k->state == MIGRATION_TARGET_FULL);
    migration_records_partitions(m, partitions);
    for (unsigned i = 0; i < CHAIN_WORDS; i++)
        if (partitions[i] & ~k->partitions[i])
            return wrong("it has records of other partitions");
    struct chain_origin *o = k->staged ? k->staged : origin_of(k);
    bool emptied = false;
    if (!origin_of(k) || records_empty(k, o, &emptied) || !emptied)
        return PARAMO_OK; /* it comes again */
    paramo_err err = sender_windows_decode(m->payload, m->bytes, &list, &n);
    if (err)
        return err == PARAMO_E_MEMORY ? PARAMO_OK : wrong(err_text());
    err = arrive(k, o, partitions, list, n);
    free(list);
    *done = !err;
    return PARAMO_OK; /* MEMORY: it comes again */
}

static paramo_err on_applied_notes(struct migration_target *k, const struct migration_message *m, bool *done)
{
    struct reader r = reader_over(m->payload, m->bytes);
    struct chain_origin *o = k->staged ? k->staged : origin_of(k);
    assert(k->source && k->state == MIGRATION_TARGET_FULL);
    paramo_err err = o ? PARAMO_OK : PARAMO_E_NOT_FOUND;
    while (r.left && !r.failed && !err) {
        struct sender_note note = sender_note_decode(&r);
        for (unsigned i = 0; i < CHAIN_WORDS; i++)
            note.partitions[i] &= k->partitions[i];
        struct chain_sender *x = r.failed ? NULL : origin_sender(o, &note.sender);
        err = x ? applied_window_note_number(&x->applied_window, note.number, note.partitions)
                : err_memory(sizeof *x);
    }
    *done = !err && !r.failed; /* applying it twice does no harm */
    return r.failed ? wrong("its records of applied chunks are malformed") : PARAMO_OK;
}

static paramo_err on_lost(struct migration_target *k, const struct migration_message *m, bool *done)
{
    struct shard_table *t = shard_table_find(k->chain->shard, m->table);
    struct reader r = reader_over(m->payload, m->bytes);
    uint64_t partitions[CHAIN_WORDS];
    assert(k->source && k->state != MIGRATION_TARGET_LAST);
    if (!t)
        return PARAMO_OK;
    partition_bits_decode(&r, partitions);
    for (unsigned i = 0; i < CHAIN_WORDS; i++)
        partitions[i] &= k->partitions[i];
    if (!reader_done(&r))
        return wrong("its list of lost partitions is malformed");
    if (!migration_target_gets_table(k->chain, t))
        return wrong("it has lost partitions of a table that this shard already has");
    shard_table_lose(t, partitions, true);
    *done = true;
    return PARAMO_OK;
}

static const struct sm machine = {"migration_target",
                                  {[MIGRATION_TARGET_FILLING] = {"filling", SM_TO(MIGRATION_TARGET_FULL)},
                                   [MIGRATION_TARGET_FULL] = {"full", SM_TO(MIGRATION_TARGET_LAST)},
                                   [MIGRATION_TARGET_LAST] = {"last", 0}}};

static void move(struct migration_target *k, enum migration_target_state to)
{
    sm_check(&machine, k->state, to);
    target_check(k);
    k->state = to;
}

static paramo_err on_migration(struct chain_source *source, const struct migration_message *m, bool *done)
{
    struct chain *c = source->shard->chain;
    struct migration_target *k = c->migration_target;
    if (!k || k->order.id != m->id || !chain_same(k->from, source->from))
        return PARAMO_OK; /* the order may still come */
    target_check(k);
    if (m->what == MIGRATION_STEP_BEGIN) {
        if (m->first != k->order.first || m->partitions != k->order.partitions || k->source ||
            k->state != MIGRATION_TARGET_FILLING)
            return wrong("it does not begin as the scheduler ordered");
        k->source = source;
        *done = true;
        return PARAMO_OK;
    }
    if (k->source != source || k->state == MIGRATION_TARGET_LAST)
        return wrong("it has not begun, or has ended");
    switch (m->what) {
    case MIGRATION_STEP_ROWS:
        return k->state == MIGRATION_TARGET_FILLING ? on_rows(k, m, done)
                                                    : wrong("it has rows after the last row");
    case MIGRATION_STEP_FULL:
        if (!sm_may(&machine, k->state, MIGRATION_TARGET_FULL))
            return wrong("it ends the rows twice");
        move(k, MIGRATION_TARGET_FULL);
        report_full(k, PARAMO_OK);
        break;
    case MIGRATION_STEP_RECORDS:
    case MIGRATION_STEP_NOTES:
        if (k->state == MIGRATION_TARGET_FILLING)
            return wrong("it has records before the last row");
        return m->what == MIGRATION_STEP_RECORDS ? on_records(k, m, done) : on_applied_notes(k, m, done);
    case MIGRATION_STEP_LOST:
        return on_lost(k, m, done);
    default:
        if (m->bytes != 8 * (size_t)k->order.partitions)
            return wrong("it has order numbers of other partitions");
        if (!sm_may(&machine, k->state, MIGRATION_TARGET_LAST))
            return wrong("it ends the migration before all rows have come");
        for (unsigned i = 0; i < k->order.partitions; i++)
            *(k->last ? &k->last[i] : &c->last[k->order.first + i]) = migration_order_of(m, i);
        move(k, MIGRATION_TARGET_LAST);
    }
    *done = true;
    return PARAMO_OK;
}

/* A change of the partitions that their owner made during the copy. Its record comes later with all
 * others. */
static paramo_err on_change(struct chain_source *source, const struct chain_message *m,
                            const struct van_seg *seg, unsigned nseg, bool *done)
{
    struct shard *s = source->shard;
    struct migration_target *k = s->chain->migration_target;
    uint64_t partitions[CHAIN_WORDS];
    if (!k || k->source != source)
        return PARAMO_OK;
    target_check(k);
    assert(source->for_migration);
    if (m->what != CHAIN_UPDATE || !chain_same(m->origin, source->from) || k->state == MIGRATION_TARGET_LAST)
        return wrong("it is not a change of the migrated partitions");
    struct shard_table *t = shard_table_find(s, m->request.table);
    if (!t || t->options.kind == PARAMO_TABLE_USER || !t->table || t->lacks)
        return t && t->options.kind == PARAMO_TABLE_USER ? wrong("it changes a table that has no rows")
                                                         : PARAMO_OK;
    if (!migration_target_gets_table(s->chain, t))
        return wrong("it changes a table that this shard already has");
    paramo_err err = apply_check_rows(t, &m->request, seg, nseg);
    const uint64_t *keys = m->request.count ? seg[WIRE_SEG_KEYS].data : NULL;
    if (!err && m->request.count)
        err = apply_check_order(t, keys, m->request.count);
    memcpy(partitions, m->partitions, sizeof partitions);
    for (size_t i = 0; i < m->request.count && !err; i++)
        partition_set_add(partitions, ring_partition(ring_position(&t->placement, keys[i])));
    for (unsigned a = 0; a < RING_PARTITIONS && !err; a++)
        if (partition_set_has(partitions, a) && !partition_set_has(k->partitions, a))
            err = wrong("it changes a partition that is not migrated");
    if (err || (m->request.kind != WIRE_CLEAR && clearing_touches(t, partitions)))
        return err;
    uint64_t pushes = t->pushes; /* the owner counts pushes */
    err = partial_apply(s, t, &m->request, seg, nseg, partitions);
    t->pushes = pushes;
    if (!err && m->request.kind == WIRE_CLEAR)
        shard_table_lose(t, partitions, false);
    *done = !err;
    return err == PARAMO_E_MEMORY ? PARAMO_OK : err;
}

paramo_err migration_target_frame(struct chain_source *source, const struct wire_head *head,
                                  const struct van_seg *seg, unsigned nseg)
{
    struct shard *s = source->shard;
    struct chain_message change;
    struct migration_message migration;
    bool is_migration = head->kind == WIRE_MIGRATION, done = false;
    assert(source->for_migration && source->acked == source->received && queue_empty(&source->waits));
    paramo_err err =
        is_migration ? migration_decode(head, seg, nseg, &migration) : chain_decode(head, seg, nseg, &change);
    if (err)
        return err;
    uint64_t seq = is_migration ? migration.seq : change.seq;
    uint64_t number = is_migration ? migration.view : change.view;
    if (seq <= source->received)
        return PARAMO_OK;
    if (seq == source->received + 1 && s->view && s->self >= 0 && number <= s->view->number &&
        !records_pending(s->chain))
        err = is_migration ? on_migration(source, &migration, &done)
                           : on_change(source, &change, seg, nseg, &done);
    if (err)
        return err;
    if (!done) {
        source->again = true; /* the next tick, order or view tells the source */
        return PARAMO_OK;
    }
    assert(seq == source->received + 1);
    source->received = source->acked = seq;
    if (s->chain->migration_target)
        s->chain->migration_target->heard_at = lane_now(s->lane);
    acks_soon(source);
    return PARAMO_OK;
}
