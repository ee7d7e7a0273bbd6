/*
 * The workers' application: its calls to the scheduler, and when it makes them. It must never know what a
 * fault does. Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_SCRIPT_H
#define SIM_SCRIPT_H

#include <stdbool.h>

struct machine;

void script_start(struct machine *m); /* the process is up */
void script_stop(
    struct machine *m); /* it is about to die: the results of its calls and requests no longer count */
void script_joined(struct machine *m);
/* A request has ended. */
void script_wake(struct machine *m);
/* It issues requests, perhaps during a call to the scheduler. */
bool script_works(const struct machine *m);
bool script_over(const struct machine *m);

#endif
