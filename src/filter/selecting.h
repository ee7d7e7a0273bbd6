/*
 * What filters that hold rows back have in common. The worker adds to the rows of a push what was held back of their
 * keys before, asks the filters of the chain which rows are to wait, and keeps these. A row waits if any filter of the
 * chain says so. The choice is made once for a push, so all its transmissions have the same rows.
 * Tests: test/filter/test_selecting.c.
 */
#ifndef FILTER_SELECTING_H
#define FILTER_SELECTING_H

#include "filter/rounding.h"

/* The greatest magnitude of a row; infinite, if a value is no number: such a row never waits. */
double selecting_most(const struct filter_rows *r, uint32_t row);
/* For `unfit`: rows of a fixed number of F32 or F64, which pushes add to. */
const char *selecting_unfit(const struct filter_table *table, enum filter_direction direction);

#endif
