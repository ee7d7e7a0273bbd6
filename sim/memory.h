/*
 * Allocations of a process that fail. It must never know what an allocation is for. Tests:
 * test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct machine;

/* From now on allocations count for this machine's process; NULL: for none. */
void memory_of(struct machine *m);
/* The product calls the simulator: allocations of the simulator, and of calls that it makes to the product,
 * do not fail. */
void memory_hold(void);
void memory_resume(void);
void memory_strike(struct machine *m, size_t fault);
/* Has an allocation of this machine's process failed since that moment, or one of a server in these places (bits)? */
bool memory_failed(const struct machine *m, uint32_t servers, uint64_t from);
/* Like memory_failed(), or has an allocation of a scheduler failed? For what the scheduler answers. */
bool memory_failed_call(const struct machine *m, uint32_t servers, uint64_t from);

#endif
