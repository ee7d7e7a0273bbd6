/*
 * The coverage of the space: how often each state machine of the product made each of its transitions, and
 * how often a fault came before one. States are read after each event, so a transition may have others inside
 * it that one step made (a paused process finds much waiting). A table has all transitions that may be seen;
 * another one is a violation.
 *
 * A pair is a kind of fault and the first transition of a state machine after it: of one whose process or
 * peer the fault struck. Tests: test/sim/test_cover.c.
 */
#ifndef SIM_COVER_H
#define SIM_COVER_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/coverage.h"

struct machine;
struct world;
struct cover;

void cover_make(struct machine *m);
void cover_free(struct machine *m);
/* The machine's process has handled an event. */
void cover_watch(struct machine *m);
/* A fault has struck machines a and b. */
void cover_fault(struct world *w, enum fault_kind kind, uint32_t a, uint32_t b);
/* The machine's process ends; killed: in the middle of its work. */
void cover_dies(struct machine *m, bool killed);

#endif
