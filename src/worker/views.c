#include "worker/views.h"

#include <assert.h>

#include "base/log.h"

enum { VIEW_AGAIN_MS = 100 }; /* arbitrary: short for a person */

/* A view that could not be taken is tried again, or was forgotten. Not while the timer fires. */
static void views_check(const struct client_views *v)
{
    assert(!v->missed == !v->timer.slot);
}

static void forget(struct client *c)
{
    lane_timer_cancel(c->lane, &c->views->timer);
    view_unref(c->views->missed);
    c->views->missed = NULL;
}

void views_missed(struct client *c, struct view *view)
{
    if (!c->views->missed)
        log_error("customer %u: cannot take view %llu yet: out of memory", c->config.customer,
                  (unsigned long long)view->number);
    if (!c->view)
        return; /* client_create fails */
    assert(view->number > c->view->number);
    c->views->asked = c->view->number;
    struct view *older = c->views->missed;
    c->views->missed = view_ref(view);
    view_unref(older);
    /* Without memory for the timer, the next request that needs the view asks for it, or the next that does not
     * reach its server. */
    c->views->forgotten =
        lane_timer_arm(c->lane, &c->views->timer, lane_now(c->lane) + VIEW_AGAIN_MS * ENV_MS) != PARAMO_OK;
    if (c->views->forgotten)
        forget(c);
    views_check(c->views);
}

static void again(struct lane_timer *timer)
{
    struct client *c = container_of(timer, struct client_views, timer)->client;
    assert(c->view && c->views->missed && c->views->missed->number > c->view->number);
    assert(!timer->slot && c->views->take);
    struct view *view = view_ref(c->views->missed);
    c->views->take(c, view);
    view_unref(view);
}

void views_taken(struct client *c)
{
    assert(c->view && c->view->number);
    c->views->partitions_changed = view_partitions_changed(c->view);
    c->views->forgotten = false;
    if (c->views->missed && c->views->missed->number <= c->view->number)
        forget(c);
    views_check(c->views);
}

void views_ask_forgotten(struct client *c)
{
    if (c->views->forgotten)
        views_ask(c, c->view->number + 1);
}

void views_ask(struct client *c, uint64_t need)
{
    if (need <= c->views->asked || need <= c->view->number)
        return;
    assert(!c->views->missed || c->views->missed->number > c->view->number);
    c->views->asked = need;
    if (c->config.need_view)
        c->config.need_view(c->config.arg, need);
}

void views_need_table(struct client *c, uint64_t since)
{
    if (since > c->views->table)
        c->views->table = since;
}

void views_init(struct client *c, void (*take)(struct client *c, struct view *view))
{
    *c->views = (struct client_views){.client = c, .take = take, .timer.fire = again};
}

void views_close(struct client *c)
{
    assert(client_is_down(c));
    forget(c);
    views_check(c->views);
}
