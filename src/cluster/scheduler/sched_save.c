#include "cluster/scheduler/sched_save.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"

enum { AGAIN_MS = 100 };
/* What follows a whole save may be so much longer than that was before everything is saved whole again. */
#define MORE_BYTES ((size_t)1 << 20)

static bool due(const struct scheduler *s)
{
    const struct sched_saves *v = &s->saves;
    return v->dirty.count || v->all || v->view || v->end || v->proof || sched_view_is_due(s);
}

static void save_soon(struct scheduler *s, uint64_t ms);

void sched_save_proof(struct scheduler *s)
{
    if (!s->config.store || s->state == SCHED_OVER || s->saves.proof || store_sure(s->config.store))
        return;
    s->saves.proof = true;
    save_soon(s, 0);
}

/* What an answer says that changes nothing is true only while nobody else leads. */
uint64_t sched_save_due(struct scheduler *s)
{
    const struct sched_saves *v = &s->saves;
    if (!s->config.store)
        return 0;
    sched_save_proof(s);
    return due(s) ? v->begun + 1 : v->ended < v->begun ? v->begun : 0;
}

/* ---- one save ------------------------------------------------------------------------------------------ */

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
    case RECORD_RESTORING:
        if (sched_ckpt_restoring(s))
            write_u8(w, 1);
        break;
    default:
        sched_pool_record(s, kind, key, w);
    }
    store_record_end(w, mark);
}

static void single_records_write(const struct scheduler *s, bool whole, struct writer *w)
{
    const struct sched_saves *v = &s->saves;
    const struct control_message_body *view = v->view ? v->view : whole ? sched_view_body(s) : NULL;
    size_t mark;
    if (view) {
        sched_save_record_begin(w, RECORD_VIEW, 0, &mark);
        write_u32(w, sched_roster_slots(s, SLOTS_SERVERS)->founders);
        write_u32(w, sched_roster_slots(s, SLOTS_WORKERS)->founders);
        control_message_body_write(view, w);
        store_record_end(w, mark);
    }
    if (whole && sched_ckpt_restoring(s)) {
        sched_save_record_begin(w, RECORD_RESTORING, 0, &mark);
        write_u8(w, 1);
        store_record_end(w, mark);
    }
    if (v->end || (whole && s->state == SCHED_ENDING)) {
        sched_save_record_begin(w, RECORD_END, 0, &mark);
        sched_end_write(s, w);
        store_record_end(w, mark);
    }
}

static void records_write(const struct scheduler *s, bool whole, struct writer *w)
{
    single_records_write(s, whole, w);
    if (whole) {
        sched_calls_records(s, w);
        sched_barrier_records(s, w);
        sched_kv_records(s, w);
        sched_pool_records(s, w);
        return;
    }
    uint64_t id;
    void *value;
    for (size_t i = 0; map_next(&s->saves.dirty, &i, &id, &value);)
        record_write(s, id, w);
}

static void save_begin(struct scheduler *s);

static void timer_due(struct lane_timer *timer)
{
    struct scheduler *s = container_of(timer, struct scheduler, saves.timer);
    s->saves.timed = false;
    save_begin(s);
}

/* A save begins in a moment, for several changes of one moment are one. */
static void save_soon(struct scheduler *s, uint64_t ms)
{
    struct sched_saves *v = &s->saves;
    if (v->timed || v->ended < v->begun)
        return; /* its end begins the next */
    v->timer.fire = timer_due;
    v->timed = lane_timer_arm(s->config.lane, &v->timer, lane_now(s->config.lane) + ms * ENV_MS) == PARAMO_OK;
    if (!v->timed)
        log_error("scheduler: its state waits to be saved: %s", err_text()); /* the next change tries again */
}

/* Nobody knows what of it is there: everything is saved anew, until that succeeds. */
static void save_failed(struct scheduler *s, paramo_err status)
{
    struct sched_saves *v = &s->saves;
    if (!v->failing)
        log_error("scheduler: its state cannot be saved (%s: %s); members wait for what changes until it can",
                  err_name(status), err_text());
    v->failing = v->all = true;
    v->proof = false; /* a save that comes back well is one */
    if (v->view_flying && !v->view) {
        v->view = v->view_flying;
        v->view_number = v->view_flying_number;
        v->view_flying = NULL;
    }
    control_message_body_unref(v->view_flying);
    v->view_flying = NULL;
    v->end = v->end || v->end_flying;
    v->end_flying = false;
    save_soon(s, AGAIN_MS);
}

static void save_ended(void *arg, paramo_err status)
{
    struct scheduler *s = arg;
    struct sched_saves *v = &s->saves;
    v->ended = v->begun;
    if (status == PARAMO_E_FENCED) {
        sched_end_deposed(s);
        return;
    }
    if (status) {
        v->begun--; /* what waits for it waits for the next of this number */
        v->ended--;
        save_failed(s, status);
        return;
    }
    if (v->failing)
        log_warn("scheduler: its state is saved again");
    v->failing = false;
    struct control_message_body *view = v->view_flying;
    v->view_flying = NULL;
    if (view)
        sched_view_announce(s, view, v->view_flying_number);
    if (v->end_flying) {
        v->end_saved = true;
        sched_end_tell(s);
    }
    v->end_flying = false;
    sched_calls_saved(s, v->ended);
    sched_migrations_drain_saved(s, v->ended);
    save_begin(s);
}

