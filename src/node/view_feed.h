/*
 * Passes views from the control lane to the lanes that use them. It never knows what a lane does with a view.
 * Tests: test/node/test_joins.c.
 */
#ifndef NODE_VIEW_FEED_H
#define NODE_VIEW_FEED_H

#include <stdatomic.h>

#include "cluster/view/view.h"
#include "env/lane.h"

/* Passes the newest view to a state machine on another lane. Offers coalesce; no memory is allocated. */
struct view_feed {
    struct lane_task task;
    struct lane *lane;
    _Atomic(struct view *) pending;
    atomic_bool posted;
    void (*take_view)(void *target, struct view *view);
    void *target;
};

void view_feed_init(struct view_feed *feed, struct lane *lane, void (*take_view)(void *, struct view *),
                    void *target);
void view_feed_offer(struct view_feed *feed, struct view *view);
/* Call it when its lane has run the posted task. */
void view_feed_fini(struct view_feed *feed);

#endif
