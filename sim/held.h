/*
 * The model of what filters hold back: which digits of acknowledged pushes a customer still has. Each digit that was
 * acknowledged is in the table, or at its customer: held back, or on its way in a carrier. When the customer no
 * longer has it, the table must have it. It must never know which rows a filter selects. Tests: test/sim/test_held.c;
 * scripts/mutants.
 */
#ifndef SIM_HELD_H
#define SIM_HELD_H

#include <stdbool.h>
#include <stdint.h>

#include "paramo/errors.h"
#include "sim/sizes.h"

struct world;
struct op;
struct customer;

/* Takes what its customer holds back out of the digits of an acknowledged push. */
void held_acknowledged(struct world *w, struct op *op);
/* What the customer no longer holds back is in the table from now on. */
void held_update(struct world *w, struct customer *c);
void held_update_all(struct world *w);
/* The customer is about to close, or to die: what it holds back is lost with it. Pushes may still be answered, and are
 * acknowledged when that is gone already. To be called before its client_close. */
void held_ends(struct world *w, struct customer *c);
/* The customer's process has taken a step: which carriers were made in it? */
void held_carriers(const struct world *w, struct customer *c);
/* A flush is issued; it has ended. */
void held_flush_begins(const struct world *w, struct customer *c, struct op *op);
void held_flushed(struct world *w, const struct op *op, paramo_err status);
/* When what may have failed for the request began. A flush ends with the error of a carrier that was in flight when it
 * was issued. So the server's answer may be older than the flush, and even than a clear that was over by then. */
uint64_t held_since(const struct op *op);

#endif
