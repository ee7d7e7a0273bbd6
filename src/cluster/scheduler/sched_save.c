#include "cluster/scheduler/sched_save.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/session/control_message.h"

enum {
    AGAIN_MS = 100,
    /* how often a store is emptied again for which there was no memory: five seconds; arbitrary */
    EMPTY_TRIES = 50
};
/* How much longer than a whole save the log after it may be before all is saved whole again. */
#define MORE_BYTES ((size_t)1 << 20)

static bool due(const struct scheduler *s)
{
    const struct sched_saves *v = s->saves;
    return v->writing.on || v->dirty.count || v->all || v->view || v->end || v->proof || v->ops->due(s);
}

static void save_soon(struct scheduler *s, uint64_t ms);

/* At most one save is written or in progress, and no view is older than the one in it. */
static void saves_check(const struct sched_saves *v)
{
    assert(v->ended == v->begun || (v->ended + 1 == v->begun && !v->writing.on));
    assert(v->writing.on || !v->writing.timer.slot);
    assert(!v->view_flying || v->view_flying_number <= v->view_number);
}

void sched_save_proof(struct scheduler *s)
{
    saves_check(s->saves);
    if (!s->config.store || s->state == SCHED_OVER || s->saves->proof || store_sure(s->config.store))
        return;
    s->saves->proof = true;
    save_soon(s, 0);
}

/* An answer that changes nothing is true only while no other scheduler leads. */
uint64_t sched_save_due(struct scheduler *s)
{
    const struct sched_saves *v = s->saves;
    if (!s->config.store)
        return 0;
    sched_save_proof(s);
    return due(s) ? v->begun + 1 : v->ended < v->begun ? v->begun : 0;
}

/* ---- one save ------------------------------------------------------------------------------------------ */

static void save_begin(struct scheduler *s);

static void timer_due(struct lane_timer *timer)
{
    struct scheduler *s = container_of(timer, struct sched_saves, timer)->sched;
    saves_check(s->saves);
    assert(s->saves->timed);
    s->saves->timed = false;
    save_begin(s);
}

/* A save begins in the lane's next turn, so that the changes of this turn are one save. */
static void save_soon(struct scheduler *s, uint64_t ms)
{
    struct sched_saves *v = s->saves;
    saves_check(v);
    assert(s->config.store);
    if (s->state == SCHED_OVER || v->timed || v->writing.timer.slot || v->ended < v->begun)
        return; /* nothing is saved any more, the present save has it, or its end begins the next */
    v->timer.fire = timer_due;
    v->timed = lane_timer_arm(s->config.lane, &v->timer, lane_now(s->config.lane) + ms * ENV_MS) == PARAMO_OK;
    if (!v->timed)
        log_error("scheduler: cannot set the timer that saves its state: %s",
                  err_text()); /* the clock tries again */
}

/* How much of it reached the store is unknown: everything is saved whole until that succeeds. */
static void save_failed(struct scheduler *s, paramo_err status)
{
    struct sched_saves *v = s->saves;
    saves_check(v);
    assert(v->ended == v->begun && s->config.store && !v->writing.on);
    if (!v->failing)
        log_error(
            "scheduler: its state cannot be saved (%s: %s); no change is announced until a save succeeds",
            err_name(status), err_text());
    v->failing = v->all = true;
    v->proof = false; /* a save that succeeds is a proof, too */
    if (v->view_flying && !v->view) {
        v->view = v->view_flying;
        v->view_number = v->view_flying_number;
        v->view_flying = NULL;
    }
    control_message_body_unref(v->view_flying);
    v->view_flying = NULL;
    v->end = v->end || v->end_flying;
    v->end_flying = false;
    assert(v->all && !v->view_flying);
    save_soon(s, AGAIN_MS);
}

