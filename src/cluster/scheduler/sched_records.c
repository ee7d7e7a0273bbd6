#include "cluster/scheduler/sched_records.h"

#include <assert.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_barrier.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_clock.h"
#include "cluster/scheduler/sched_drain.h"
#include "cluster/scheduler/sched_end.h"
#include "cluster/scheduler/sched_kv.h"
#include "cluster/scheduler/sched_pool.h"
#include "cluster/scheduler/sched_pool_records.h"
#include "cluster/scheduler/sched_resume.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_save.h"
#include "cluster/scheduler/sched_view.h"
#include "cluster/session/control_message.h"

/* ---- written ------------------------------------------------------------------------------------------- */

static void record_write(const struct scheduler *s, uint64_t id, struct writer *w)
{
    enum record_kind kind = (enum record_kind)(id >> 56);
    uint64_t key = id & (UINT64_MAX >> 8);
    size_t mark;
    sched_save_record_begin(w, kind, key, &mark);
    switch (kind) {
    case RECORD_CALL:
        sched_calls_record(s, key, w);
        break;
    case RECORD_BARRIER:
        sched_barrier_record(s, key, w);
        break;
    case RECORD_VALUES:
        sched_kv_record(s, key, w);
        break;
    case RECORD_CLOCK:
        sched_clock_record(s, key, w);
        break;
    case RECORD_RESTORING:
        if (s->restoring)
            write_u8(w, 1);
        break;
    default:
        sched_pool_record(s, kind, key, w);
    }
    store_record_end(w, mark);
}

/* A job that has no records yet: a whole save without any would say that it is over, and standby schedulers
 * would end. This record says that there is nothing to restore, as its absence does. */
static void no_records_write(struct writer *w)
{
    size_t mark;
    sched_save_record_begin(w, RECORD_RESTORING, 0, &mark);
    store_record_end(w, mark);
}

static void write_last(const struct scheduler *s, const struct sched_save_batch *batch, struct writer *w)
{
    const struct control_message_body *view = batch->view    ? batch->view
                                              : batch->whole ? sched_view_body(s)
                                                             : NULL;
    size_t mark;
    assert(!batch->end || s->state >= SCHED_ENDING);
    if (view) {
        sched_save_record_begin(w, RECORD_VIEW, 0, &mark);
        write_u32(w, sched_roster_slots(s, SLOTS_SERVERS)->founders);
        write_u32(w, sched_roster_slots(s, SLOTS_WORKERS)->founders);
        control_message_body_write(view, w);
        store_record_end(w, mark);
    }
    if (batch->whole && s->restoring) {
        sched_save_record_begin(w, RECORD_RESTORING, 0, &mark);
        write_u8(w, 1);
        store_record_end(w, mark);
    }
    if (batch->end || (batch->whole && s->state == SCHED_ENDING)) {
        sched_save_record_begin(w, RECORD_END, 0, &mark);
        sched_end_write(s, w);
        store_record_end(w, mark);
    }
    if (batch->whole && !w->len)
        no_records_write(w);
}

static bool write_next(const struct scheduler *s, enum sched_save_part part, struct sched_save_cursor *cursor,
                       struct writer *w)
{
    switch (part) {
    case SAVE_CALLS:
        return sched_calls_next_records(s, cursor, w);
    case SAVE_BARRIERS:
        return sched_barrier_next_records(s, cursor, w);
    case SAVE_VALUES:
        return sched_kv_next_records(s, cursor, w);
    case SAVE_POOLS:
        return sched_pool_next_records(s, cursor, w);
    case SAVE_CLOCKS:
        return sched_clock_next_records(s, cursor, w);
    case SAVE_PARTS:
        break;
    }
    return false;
}

/* A barrier's number and the answers to its calls are durable together, or its callers would enter the next one. */
static bool flush(struct scheduler *s)
{
    return !sched_calls_hold_save(s) && sched_view_flush(s);
}

/* ---- saved --------------------------------------------------------------------------------------------- */

static void saved(struct scheduler *s, uint64_t save)
{
    assert(s->saves->ended == save);
    sched_calls_saved(s, save);
    sched_drain_saved(s, save);
}

