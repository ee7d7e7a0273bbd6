/*
 * The model of the pool: which worker has which work unit. It must never know the scheduler's own tables of
 * leases. Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_DEALS_H
#define SIM_DEALS_H

#include "wire/pool_calls.h"

struct machine;

/* Does such a work unit exist? */
bool deal_exists(const struct work_unit *unit);
void deal_got(struct machine *m, uint32_t round, const struct work_unit *unit);
void deal_finished(struct machine *m, uint32_t round);
/* Reports that were answered in time. Stale: for a lease that ended with its holder's process. */
void deal_stale(struct machine *m, paramo_err status);
void deal_reported(struct machine *m, const struct work_unit *unit, paramo_err status);

#endif
