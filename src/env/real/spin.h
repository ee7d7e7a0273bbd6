/*
 * Decides whether a thread polls before it sleeps. If cores are free, polling saves a wake-up. If they are busy, it
 * takes the processor from the thread that should answer. So the module tries both: it times windows of some sleeps
 * each, and keeps the cheaper way for a number of windows. The measure is the time between two sleeps for each frame
 * that was received. This module never knows lanes or the clock. One thread at a time. Tests: test/env/test_spin.c.
 *
 *   sleeping | polling | sleeping ... sleeping | polling | ...      the cheaper way, and trials of the other
 *   window     trial     SPIN_STAY_MIN windows   trial              the stay doubles with each trial that fails
 */
#ifndef ENV_REAL_SPIN_H
#define ENV_REAL_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#include "env/env.h"

#define SPIN_MIN_NS (8 * ENV_US)
#define SPIN_MAX_NS (60 * ENV_US)  /* a wake-up costs 45 us (measured, PERFORMANCE.md) */
#define SPIN_GAP_NS (40 * ENV_US)  /* between two polls: the thread was descheduled */
#define SPIN_LATE   (200 * ENV_US) /* more time between two sleeps is not counted: it has other causes */
enum {
    SPIN_WINDOW = 32,   /* sleeps that are timed together */
    SPIN_GAPS = 8,      /* polls of a window that find the thread descheduled: no core is free */
    SPIN_TRIES = 32,    /* while polls fail, one sleep in this number has a poll before it */
    SPIN_STAY_MIN = 8,  /* windows until the next trial */
    SPIN_STAY_MAX = 512 /* the same after many trials that failed */
};

struct spin {
    uint64_t budget;   /* ns to poll before sleeping */
    unsigned cooldown; /* sleeps before polling is tried again, within a window */
    bool polls;        /* in this window */
    bool better;       /* polling has been found the cheaper way */
    bool timing;       /* since `since` */
    unsigned gaps;     /* polls of this window during which the thread was descheduled */
    unsigned left;     /* sleeps left in this window */
    unsigned stay;     /* windows left until the other way is tried; 0: this window is that trial */
    unsigned stay_next;
    uint64_t since;
    uint64_t took;    /* ns in this window */
    uint64_t frames;  /* received before this window */
    uint64_t cost[2]; /* ns for a frame, when sleeping and when polling; 0: unknown */
};

void spin_init(struct spin *spin);
/* Before a sleep. frames: received since the start. Returns the ns to poll first; 0: none. */
uint64_t spin_begin(struct spin *spin, uint64_t now, uint64_t frames);
/* After the poll. came: something was handled; descheduled: another thread ran for long during the poll. Then polling
 * ends at once. */
void spin_end(struct spin *spin, bool came, bool descheduled);
/* What follows is not counted, up to the next spin_begin. */
void spin_pause(struct spin *spin, uint64_t now);

#endif
