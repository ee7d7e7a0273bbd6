#include "learn/train/summed.h"

#include <string.h>

/* Adding zeros first creates the value, so the read never waits for a worker to write it. */
paramo_err summed_get(paramo_node *node, const char *key, double *values, size_t n)
{
    size_t len = 0;
    memset(values, 0, n * sizeof *values);
    paramo_err err = paramo_kv_add(node, key, values, n);
    return err == PARAMO_OK ? paramo_kv_get(node, key, values, n * sizeof *values, &len, 0) : err;
}
