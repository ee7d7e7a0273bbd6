#include "server/shard/adopting.h"

#include <assert.h>
#include <string.h>

#include "cluster/view/view.h"
#include "ring/chains.h"
#include "server/shard/clearing.h"
#include "server/shard/shard_tables.h"

enum { TURN_TABLES = 32 }; /* 0.2 to 2 ms (bench/steps.sh) */

const struct view_node *adopting_node(const struct shard *s, const struct view *view)
{
    for (uint32_t i = 0; i < view->nodes_count; i++)
        if (view->nodes[i].incarnation == s->config.incarnation &&
            (s->config.app_endpoint || view->nodes[i].role == PARAMO_ROLE_SERVER))
            return &view->nodes[i];
    return NULL;
}

int adopting_index(const struct shard *s, const struct view *view)
{
    const struct view_node *node = adopting_node(s, view);
    return node && node->alive ? view_shard_index(view, node->id, s->config.index) : -1;
}

static bool has(const struct shard *s, uint32_t id)
{
    return shard_table_get(s, id) || map_get(&s->adopting->tables, id);
}

static paramo_err make(struct shard *s, const struct view_table *from, size_t *room)
{
    struct shard_table *t;
    paramo_err err =
        shard_table_prepare(s, from, s->adopting->view, s->adopting->self, s->adopting->runs, room, &t);
    if (err)
        return err;
    assert(!has(s, t->id));
    err = map_put(&s->adopting->tables, t->id, t);
    if (err)
        shard_table_free(t);
    return err;
}

/* Makes some of the tables that are missing. True: no more are, or there is no memory. */
static bool turn(struct shard *s)
{
    const struct view *view = s->adopting->view;
    assert(s->adopting->at <= view->tables_count);
    assert(!s->view || view->number > s->view->number);
    size_t few = s->config.turn_tables, left = few ? few : TURN_TABLES, room = clearing_room(s);
    for (; s->adopting->at < view->tables_count && !s->config.app_endpoint; s->adopting->at++) {
        const struct view_table *from = &view->tables[s->adopting->at];
        if (has(s, from->id))
            continue;
        if (!left--)
            return false;
        if (make(s, from, &room))
            break;
    }
    return true;
}

static void tasks_post(struct shard *s)
{
    assert(!s->adopting->view); /* nothing waits for it any more */
    for (struct qnode *node; (node = queue_pop(&s->adopting->tasks));)
        lane_post(s->lane, container_of(node, struct lane_task, node));
}

static void go_on(struct shard *s)
{
    struct view *view = s->adopting->view;
    if (!turn(s) && lane_timer_arm(s->lane, &s->adopting->timer,
                                   lane_now(s->lane) + (s->config.turn_tables ? ENV_MS : 0)) == PARAMO_OK)
        return;
    assert(view && (!s->view || view->number > s->view->number) && !s->adopting->timer.slot);
    assert(s->config.app_endpoint || s->adopting->at <= view->tables_count);
    s->adopting->view = NULL;
    s->adopting->adopt(s, view);
    view_unref(view);
    tasks_post(s);
}

static void next_fire(struct lane_timer *timer)
{
    assert(container_of(timer, struct shard_adopting, timer)->view);
    go_on(container_of(timer, struct shard_adopting, timer)->shard);
}

void adopting_init(struct shard *s, void (*adopt)(struct shard *s, struct view *view))
{
    assert(!s->adopting->view && queue_empty(&s->adopting->tasks));
    assert(!s->adopting->timer.slot);
    s->adopting->shard = s;
    s->adopting->adopt = adopt;
    map_init(&s->adopting->tables);
    s->adopting->timer.fire = next_fire;
}

void adopting_begin(struct shard *s, struct view *view)
{
    bool waits = s->adopting->view != NULL;
    if (waits && view->number <= s->adopting->view->number)
        return;
    assert(!s->adopting->view || !s->view || s->adopting->view->number > s->view->number);
    view_unref(s->adopting->view);
    s->adopting->view = view_ref(view);
    s->adopting->self = adopting_index(s, view);
    memset(s->adopting->runs, 0, sizeof s->adopting->runs);
    ring_begins(&view->chains, s->adopting->runs);
    s->adopting->at = 0;
    assert(!waits || s->adopting->timer.slot); /* it waits for its next turn */
    if (!waits)
        go_on(s);
}

bool adopting_defers(struct shard *s, struct lane_task *task)
{
    if (s->adopting->view)
        queue_push(&s->adopting->tasks, &task->node);
    return s->adopting->view != NULL;
}

struct shard_table *adopting_take_table(struct shard *s, uint32_t id)
{
    return map_remove(&s->adopting->tables, id);
}

void adopting_close(struct shard *s)
{
    uint64_t id;
    void *t;
    lane_timer_cancel(s->lane, &s->adopting->timer);
    view_unref(s->adopting->view);
    s->adopting->view = NULL;
    tasks_post(s);
    assert(queue_empty(&s->adopting->tasks));
    assert(!s->adopting->view && !s->adopting->timer.slot);
    for (size_t i = 0; map_next(&s->adopting->tables, &i, &id, &t);)
        shard_table_free(t);
    map_fini(&s->adopting->tables);
}
