/*
 * The description of a table's rows: type and width, initial values, effect of a push. table_create makes it
 * once; the stores read it. It never knows keys or memory. Tests: those of the stores,
 * test/table/test_table_*.c.
 */
#ifndef TABLE_ROWSPEC_H
#define TABLE_ROWSPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "table/optimizer/optimizer.h"
#include "table/rowinit.h"

struct rowspec {
    struct optimizer optimizer;
    struct rowinit init;
    uint32_t dim;
    size_t value_bytes;
    size_t param_bytes;         /* of a row: dim values */
    size_t state_values;        /* of the optimizer's state, per row, F32 */
    size_t state_bytes;         /* after the parameters: the state, and what aggregate.h keeps */
    paramo_aggregate aggregate; /* not NONE: aggregate.h */
    unsigned planes;            /* state of dim values each */
    bool counts;                /* and a count of steps */
};

void rowspec_setup(struct rowspec *s, const paramo_table_options *o);
/* The initial parameters of this key's row, without creating the row. */
void rowspec_initial(const struct rowspec *s, uint64_t key, uint32_t col, uint32_t ncols, void *out);
/* How many of n values of the table's type are not zero. */
uint64_t rowspec_count_nonzero(const struct rowspec *s, const void *values, size_t n);

#endif
