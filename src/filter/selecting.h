/*
 * The common part of filters that hold rows back. The worker adds the values that it held back earlier to the rows of
 * a push with the same keys. Then it asks the filters of the chain which rows must wait, and keeps these. A row waits
 * if any filter of the chain says so. The choice is made once for a push, so all its transmissions have the same
 * rows. It must never know requests. Tests: test/filter/test_selecting.c.
 */
#ifndef FILTER_SELECTING_H
#define FILTER_SELECTING_H

#include "filter/rounding.h"

/* The greatest magnitude of a row; infinite if a value is NaN: such a row never waits. */
double selecting_most(const struct filter_rows *r, uint32_t row);
/* For `unfit`: rows of a fixed number of F32 or F64, which pushes add to. */
const char *selecting_unfit(const struct filter_table *table, enum filter_direction direction);

#endif