static void save_ended(void *arg, paramo_err status)
{
    struct scheduler *s = arg;
    struct sched_saves *v = s->saves;
    assert(v->ended + 1 == v->begun);
    saves_check(v);
    v->ended = v->begun;
    if (s->state == SCHED_OVER && !v->emptied)
        return; /* it came too late: the scheduler has given it up, and left */
    if (status == PARAMO_E_FENCED) {
        v->ops->fenced(s);
        return;
    }
    if (status) {
        /* the next save has these changes: calls that wait for this number wait for that save */
        save_failed(s, status);
        return;
    }
    if (v->failing)
        log_warn("scheduler: its state is saved again");
    v->failing = false;
    struct control_message_body *view = v->view_flying;
    bool end = v->end_flying;
    v->view_flying = NULL;
    v->end_flying = false;
    v->end_saved = v->end_saved || end;
    if (view)
        v->ops->view_saved(s, view, v->view_flying_number);
    v->ops->saved(s, v->ended);
    if (end) /* after the answers: it ends the calls that wait for one */
        v->ops->end_saved(s);
    save_begin(s);
}

/* ---- written in turns ---- */

static size_t cost(size_t records, size_t bytes)
{
    return records + bytes / SCHED_SAVE_BYTES;
}

static void run_from_start(struct sched_save_run *run, enum sched_save_part part, enum sched_save_part end)
{
    assert(part <= end && end <= SAVE_PARTS);
    writer_fini(&run->w);
    map_fini(&run->dirty);
    *run = (struct sched_save_run){.part = part, .end = end};
}

/* Writes the next records, up to that cost; dirty: records that have changed since. True: all are written. */
static bool run_turn(const struct scheduler *s, struct sched_save_run *run, struct map *dirty, size_t most)
{
    const struct sched_save_ops *ops = s->saves->ops;
    size_t records = 0, from = run->w.len;
    assert(run->part <= run->end && run->end <= SAVE_PARTS);
    assert(ops && most);
    while (cost(records, run->w.len - from) < most) {
        uint64_t id;
        void *value;
        records++;
        if (run->part < run->end) {
            bool more = ops->write_next(s, run->part, &run->cursor, &run->w);
            records += run->cursor.cost;
            run->cursor.cost = 0;
            if (!more) {
                run->part++;
                run->cursor = (struct sched_save_cursor){0};
            }
        } else if (map_next(&run->dirty, &run->at, &id, &value)) {
            ops->write_record(s, id, &run->w);
        } else if (dirty->count) {
            map_fini(&run->dirty);
            run->dirty = *dirty;
            run->at = 0;
            map_init(dirty);
        } else {
            return true;
        }
    }
    return false;
}

/* Everything again: it is the same as if this save had not begun. */
static void write_from_start(struct sched_saves *v, bool whole)
{
    assert(v->writing.on && !v->writing.timer.slot);
    run_from_start(&v->writing.run, whole ? SAVE_CALLS : SAVE_PARTS, SAVE_PARTS);
    v->writing.whole = whole;
    if (whole) {
        map_fini(&v->dirty); /* all are written */
        v->all = false;
    }
}

static bool write_turn(struct scheduler *s, size_t most)
{
    struct sched_saves *v = s->saves;
    assert(v->writing.on && v->ended == v->begun);
    if (v->all)
        write_from_start(v, true);
    return run_turn(s, &v->writing.run, &v->dirty, most);
}

static void write_end(struct scheduler *s)
{
    struct sched_saves *v = s->saves;
    struct writer w = v->writing.run.w;
    bool whole = v->writing.whole;
    saves_check(v);
    assert(v->writing.on && v->ended == v->begun); /* one save at a time */
    assert(!v->view_flying && !v->end_flying);
    assert(!v->dirty.count && !v->all && v->writing.run.part == SAVE_PARTS);
    const struct sched_save_batch batch = {.whole = whole, .view = v->view, .end = v->end};
    v->ops->write_last(s, &batch, &w);
    assert(!whole || w.len || w.failed); /* only the end of the job saves nothing (sched_save_nothing) */
    v->writing.run.w = (struct writer){0};
    v->writing.on = false;
    map_fini(&v->writing.run.dirty);
    v->begun++;
    v->proof = false;
    v->view_flying = v->view;
    v->view_flying_number = v->view_number;
    v->view = NULL;
    v->end_flying = v->end;
    v->end = false;
    v->more_bytes = whole ? 0 : v->more_bytes + w.len;
    v->whole_bytes = whole ? w.len : v->whole_bytes;
    paramo_err err = store_save(s->config.store, &w, whole, save_ended, s);
    if (err)
        save_ended(s, err);
}

