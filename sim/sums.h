/*
 * The model of a table that aggregates the pushes of each clock (SIM_SUMS): which pushes a read must see, and which
 * it must not see yet. A value is a sum of digits, like those of SIM_REALS (reals.h), so a push that is applied twice
 * or never shows; each digit has the clock of its push. It must never know how a row keeps what was pushed. Tests:
 * test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_SUMS_H
#define SIM_SUMS_H

#include "sim/history.h"

struct world;
struct wire_head;

/* Before the keys are drawn: a customer that does not count pushes to another table, and push and pull are two
 * requests. */
void sums_kind(struct op *op);
/* The request is about to be issued: gives it its worker's clock, and notes that of its digits. */
void sums_issue(struct op *op, struct client_call *call);
/* Of a pull: the digits of a key that it must see if they were acknowledged, and those that it must not see. */
void sums_seen(const struct op *op, unsigned i, uint64_t *must, uint64_t *early);
/* A push leaves: the number of workers stays the same, however often it is sent. */
void sums_leaves(struct op *op, const struct wire_head *head);
/* The request has ended. */
void sums_done(const struct op *op, paramo_err status);
/* The row is that of a checkpoint now. */
void sums_returned(struct world *w, unsigned key);
/* Counts the changes that servers have made of several pushes of a clock. */
void sums_combined(struct world *w);
/* May a push end with INVALID? Its worker no longer counts, and the others have gone on. */
bool sums_may_be_late(const struct op *op);

#endif
