/*
 * Filters in the simulator: which chains a customer has, drawn each time it opens, and changed now and then while
 * it works. It must never know what a filter does. Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_FILTERS_H
#define SIM_FILTERS_H

#include "filter/filter_chain.h"
#include "sim/world.h"

/* The chains of a customer that opens now, and how many key lists it remembers. */
void filters_draw(struct machine *m, struct customer *customer, struct client_config *config);
/* Before a request: sometimes the table gets another chain, and sometimes a shard forgets the key lists of its
 * connections, or has no room for more. */
void filters_change(struct machine *m, unsigned customer, enum sim_table table);
/* The customer closes: counts what its filters have done. */
void filters_count(struct world *w, const struct client *client);

#endif
