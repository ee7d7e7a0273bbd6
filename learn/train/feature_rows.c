#include "learn/train/feature_rows.h"

#include <stdlib.h>

#define PUT_ROWS (1u << 18) /* at once; arbitrary */

paramo_err feature_rows_open(paramo_worker *worker, const char *name, paramo_optimizer optimizer,
                             paramo_table **table)
{
    paramo_table_options o;
    paramo_table_options_init(&o);
    o.dim = 1;
    o.optimizer = optimizer;
    return paramo_table_open(worker, name, &o, table);
}

paramo_err feature_rows_put(paramo_worker *worker, paramo_table *table, const uint64_t *key, size_t n,
                            float number)
{
    const size_t most = n < PUT_ROWS ? n : PUT_ROWS;
    if (n == 0)
        return PARAMO_OK;
    float *row = malloc(most * sizeof *row);
    if (!row)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the numbers of %zu features", most);
    for (size_t i = 0; i < most; i++)
        row[i] = number;
    paramo_err err = PARAMO_OK;
    for (size_t first = 0; err == PARAMO_OK && first < n; first += most) {
        paramo_rows put = {.size = sizeof put,
                           .keys = key + first,
                           .n = n - first < most ? n - first : most,
                           .vals = row,
                           .row_values = 1};
        err = paramo_table_put(worker, table, 0, &put);
    }
    free(row);
    return err;
}
