#include "cluster/scheduler/sched_view.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_save.h"
#include "cluster/session/control_message.h"

enum { AGAIN_MS = 100 }; /* arbitrary */

/* A change that is due has a number that no view had; the body is the announced one. */
static void view_check(const struct sched_view *view)
{
    assert(view->announced <= view->number && (!view->changed || view->announced < view->number));
    assert(!view->body == !view->announced);
    assert(view->tables || !view->tables_count);
}

/* Without memory the view stays due, and what depends on it waits. */
static void view_out(struct lane_timer *timer)
{
    struct scheduler *s = container_of(timer, struct sched_view, timer)->sched;
    view_check(s->view);
    assert(s->view->changed && s->view->number > s->view->announced);
    lane_timer_cancel(s->config.lane, timer);
    struct control_message_body *view = s->state == SCHED_OVER ? NULL : s->view->ops->build(s);
    s->view->changed = s->state != SCHED_OVER && !view;
    if (s->view->changed) {
        log_warn("scheduler: out of memory for the next view; changes of the cluster are announced later");
        if (lane_timer_arm(s->config.lane, timer, lane_now(s->config.lane) + AGAIN_MS * ENV_MS))
            return; /* the clock tries again */
    }
    if (!view)
        return;
    if (s->config.store)
        sched_save_view(s, view, s->view->number);
    else
        sched_view_announce(s, view, s->view->number);
}

bool sched_view_flush(struct scheduler *s)
{
    view_check(s->view);
    if (s->view->changed)
        view_out(&s->view->timer);
    return !s->view->changed;
}

void sched_view_retry(struct scheduler *s)
{
    view_check(s->view);
    if (s->view->changed && !s->view->timer.slot)
        view_out(&s->view->timer);
}

void sched_view_announce(struct scheduler *s, struct control_message_body *view, uint64_t number)
{
    view_check(s->view);
    assert(number >= s->view->announced && number <= s->view->number);
    control_message_body_unref(s->view->body);
    s->view->body = view;
    s->view->announced = number;
    s->view->ops->announced(s);
}

void sched_view_change(struct scheduler *s)
{
    view_check(s->view);
    if (s->view->changed || s->state != SCHED_RUNNING)
        return;
    s->view->changed = true;
    s->view->number++;
    assert(s->view->number > s->view->announced && s->view->number >> 32 >= s->term);
    s->view->timer.fire = view_out;
    if (lane_timer_arm(s->config.lane, &s->view->timer, lane_now(s->config.lane)))
        view_out(&s->view->timer);
}

uint64_t sched_view_next(const struct scheduler *s)
{
    return s->view->number + !s->view->changed;
}

void sched_view_raise(struct scheduler *s, uint64_t number)
{
    view_check(s->view);
    assert(number > s->view->number);
    s->view->number = number;
}

void sched_view_renumber(struct scheduler *s)
{
    view_check(s->view);
    if (s->view->changed) /* it was counted from the number before */
        s->view->number++;
    else
        sched_view_change(s);
    assert(s->view->changed && s->view->number > s->view->announced);
}

static void *copied(const void *from, size_t bytes)
{
    void *to = malloc(bytes ? bytes : 1);
    if (to && bytes)
        memcpy(to, from, bytes);
    return to;
}

paramo_err sched_view_take(struct scheduler *s, const struct view *view)
{
    assert(!s->view->body && !s->view->announced);
    view_check(s->view);
    if (s->view->tables)
        return err_set(PARAMO_E_CORRUPT, "it contains two views");
    /* see sched_announce_above(): servers must see that another scheduler leads */
    if (view->number > s->view->number)
        s->view->number = ((view->number >> 32) + 1) << 32;
    s->view->tables = copied(view->tables, view->tables_count * sizeof *s->view->tables);
    if (!s->view->tables)
        return err_memory(view->tables_count * sizeof *s->view->tables);
    s->view->tables_count = view->tables_count;
    return PARAMO_OK;
}

/* ---- tables -------------------------------------------------------------------------------------------- */

const struct view_table *sched_view_table_find(const struct scheduler *s, const char *name)
{
    for (uint32_t i = 0; i < s->view->tables_count; i++)
        if (strcmp(s->view->tables[i].name, name) == 0)
            return &s->view->tables[i];
    return NULL;
}

paramo_err sched_view_table_add(struct scheduler *s, const char *name, const paramo_table_options *options,
                                const struct view_table **out)
{
    assert(!sched_view_table_find(s, name));
    if (s->view->tables_count == VIEW_TABLES_MAX)
        return err_set(PARAMO_E_FULL, "the job already has %d tables, which is the limit", VIEW_TABLES_MAX);
    struct view_table *tables = realloc(s->view->tables, (s->view->tables_count + 1) * sizeof *tables);
    if (!tables)
        return err_memory((s->view->tables_count + 1) * sizeof *tables);
    s->view->tables = tables;
    struct view_table *table = &tables[s->view->tables_count++];
    *table =
        (struct view_table){.id = s->view->tables_count, .since = sched_view_next(s), .options = *options};
    memcpy(table->name, name, sizeof table->name);
    assert(table->since > s->view->announced); /* no view that a member has names it */
    *out = table;
    log_info("scheduler: table %s is number %" PRIu32, table->name, table->id);
    return PARAMO_OK;
}

/* ---- for other parts ----------------------------------------------------------------------------------- */

void sched_view_fini(struct scheduler *s)
{
    lane_timer_cancel(s->config.lane, &s->view->timer);
    control_message_body_unref(s->view->body);
    free(s->view->tables);
}

void sched_view_init(struct scheduler *s, const struct sched_view_ops *ops)
{
    assert(!s->view->number && s->term);
    assert(!s->view->body && !s->view->tables);
    s->view->ops = ops;
    s->view->number = (uint64_t)s->term << 32;
}

uint64_t sched_view_number(const struct scheduler *s)
{
    return s->view->number;
}

uint64_t sched_view_announced(const struct scheduler *s)
{
    return s->view->announced;
}

bool sched_view_is_due(const struct scheduler *s)
{
    return s->view->changed;
}

struct control_message_body *sched_view_body(const struct scheduler *s)
{
    return s->view->body;
}

const struct view_table *sched_view_table(const struct scheduler *s, uint32_t index)
{
    assert(!index || index < s->view->tables_count);
    return s->view->tables ? &s->view->tables[index] : NULL;
}

uint32_t sched_view_tables_count(const struct scheduler *s)
{
    return s->view->tables_count;
}
