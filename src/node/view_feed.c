#include "node/view_feed.h"

#include <assert.h>

static void feed_run(struct lane_task *task)
{
    struct view_feed *feed = container_of(task, struct view_feed, task);
    assert(lane_held(feed->lane));
    assert(atomic_load(&feed->posted));
    atomic_store(&feed->posted, false);
    struct view *view = atomic_exchange(&feed->pending, NULL);
    if (view) {
        feed->take_view(feed->target, view);
        view_unref(view);
    }
}

void view_feed_init(struct view_feed *feed, struct lane *lane, void (*take_view)(void *, struct view *),
                    void *target)
{
    assert(lane && take_view);
    *feed = (struct view_feed){.task.run = feed_run, .lane = lane, .take_view = take_view, .target = target};
}

void view_feed_offer(struct view_feed *feed, struct view *view)
{
    assert(feed->take_view && feed->lane && view);
    view_unref(atomic_exchange(&feed->pending, view_ref(view)));
    if (!atomic_exchange(&feed->posted, true))
        lane_post(feed->lane, &feed->task);
}

void view_feed_fini(struct view_feed *feed)
{
    view_unref(atomic_exchange(&feed->pending, NULL));
}
