/*
 * Pages of a table's rows in the simulator: ranges and room, drawn, and what a page must have. It must never know how
 * a page comes together. Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_PAGES_H
#define SIM_PAGES_H

#include "paramo/paramo.h"
#include "sim/sizes.h"

struct op;
struct dice;
struct world;

/* A page and its arrays. */
struct page_op {
    paramo_page page;
    uint64_t keys[SIM_KEYS];
    uint32_t lens[SIM_KEYS];
    uint64_t vals[SIM_KEYS * SIM_WIDE];
};

/* A range, or where the customer's last page of the table ended. */
void page_draw(struct op *op, struct dice *dice);
/* The request has succeeded: all rows from its begin to where it ends, each as in a pull. */
void page_judge(struct world *w, const struct op *op);

#endif
