/*
 * The model of tables that filters round, SIM_REALS and SIM_SUMS: which sums of pushes a value may be, as far as they
 * were rounded. Each push to a key has an amount of its own, 4/3 * 4^digit, and the opposite in the second value of
 * the row. A value is turned into the digits of a sum that is as near as all roundings allow, and these are judged
 * like those of the other tables (ledger.h). It must never know how a filter rounds, only how far. Tests:
 * test/sim/test_reals.c; scripts/mutants.
 */
#ifndef SIM_REALS_H
#define SIM_REALS_H

#include "filter/filter_chain.h"
#include "sim/sizes.h"

struct world;
struct op;
struct customer;
struct ledger_key;

/* Fills in the value of a push with this digit; column 0 or 1. */
uint64_t reals_value(uint64_t digit, unsigned column);
/* The customer has these chains from its beginning; or a table of it has this one from now on. */
void reals_open(struct customer *c, const struct filter_chain chains[FILTER_DIRECTIONS]);
void reals_chain(struct customer *c, enum sim_table table, enum filter_direction direction,
                 const struct filter_chain *chain);
/* The push is issued: notes how far each of its amounts may be off. */
void reals_issued(struct world *w, const struct op *op);
/* How far the values that the request has pulled may be off, each at most. */
double reals_pulled(const struct op *op);
/* The digits of an amount that was never rounded. False: it is no sum of these. */
bool reals_exact(uint64_t bits, uint64_t sent, uint64_t *digits);
/* The digits of the values. False: no sum is near enough, and a violation is noted, unless `where` is NULL. error: of
 * this read. */
bool reals_digits(struct world *w, const char *where, const struct ledger_key *key, const uint64_t *vals,
                  unsigned n, uint64_t must, uint64_t gone, double error, uint64_t *digits);

#endif
