/*
 * Finds by trial which of two ways is the cheaper one. Time is cut into windows. The owner goes one way within a
 * window, and reports what the window has cost for each thing done. The module keeps the cheaper way for a number of
 * windows. Then it tries the other way for one window. The next trial comes after twice as many windows if this one
 * fails. The first way is taken while nothing is known. The second way must win by one part in 32, because it takes
 * what the cost does not show, such as processor time. Pure; one owner. Tests: test/base/test_two_ways.c.
 *
 *   first way | second way | first way ... first way | second way | ...   windows, and trials of the other way
 *   window      trial        TWO_WAYS_STAY_MIN windows trial              the stay doubles with each trial that fails
 */
#ifndef BASE_TWO_WAYS_H
#define BASE_TWO_WAYS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TWO_WAYS_STAY_MIN = 8,  /* windows until the next trial */
    TWO_WAYS_STAY_MAX = 512 /* the same after many trials that failed */
};

struct two_ways {
    bool second;   /* the way of this window */
    bool better;   /* the second way has been found the cheaper one */
    unsigned stay; /* windows left until the other way is tried; 0: this window is that trial */
    unsigned stay_next;
    uint64_t cost[2]; /* of the first and of the second way; 0: unknown */
};

void two_ways_init(struct two_ways *t);
/* A window has ended. cost: above 0, in any unit; 0: nothing was done, and nothing is known of either way. */
void two_ways_window(struct two_ways *t, uint64_t cost);
/* The second way cannot be used now. */
void two_ways_fail(struct two_ways *t);

#endif
