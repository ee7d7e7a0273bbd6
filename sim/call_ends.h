/*
 * How a call to the scheduler may end: each failure has a cause. It must never make a call. Tests:
 * test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_CALL_ENDS_H
#define SIM_CALL_ENDS_H

#include <stdbool.h>
#include <stdint.h>

#include "paramo/errors.h"

struct machine;
struct world;

/* The membership has ended with this status, and its calls end first. */
bool call_ends_with(const struct machine *m, paramo_err status);
/* The process no longer has a job, as this status says. */
bool call_ends_with_job(const struct machine *m, paramo_err status);
/* Is the time of the call that began at asked_at over? By the clock of the node or of the scheduler, which may run
 * fast. All times are ns of the node's clock; from: the moment when the call began. */
bool call_ends_late(const struct machine *m, uint64_t asked_at, uint64_t deadline, uint64_t from);
/* The rank of a process that has joined. */
uint32_t call_ends_place(const struct machine *m);
/* May a barrier that was entered at that moment be broken: is one of the workers that it waits for gone, or was one
 * gone at some time since? Workers beyond the number that the job began with do not count. */
bool call_ends_barrier(const struct world *w, uint64_t from);

#endif
