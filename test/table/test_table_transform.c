/* The rows that functions make of rows, in every store. */
#include <string.h>

#include "table/table.h"
#include "table/table_transform.h"
#include "unit.h"

static struct table *make(paramo_table_kind kind, uint32_t dim, paramo_dtype dtype, float init)
{
    paramo_table_options o;
    struct table *t;
    table_options_default(&o);
    o.kind = kind;
    o.dim = dim;
    o.dtype = dtype;
    o.rows = kind == PARAMO_TABLE_DENSE ? 10 : 0;
    o.init = kind == PARAMO_TABLE_VAR ? PARAMO_INIT_ZERO : PARAMO_INIT_CONSTANT;
    o.init_a = init;
    assert_int_equal(table_create(&o, 5, NULL, &t), PARAMO_OK);
    if (o.rows)
        assert_int_equal(table_dense_own(t, 0, 10), PARAMO_OK);
    return t;
}

static void put(struct table *t, uint64_t key, float value, uint32_t dim)
{
    float row[2] = {value, value + 1};
    (void)dim;
    assert_int_equal(table_put_rows(t, &key, 1, false, row), PARAMO_OK);
}

static void rows(void **state)
{
    (void)state;
    for (uint32_t dim = 1; dim <= 2; dim++)
        for (unsigned dense = 0; dense < 2; dense++) {
            paramo_table_kind kind = dense ? PARAMO_TABLE_DENSE : PARAMO_TABLE_SPARSE;
            struct table *y = make(kind, dim, PARAMO_F32, 7), *x = make(kind, dim, PARAMO_F32, 0);
            uint64_t keys[3] = {2, 4, 6};
            float vals[6], scratch[6];
            size_t n = 3;
            put(y, 2, 10, dim);
            put(x, 2, 1, dim);
            put(x, 6, 3, dim);
            struct transform t = {.function = PARAMO_TRANSFORM_SCALE, .a = 2};
            assert_int_equal(table_transform_rows(y, NULL, &t, keys, &n, vals, NULL), PARAMO_OK);
            assert_int_equal(n, dense ? 3 : 1); /* sparse: rows that exist */
            assert_int_equal(keys[0], 2);
            assert_true(vals[0] == 20 && (dim == 1 || vals[1] == 22));
            assert_true(!dense || vals[dim] == 14);
            t = (struct transform){.function = PARAMO_TRANSFORM_AXPY, .two = true, .a = 10};
            keys[0] = 2, keys[1] = 4, keys[2] = 6, n = 3;
            assert_int_equal(table_transform_rows(y, x, &t, keys, &n, vals, scratch), PARAMO_OK);
            assert_int_equal(n, dense ? 3 : 2); /* those that x has */
            assert_int_equal(keys[n - 1], 6);
            assert_true(vals[0] == 20 && vals[(n - 1) * dim] == 7 + 30); /* a missing row begins with 7 */
            t.function = PARAMO_TRANSFORM_COPY;
            keys[0] = 2, keys[1] = 4, keys[2] = 6, n = 3;
            assert_int_equal(table_transform_rows(y, x, &t, keys, &n, vals, scratch), PARAMO_OK);
            assert_true(vals[0] == 1 && vals[(n - 1) * dim] == 3);
            t = (struct transform){.function = PARAMO_TRANSFORM_SCALE, .a = 1e300};
            keys[0] = 2, n = 1;
            assert_int_equal(table_transform_rows(y, NULL, &t, keys, &n, vals, NULL), PARAMO_E_NUMERIC);
            assert_int_equal(table_pull(y, keys, 1, vals, false), PARAMO_OK);
            assert_true(vals[0] == 10); /* nothing has changed */
            table_destroy(x);
            table_destroy(y);
        }
}

static void refused(void **state)
{
    (void)state;
    struct table *y = make(PARAMO_TABLE_SPARSE, 2, PARAMO_F32, 0),
                 *x = make(PARAMO_TABLE_SPARSE, 1, PARAMO_F32, 0);
    struct table *z = make(PARAMO_TABLE_SPARSE, 2, PARAMO_F64, 0),
                 *v = make(PARAMO_TABLE_VAR, 1, PARAMO_F32, 0);
    struct transform t = {.function = PARAMO_TRANSFORM_AXPY, .two = true, .a = 1};
    assert_int_equal(table_transform_check(y, y, &t), PARAMO_OK);
    assert_int_equal(table_transform_check(y, x, &t), PARAMO_E_SIZE_MISMATCH);
    assert_int_equal(table_transform_check(y, z, &t), PARAMO_E_SIZE_MISMATCH);
    assert_int_equal(table_transform_check(y, v, &t), PARAMO_E_UNSUPPORTED);
    t = (struct transform){.function = PARAMO_TRANSFORM_FILL, .a = 1};
    assert_int_equal(table_transform_check(v, NULL, &t), PARAMO_E_UNSUPPORTED);
    table_destroy(x);
    table_destroy(y);
    table_destroy(z);
    table_destroy(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
