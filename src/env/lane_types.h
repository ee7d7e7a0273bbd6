/*
 * What callers hand a lane (lane.h): tasks, timers, descriptors, the hook of a transport. They own the memory.
 * This module never knows what a lane is made of. Tests: test/env/test_lane.c.
 */
#ifndef ENV_LANE_TYPES_H
#define ENV_LANE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/queue.h"
#include "env/env.h"

/* A task runs once per post. The poster owns its memory and may reuse it as soon as run is called. It
 * must not be posted again before that. */
struct lane_task {
    struct qnode node;
    void (*run)(struct lane_task *task);
};

/* Zero-initialised: not armed. */
struct lane_timer {
    uint64_t at;
    uint64_t seq; /* order of arming */
    size_t slot;  /* position in the lane's heap from 1; 0: not armed */
    void (*fire)(struct lane_timer *timer);
};

/* A descriptor; real environments only. events are EPOLLIN, EPOLLOUT ... (level-triggered). */
struct lane_source {
    int fd;
    uint32_t events;
    void (*ready)(struct lane_source *source, uint32_t events);
    bool dead;  /* not on the poller; if it was removed in this round, its pending event is dropped */
    bool quiet; /* only wakes the lane: the hook counts the work that it finds */
    struct qnode node;
};

/* A hook is called in every round, for a transport that must be polled because a descriptor alone does
 * not show its events. Real environments only; one hook per lane. Both functions are called on the lane.
 * docs/THREADS.md says why no wake-up is lost. */
struct lane_hook {
    /* Once a round, after the descriptors; true if something was handled. */
    bool (*progress)(struct lane_hook *hook);
    /* Called before the lane's driver sleeps. True: each later event makes one of the lane's quiet
     * sources ready, or is covered by a timer of the lane. False: the driver makes another round first. */
    bool (*arm)(struct lane_hook *hook);
};

enum lane_flags {
    /* its thread never runs steps of other lanes (the control lane: heartbeats must leave on time) */
    LANE_NO_BORROW = 1,
    LANE_NO_SPIN = 2 /* never polls before it sleeps */
};

#endif
