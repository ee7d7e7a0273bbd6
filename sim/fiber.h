/*
 * A fiber: a function with a stack of its own. It gives the thread back whenever it waits, so code that
 * blocks (an application that saves a table) can play among the events of a simulation. It never knows what
 * it runs. Tests: test/sim/test_fiber.c.
 */
#ifndef SIM_FIBER_H
#define SIM_FIBER_H

#include <stdbool.h>

struct fiber;

/* Runs fn(arg) at the first resume. Aborts without memory. */
struct fiber *fiber_new(void (*fn)(void *arg), void *arg);
/* Runs it until it pauses or ends. True: it has ended. Not to be called from a fiber. */
bool fiber_resume(struct fiber *fiber);
/* Called in the fiber: returns to the caller of resume. */
void fiber_pause(struct fiber *fiber);
/* The fiber has ended, or was never resumed. */
void fiber_free(struct fiber *fiber);

#endif