/* The view and the answers of a barrier are complete, or it is called again when they are. */
static void write_go_on(struct scheduler *s)
{
    struct sched_saves *v = s->saves;
    struct lane *lane = s->config.lane;
    saves_check(v);
    assert(v->writing.on && !v->writing.timer.slot);
    bool written = write_turn(s, v->most);
    if (!written && lane_timer_arm(lane, &v->writing.timer, lane_now(lane) + v->pause) == PARAMO_OK)
        return;
    if (!v->ops->flush(s))
        return;
    while (!write_turn(s, SIZE_MAX)) /* what flush has changed; or there is no memory for the timer */
        ;
    write_end(s);
}

static void turn_due(struct lane_timer *timer)
{
    write_go_on(container_of(timer, struct sched_saves, writing.timer)->sched);
}

static void write_stop(struct scheduler *s)
{
    struct sched_saves *v = s->saves;
    lane_timer_cancel(s->config.lane, &v->writing.timer);
    writer_fini(&v->writing.run.w);
    map_fini(&v->writing.run.dirty);
    v->writing.on = false;
    saves_check(v);
}

static void save_begin(struct scheduler *s)
{
    struct sched_saves *v = s->saves;
    saves_check(v);
    if (s->state == SCHED_OVER) {
        write_stop(s);
        return;
    }
    if (v->timed || v->ended < v->begun || v->writing.timer.slot)
        return;
    if (!v->writing.on) {
        if (!v->ops->flush(s) || !due(s))
            return; /* a view that waits for memory begins the save when it is built */
        v->writing.on = true;
        write_from_start(v, v->all || v->more_bytes > v->whole_bytes + MORE_BYTES);
    }
    write_go_on(s);
}

void sched_save_retry(struct scheduler *s)
{
    if (s->config.store)
        save_begin(s);
}

void sched_save_init(struct scheduler *s, const struct sched_save_ops *ops)
{
    s->saves->ops = ops;
    s->saves->most = SCHED_SAVE_TURN;
    s->saves->writing.timer.fire = turn_due;
}

/* ---- a checkpoint's copy ---- */

static void copy_check(const struct sched_save_copy *copy)
{
    assert(copy && copy->run.part <= copy->run.end && copy->run.end <= SAVE_PARTS);
    assert(copy->dirty.count <= SCHED_SAVE_DIRTY);
}

void sched_save_copy_begin(struct scheduler *s, struct sched_save_copy *copy)
{
    assert(!s->saves->copy);
    *copy = (struct sched_save_copy){.run = {.part = SAVE_VALUES, .end = SAVE_POOLS + 1}};
    s->saves->copy = copy;
}

bool sched_save_copy_turn(struct scheduler *s, bool all)
{
    struct sched_save_copy *copy = s->saves->copy;
    copy_check(copy);
    if (copy->again) {
        run_from_start(&copy->run, SAVE_VALUES, SAVE_POOLS + 1);
        map_fini(&copy->dirty);
        copy->again = false;
    }
    return run_turn(s, &copy->run, &copy->dirty, all ? SIZE_MAX : s->saves->most);
}

void sched_save_copy_end(struct scheduler *s)
{
    struct sched_save_copy *copy = s->saves->copy;
    copy_check(copy);
    map_fini(&copy->run.dirty);
    map_fini(&copy->dirty);
    s->saves->copy = NULL;
}

static void copy_changes(struct sched_save_copy *copy, enum record_kind kind, uint64_t id)
{
    static char there;
    if (kind < RECORD_VALUES || kind > RECORD_UNITS || copy->again)
        return;
    copy->again = copy->dirty.count >= SCHED_SAVE_DIRTY || map_put(&copy->dirty, id, &there);
}

/* ---- what is to be saved ------------------------------------------------------------------------------- */

void sched_save_record_changed(struct scheduler *s, enum record_kind kind, uint64_t key)
{
    static char there;
    struct sched_saves *v = s->saves;
    saves_check(v);
    assert(kind && key < UINT64_C(1) << 56);
    uint64_t id = (uint64_t)kind << 56 | key;
    if (v->copy)
        copy_changes(v->copy, kind, id);
    if (!s->config.store || v->all)
        return;
    if (v->dirty.count >= SCHED_SAVE_DIRTY || map_put(&v->dirty, id, &there))
        v->all = true;
    save_soon(s, 0);
}