static void save_begin(struct scheduler *s)
{
    struct sched_saves *v = &s->saves;
    if (v->timed || v->ended < v->begun || s->state == SCHED_OVER)
        return;
    sched_view_flush(s);
    if (!due(s))
        return;
    bool whole = v->all || v->more_bytes > v->whole_bytes + MORE_BYTES;
    struct writer w = {0};
    records_write(s, whole, &w);
    v->begun++;
    v->all = v->proof = false;
    v->view_flying = v->view;
    v->view_flying_number = v->view_number;
    v->view = NULL;
    v->end_flying = v->end;
    v->end = false;
    map_fini(&v->dirty);
    map_init(&v->dirty);
    v->more_bytes = whole ? 0 : v->more_bytes + w.len;
    v->whole_bytes = whole ? w.len : v->whole_bytes;
    paramo_err err = store_save(s->config.store, &w, whole, save_ended, s);
    if (err)
        save_ended(s, err);
}

/* ---- what is to be saved ------------------------------------------------------------------------------- */

void sched_save_record_changed(struct scheduler *s, enum record_kind kind, uint64_t key)
{
    static char there;
    struct sched_saves *v = &s->saves;
    if (!s->config.store || v->all)
        return;
    if (map_put(&v->dirty, (uint64_t)kind << 56 | key, &there))
        v->all = true;
    save_soon(s, 0);
}

void sched_save_view(struct scheduler *s, struct control_message_body *view, uint64_t number)
{
    struct sched_saves *v = &s->saves;
    if (MUTANT(view_before_durable))
        sched_view_announce(s, control_message_body_ref(view), number);
    control_message_body_unref(v->view);
    v->view = view;
    v->view_number = number;
    save_soon(s, 0);
}

void sched_save_end(struct scheduler *s)
{
    s->saves.end = true;
    save_soon(s, 0);
}

/* ---- the end of the job -------------------------------------------------------------------------------- */

/* An end that was never durable is none when another leads: the job goes on there. */
static void nothing_saved(void *arg, paramo_err status)
{
    struct scheduler *s = arg;
    if (status == PARAMO_E_FENCED && !s->saves.end_saved) {
        log_info("scheduler: %s", err_text());
        sched_end_fenced(s);
    } else if (status) {
        log_error("scheduler: the job is over, and its store does not know: %s", err_text());
    }
    s->saves.emptied(s);
}

void sched_save_nothing(struct scheduler *s, void (*done)(struct scheduler *s))
{
    struct writer none = {0};
    s->saves.emptied = done;
    paramo_err err = store_save(s->config.store, &none, true, nothing_saved, s);
    if (err)
        nothing_saved(s, err);
}

/* ---- back ---------------------------------------------------------------------------------------------- */

static paramo_err record_restore(struct scheduler *s, uint64_t id, struct reader record)
{
    uint64_t key = id & (UINT64_MAX >> 8);
    paramo_err err;
    switch ((enum record_kind)(id >> 56)) {
    case RECORD_VIEW:
        return sched_view_restore(s, &record);
    case RECORD_END:
        err = sched_end_restore(s, &record);
        s->saves.end_saved = !err;
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
        sched_ckpt_restoring_found(s);
        return PARAMO_OK;
    case RECORD_UNASKED:
        break;
    }
    return err_set(PARAMO_E_FORMAT, "a durable record of an unknown kind");
}

/* The newest of each id, found by its place. */
static paramo_err records_find(const uint8_t *from, size_t bytes, struct map *newest)
{
    struct reader records = reader_over(from, bytes), record;
    uint64_t id;
    for (const uint8_t *at = records.at; store_record_next(&records, &id, &record); at = records.at)
        if (map_put(newest, id, (void *)(uintptr_t)(1 + (size_t)(at - from))))
            return err_memory(bytes);
    return reader_done(&records) ? PARAMO_OK : err_set(PARAMO_E_CORRUPT, "its durable records do not fit");
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
    if (!err)
        sched_pool_restored(s);
    return err;
}

paramo_err sched_save_restore(struct scheduler *s)
{
    const struct store_state *found = s->config.found;
    struct map newest;
    map_init(&newest);
    paramo_err err = records_find(found->records, found->bytes, &newest);
    uint64_t view = (uint64_t)RECORD_VIEW << 56;
    /* Without a view there was nobody who knew anything of it. */
    if (!err && map_get(&newest, view))
        err = records_restore(s, found->records, found->bytes, &newest, RECORD_VIEW, RECORD_RESTORING);
    s->saves.all = true; /* what is not needed any more goes */
    map_fini(&newest);
    return err;
}

void sched_save_extra(const struct scheduler *s, struct writer *w)
{
    if (MUTANT(ckpt_without_pools))
        return;
    sched_kv_records(s, w);
    sched_pool_records(s, w);
}

paramo_err sched_save_restore_extra(struct scheduler *s, const uint8_t *records, size_t bytes)
{
    struct map newest;
    map_init(&newest);
    paramo_err err = records_find(records, bytes, &newest);
    if (!err) {
        sched_pool_fini(s); /* of an attempt that a scheduler before has not ended */
        sched_kv_fini(s);
        err = records_restore(s, records, bytes, &newest, RECORD_VALUES, RECORD_UNITS);
    }
    s->saves.all = s->config.store != NULL;
    map_fini(&newest);
    return err;
}

void sched_save_fini(struct scheduler *s)
{
    struct sched_saves *v = &s->saves;
    lane_timer_cancel(s->config.lane, &v->timer);
    control_message_body_unref(v->view);
    control_message_body_unref(v->view_flying);
    map_fini(&v->dirty);
    store_close(s->config.store);
    s->config.store = NULL;
}
