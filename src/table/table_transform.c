#include "table/table_transform.h"

#include <assert.h>

#include "table/table.h"
#include "table/table_state.h"

paramo_err table_transform_check(const struct table *t, const struct table *other,
                                 const struct transform *what)
{
    paramo_err err = transform_check(what, t->options.dtype);
    if (err)
        return err;
    if (is_var(t) || (other && is_var(other)))
        return err_set(PARAMO_E_UNSUPPORTED, "rows of variable lengths cannot be changed by a function");
    if (other && (t->spec.dim != other->spec.dim || t->options.dtype != other->options.dtype))
        return err_set(PARAMO_E_SIZE_MISMATCH,
                       "the two tables differ in dim or dtype: their rows cannot be combined");
    return PARAMO_OK;
}

/* The rows of the keys that have one; these keys come to the front. */
static paramo_err existing(struct table *t, uint64_t *keys, size_t *n, void *out)
{
    if (is_dense(t))
        return table_get_rows(t, keys, *n, false, out);
    *n = table_scan_rows(t, keys, *n, false, out);
    return PARAMO_OK;
}

paramo_err table_transform_rows(struct table *t, struct table *other, const struct transform *what,
                                uint64_t *keys, size_t *n, void *vals, void *x)
{
    bool two = what->two;
    assert(!table_transform_check(t, other, what) && two == (x != NULL));
    paramo_err err = two ? existing(other, keys, n, x) : existing(t, keys, n, vals);
    if (!err && two)
        err = table_pull(t, keys, *n, vals, false); /* a missing row counts with its initial values */
    if (!err && what->function == PARAMO_TRANSFORM_USER)
        return transform_rows_user(what, t->options.dtype, keys, *n, t->spec.dim, vals, x);
    return err ? err : transform_values(what, t->options.dtype, vals, x, *n * t->spec.dim);
}