void sched_save_all(struct scheduler *s)
{
    s->saves->all = s->config.store != NULL;
    saves_check(s->saves);
}

void sched_save_all_changed(struct scheduler *s)
{
    struct sched_saves *v = s->saves;
    saves_check(v);
    if (v->copy)
        v->copy->again = true;
    if (!s->config.store || v->all)
        return;
    v->all = true;
    save_soon(s, 0);
}

void sched_save_end_found(struct scheduler *s)
{
    assert(!s->saves->end && !s->saves->begun);
    s->saves->end_saved = true;
}

void sched_save_view(struct scheduler *s, struct control_message_body *view, uint64_t number)
{
    struct sched_saves *v = s->saves;
    saves_check(v);
    assert(number > v->view_number || !v->view);
    control_message_body_unref(v->view);
    v->view = view;
    v->view_number = number;
    assert(s->config.store);
    save_soon(s, 0);
}

void sched_save_end(struct scheduler *s)
{
    assert(s->state == SCHED_ENDING && s->config.store);
    saves_check(s->saves);
    s->saves->end = true;
    save_soon(s, 0);
}

/* ---- the end of the job -------------------------------------------------------------------------------- */

static void empty(struct scheduler *s);

static void empty_again(struct lane_timer *timer)
{
    empty(container_of(timer, struct sched_saves, timer)->sched);
}

/* Memory may be there in a moment. A store that is not emptied would give the next scheduler a job that is over. */
static bool may_empty_again(struct scheduler *s)
{
    struct sched_saves *v = s->saves;
    assert(s->state == SCHED_OVER && v->emptied && v->empty_tries <= EMPTY_TRIES);
    assert(!v->writing.on && !v->writing.timer.slot);
    struct lane *lane = s->config.lane;
    lane_timer_cancel(lane, &v->timer);
    v->timer.fire = empty_again;
    return v->empty_tries++ < EMPTY_TRIES &&
           !lane_timer_arm(lane, &v->timer, lane_now(lane) + AGAIN_MS * ENV_MS);
}

static void nothing_saved(void *arg, paramo_err status)
{
    struct scheduler *s = arg;
    void (*emptied)(struct scheduler * s, paramo_err status) = s->saves->emptied;
    assert(s->state == SCHED_OVER && !s->saves->writing.on);
    if (!emptied)
        return; /* sched_save_abandon */
    char why[ERR_TEXT_MAX];
    err_text_copy(why);
    if (status == PARAMO_E_MEMORY && may_empty_again(s))
        return;
    if (status)
        (void)err_set(status, "%s", why);
    s->saves->end_saved = s->saves->end_saved || !status;
    s->saves->emptied = NULL;
    emptied(s, status);
}

static void empty(struct scheduler *s)
{
    assert(s->state == SCHED_OVER && s->saves->emptied && !s->saves->writing.on);
    struct writer none = {0};
    paramo_err err = store_save(s->config.store, &none, true, nothing_saved, s);
    if (err)
        nothing_saved(s, err);
}

void sched_save_nothing(struct scheduler *s, void (*done)(struct scheduler *s, paramo_err status))
{
    assert(s->state == SCHED_OVER && !s->saves->emptied);
    saves_check(s->saves);
    write_stop(s);
    s->saves->emptied = done;
    empty(s);
}

void sched_save_abandon(struct scheduler *s)
{
    struct sched_saves *v = s->saves;
    assert(s->state == SCHED_OVER && v->emptied);
    saves_check(v);
    lane_timer_cancel(s->config.lane, &v->timer);
    v->emptied = NULL;
}

bool sched_save_is_emptying(const struct scheduler *s)
{
    assert(!s->saves->emptied || s->state == SCHED_OVER);
    return s->saves->emptied;
}

void sched_save_fini(struct scheduler *s)
{
    struct sched_saves *v = s->saves;
    saves_check(v);
    lane_timer_cancel(s->config.lane, &v->timer);
    write_stop(s);
    control_message_body_unref(v->view);
    control_message_body_unref(v->view_flying);
    map_fini(&v->dirty);
    store_close(s->config.store);
    s->config.store = NULL;
}
