/*
 * Checks the rows of all tables at all servers, and what each server keeps. It must never change the cluster. Tests:
 * test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_ROW_CHECKS_H
#define SIM_ROW_CHECKS_H

#include <stdbool.h>

struct world;

/* last: everything that is still kept must be needed. */
void row_checks_all(struct world *w, bool last);

#endif