const struct sched_save_ops sched_records_ops = {.due = sched_view_is_due,
                                                 .flush = flush,
                                                 .write_next = write_next,
                                                 .write_record = record_write,
                                                 .write_last = write_last,
                                                 .view_saved = sched_view_announce,
                                                 .end_saved = sched_end_tell,
                                                 .saved = saved,
                                                 .fenced = sched_end_fenced};

/* ---- restored ------------------------------------------------------------------------------------------ */

static paramo_err record_restore(struct scheduler *s, uint64_t id, struct reader record)
{
    uint64_t key = id & (UINT64_MAX >> 8);
    paramo_err err;
    switch ((enum record_kind)(id >> 56)) {
    case RECORD_VIEW:
        return sched_resume_view(s, &record);
    case RECORD_END:
        err = sched_end_restore(s, &record);
        if (!err)
            sched_save_end_found(s);
        return err;
    case RECORD_CALL:
        return sched_calls_restore(s, key, &record);
    case RECORD_BARRIER:
        return sched_barrier_restore(s, key, &record);
    case RECORD_VALUES:
        return sched_kv_restore(s, &record);
    case RECORD_POOL:
    case RECORD_OWNERS:
    case RECORD_UNITS:
        return sched_pool_restore(s, (enum record_kind)(id >> 56), key, &record);
    case RECORD_RESTORING:
        s->restoring = true;
        return PARAMO_OK;
    case RECORD_CLOCK:
        return sched_clock_restore(s, key, &record);
    case RECORD_UNASKED:
        break;
    }
    return err_set(PARAMO_E_FORMAT, "a durable record has an unknown kind");
}

/* Finds the newest record of each id, by its place. */
static paramo_err records_find(const uint8_t *from, size_t bytes, struct map *newest)
{
    struct reader records = reader_over(from, bytes), record;
    uint64_t id;
    for (const uint8_t *at = records.at; store_record_next(&records, &id, &record); at = records.at)
        if (map_put(newest, id, (void *)(uintptr_t)(1 + (size_t)(at - from))))
            return err_memory(bytes);
    return reader_done(&records) ? PARAMO_OK : err_set(PARAMO_E_CORRUPT, "its durable records are malformed");
}

static paramo_err records_restore(struct scheduler *s, const uint8_t *from, size_t bytes,
                                  const struct map *newest, uint64_t first, uint64_t last)
{
    paramo_err err = PARAMO_OK;
    for (uint64_t kind = first; kind <= last && !err; kind++) {
        uint64_t id;
        void *value;
        for (size_t i = 0; !err && map_next(newest, &i, &id, &value);) {
            size_t at = (uintptr_t)value - 1;
            struct reader records = reader_over(from + at, bytes - at), record;
            if (id >> 56 == kind && store_record_next(&records, &id, &record) && record.left)
                err = record_restore(s, id, record);
        }
    }
    if (!err) {
        sched_pool_restored(s);
        sched_clock_restored(s);
    }
    return err;
}

paramo_err sched_records_restore(struct scheduler *s)
{
    const struct store_state *found = s->config.found;
    assert(s->state == SCHED_GATHERING && s->config.store);
    struct map newest;
    map_init(&newest);
    paramo_err err = records_find(found->records, found->bytes, &newest);
    uint64_t view = (uint64_t)RECORD_VIEW << 56, end = (uint64_t)RECORD_END << 56;
    /* Without a view no node has a place in that job; but nodes that waited for one may have been told of its end. */
    if (!err && map_get(&newest, view))
        err = records_restore(s, found->records, found->bytes, &newest, RECORD_VIEW, RECORD_CLOCK);
    else if (!err && map_get(&newest, end))
        err = records_restore(s, found->records, found->bytes, &newest, RECORD_END, RECORD_END);
    sched_save_all(s); /* obsolete records go */
    map_fini(&newest);
    return err;
}

paramo_err sched_records_restore_extra(struct scheduler *s, const uint8_t *records, size_t bytes)
{
    struct map newest;
    map_init(&newest);
    paramo_err err = records_find(records, bytes, &newest);
    if (!err) {
        sched_pool_fini(s); /* left by an attempt that an earlier scheduler did not finish */
        sched_kv_fini(s);
        err = records_restore(s, records, bytes, &newest, RECORD_VALUES, RECORD_UNITS);
    }
    if (err) { /* nothing is kept half */
        sched_pool_fini(s);
        sched_kv_fini(s);
    }
    sched_save_all(s);
    map_fini(&newest);
    return err;
}
