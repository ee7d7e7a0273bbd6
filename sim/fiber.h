/*
 * A fiber: a function with a stack of its own, which gives the thread back whenever it waits, so that code
 * that blocks (an application that saves a table) plays among the events of a simulation. Never knows what it
 * runs. Tests: test/sim/test_fiber.c.
 */
#ifndef SIM_FIBER_H
#define SIM_FIBER_H

#include <stdbool.h>

struct fiber;

/* Runs fn(arg) at the first resume. Aborts without memory. */
struct fiber *fiber_new(void (*fn)(void *arg), void *arg);
/* Runs it until it pauses or ends; true: it has ended. Not from a fiber. */
bool fiber_resume(struct fiber *fiber);
/* In the fiber: back to who resumed it. */
void fiber_pause(struct fiber *fiber);
/* One that has ended, or was never resumed. */
void fiber_free(struct fiber *fiber);

#endif
