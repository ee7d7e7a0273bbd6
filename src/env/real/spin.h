/*
 * Decides whether a thread polls before it sleeps. If cores are free, polling saves a wake-up. If they are busy, it
 * takes the processor from the thread that should answer. So the module tries both (base/two_ways.h): sleeping is the
 * first way, polling the second. A window has some sleeps. Its cost is the time between two sleeps for each frame
 * that was received. Polling must win by little only, because the other side of a connection gains more once this one
 * polls. This module never knows lanes or the clock. One thread at a time. Tests: test/env/test_spin.c.
 */
#ifndef ENV_REAL_SPIN_H
#define ENV_REAL_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/two_ways.h"
#include "env/env.h"

#define SPIN_MIN_NS (8 * ENV_US)
#define SPIN_MAX_NS (60 * ENV_US)  /* a wake-up costs 45 us (measured, PERFORMANCE.md) */
#define SPIN_GAP_NS (40 * ENV_US)  /* between two polls: the thread was descheduled */
#define SPIN_LATE   (200 * ENV_US) /* more time between two sleeps is not counted: it has other causes */
enum {
    SPIN_WINDOW = 32, /* sleeps that are timed together */
    SPIN_GAPS = 2,    /* polls of a window that find the thread descheduled: no core is free */
    SPIN_TRIES = 32   /* while polls fail, one sleep in this number has a poll before it */
};

struct spin {
    uint64_t budget;   /* ns to poll before sleeping */
    unsigned cooldown; /* sleeps before polling is tried again, within a window */
    struct two_ways ways;
    bool timing;   /* since `since` */
    unsigned gaps; /* polls of this window during which the thread was descheduled */
    unsigned left; /* sleeps left in this window */
    uint64_t since;
    uint64_t took;   /* ns in this window */
    uint64_t frames; /* received before this window */
};

void spin_init(struct spin *spin);
/* Before a sleep. frames: received since the start. Returns the ns to poll first; 0: none. */
uint64_t spin_begin(struct spin *spin, uint64_t now, uint64_t frames);
/* After the poll. came: something was handled; descheduled: another thread ran for long during the poll. Then polling
 * ends at once. */
void spin_end(struct spin *spin, bool came, bool descheduled);
/* The time from now to the next spin_begin is not counted. */
void spin_pause(struct spin *spin, uint64_t now);

#endif
