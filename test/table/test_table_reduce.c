/* Reductions of tables of every store, in steps of every size, against a plain loop; and of two tables. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "table/table.h"
#include "table/table_reduce.h"
#include "unit.h"

enum { ROWS = 3000, DIM_MOST = 5 };

static struct table *make(paramo_table_kind kind, uint32_t dim, paramo_dtype dtype)
{
    paramo_table_options o;
    struct table *t;
    table_options_default(&o);
    o.kind = kind;
    o.dim = dim;
    o.dtype = dtype;
    o.rows = kind == PARAMO_TABLE_DENSE ? ROWS : 0;
    assert_int_equal(table_create(&o, 99, NULL, &t), PARAMO_OK);
    for (uint64_t first = 0; o.rows && first < ROWS; first += 700) /* runs with gaps */
        assert_int_equal(table_dense_own(t, first, 600 < ROWS - first ? 600 : ROWS - first), PARAMO_OK);
    return t;
}

static bool has(paramo_table_kind kind, uint64_t key)
{
    return kind == PARAMO_TABLE_DENSE ? key % 700 < 600 : mix64(key) % 3 != 0;
}

static int32_t value(uint64_t key, uint32_t column)
{
    return (int32_t)(mix64(key * 8 + column) % 2000) - 1000;
}

static uint32_t row_len(paramo_table_kind kind, uint64_t key, uint32_t dim)
{
    return kind == PARAMO_TABLE_VAR ? (uint32_t)(key % DIM_MOST) : dim;
}

static void fill(struct table *t, paramo_table_kind kind, uint32_t dim)
{
    for (uint64_t key = 0; key < ROWS; key++) {
        int32_t row[DIM_MOST];
        uint32_t len = row_len(kind, key, dim);
        for (uint32_t c = 0; c < len; c++)
            row[c] = value(key, c);
        if (has(kind, key) && kind == PARAMO_TABLE_VAR)
            assert_int_equal(table_var_put(t, &key, 1, row, &len), PARAMO_OK);
        else if (has(kind, key))
            assert_int_equal(table_put_rows(t, &key, 1, false, row), PARAMO_OK);
    }
}

static bool odd_partitions(void *arg, uint64_t key)
{
    (void)arg;
    return key / 64 % 2;
}

static void reduce(const struct table *t, const struct table *other, const struct reduction *what,
                   size_t values, table_wants wants, struct reduced *found)
{
    struct table_reducing at = {0};
    assert_int_equal(reduction_check(what), PARAMO_OK);
    assert_int_equal(reduced_init(found, what), PARAMO_OK);
    for (unsigned steps = 0; !at.done; steps++) {
        table_reduce_step(t, other, &at, values, found, wants, NULL);
        assert_true(steps < 10 * ROWS * DIM_MOST);
    }
    reduced_sort(found);
}

static void stores(void **state)
{
    (void)state;
    static const struct {
        paramo_table_kind kind;
        uint32_t dim;
    } tables[] = {{PARAMO_TABLE_DENSE, 1},
                  {PARAMO_TABLE_DENSE, 5},
                  {PARAMO_TABLE_SPARSE, 1},
                  {PARAMO_TABLE_SPARSE, 4},
                  {PARAMO_TABLE_VAR, 0}};
    static const uint64_t ranges[][2] = {
        {0, UINT64_MAX}, {100, 1234}, {650, 660}, {2999, 2999}, {5000, UINT64_MAX}};
    static const size_t steps[] = {1, 7, 1000, 1 << 20};
    for (unsigned k = 0; k < 5; k++) {
        struct table *t = make(tables[k].kind, tables[k].dim ? tables[k].dim : 1, PARAMO_I32);
        fill(t, tables[k].kind, tables[k].dim);
        for (unsigned r = 0; r < 5; r++)
            for (unsigned s = 0; s < 4; s++)
                for (unsigned some = 0; some < 2; some++) {
                    uint64_t rows = 0, values = 0;
                    int64_t sum = 0, most = INT64_MIN;
                    for (uint64_t key = 0; key < ROWS; key++) {
                        if (!has(tables[k].kind, key) || key < ranges[r][0] || key > ranges[r][1] ||
                            (some && !odd_partitions(NULL, key)))
                            continue;
                        rows++;
                        for (uint32_t c = 0; c < row_len(tables[k].kind, key, tables[k].dim); c++, values++) {
                            sum += value(key, c);
                            most = value(key, c) > most ? value(key, c) : most;
                        }
                    }
                    struct reduced found;
                    struct reduction what = {
                        .function = PARAMO_REDUCE_SUM, .begin = ranges[r][0], .last = ranges[r][1]};
                    reduce(t, NULL, &what, steps[s], some ? odd_partitions : NULL, &found);
                    assert_int_equal(found.rows, rows);
                    assert_int_equal(found.values, values);
                    assert_true(reduced_value(&found) == (double)sum);
                    reduced_fini(&found);
                    what.function = PARAMO_REDUCE_MAX;
                    what.most = 1;
                    reduce(t, NULL, &what, steps[s], some ? odd_partitions : NULL, &found);
                    assert_int_equal(found.n, values > 0);
                    if (values)
                        assert_true(found.entries[0].value == (double)most &&
                                    value(found.entries[0].key, found.entries[0].column) == most);
                    reduced_fini(&found);
                }
        table_destroy(t);
    }
}

/* Rows with more values than a step takes are taken in parts, beside shorter ones, while others come and go. */
static void long_rows(void **state)
{
    (void)state;
    enum { LONG = 1000, KEYS = 60, VALUES = 150 };
    static const struct {
        paramo_table_kind kind;
        paramo_aggregate aggregate;
    } tables[] = {{PARAMO_TABLE_SPARSE, PARAMO_AGGREGATE_NONE},
                  {PARAMO_TABLE_SPARSE, PARAMO_AGGREGATE_SUM},
                  {PARAMO_TABLE_VAR, PARAMO_AGGREGATE_NONE}};
    static double row[LONG];
    for (unsigned k = 0; k < 3; k++) {
        bool var = tables[k].kind == PARAMO_TABLE_VAR;
        paramo_table_options o = {.size = sizeof o,
                                  .kind = tables[k].kind,
                                  .dim = var ? 1 : LONG,
                                  .dtype = PARAMO_F64,
                                  .optimizer = PARAMO_OPT_ADD,
                                  .aggregate = tables[k].aggregate};
        struct table *t;
        assert_int_equal(table_create(&o, 99, NULL, &t), PARAMO_OK);
        uint64_t rows = 0, values = 0;
        double sum = 0;
        for (uint64_t key = 0; key < KEYS; key++) {
            uint32_t len = var && key % 3 ? (uint32_t)key : LONG;
            for (uint32_t c = 0; c < len; c++)
                sum += row[c] = value(key, c);
            rows++;
            values += len;
            assert_int_equal(var ? table_var_put(t, &key, 1, row, &len)
                                 : table_put_rows(t, &key, 1, false, row),
                             PARAMO_OK);
        }
        struct table_reducing at = {0};
        struct reduced found;
        const struct reduction what = {.function = PARAMO_REDUCE_SUM, .last = KEYS - 1};
        assert_int_equal(reduced_init(&found, &what), PARAMO_OK);
        unsigned parts = 0, steps = 0;
        for (; !at.done; steps++) {
            uint64_t before = found.values, other = KEYS + steps;
            bool part = at.in_row;
            parts += part;
            table_reduce_step(t, NULL, &at, VALUES, &found, NULL, NULL);
            /* Shorter rows are as many as their mean makes likely. */
            assert_true(found.values - before <= (part ? VALUES : var ? 20 * VALUES : 0));
            uint32_t len = LONG; /* not in the range; the index grows */
            if (steps < 2000)
                assert_int_equal(var ? table_var_put(t, &other, 1, row, &len)
                                     : table_put_rows(t, &other, 1, false, row),
                                 PARAMO_OK);
        }
        assert_int_equal(parts, (var ? KEYS / 3 : KEYS) * ((LONG + VALUES - 1) / VALUES));
        assert_true(at.column == 0 && !at.in_row);
        assert_int_equal(found.rows, rows);
        assert_int_equal(found.values, values);
        assert_true(reduced_value(&found) == sum);
        /* A long row that is deleted between two parts adds no more values. */
        at = (struct table_reducing){0};
        reduced_reset(&found);
        while (!at.in_row || !at.column)
            table_reduce_step(t, NULL, &at, VALUES, &found, NULL, NULL);
        uint64_t gone = at.key;
        assert_int_equal(table_delete(t, &gone, 1, NULL), PARAMO_OK);
        while (!at.done)
            table_reduce_step(t, NULL, &at, VALUES, &found, NULL, NULL);
        assert_int_equal(found.values, values - LONG + VALUES);
        reduced_fini(&found);
        table_destroy(t);
    }
}

/* Rows that both have. */
static void two_tables(void **state)
{
    (void)state;
    static const paramo_table_kind kinds[] = {PARAMO_TABLE_DENSE, PARAMO_TABLE_SPARSE};
    for (unsigned a = 0; a < 2; a++)
        for (unsigned b = 0; b < 2; b++)
            for (uint32_t dim = 1; dim <= 3; dim += 2) {
                struct table *x = make(kinds[a], dim, PARAMO_I32), *y = make(kinds[b], dim, PARAMO_I32);
                struct reduction what = {
                    .function = PARAMO_REDUCE_DOT, .two = true, .begin = 50, .last = 2500};
                struct reduced found;
                int64_t dot = 0;
                uint64_t rows = 0;
                fill(x, kinds[a], dim);
                fill(y, kinds[b], dim);
                for (uint64_t key = 50; key <= 2500; key++) {
                    rows += has(kinds[a], key) && has(kinds[b], key);
                    for (uint32_t c = 0; c < dim && has(kinds[a], key) && has(kinds[b], key); c++)
                        dot += (int64_t)value(key, c) * value(key, c);
                }
                for (size_t step = 1; step < 5000; step *= 17) {
                    reduce(x, y, &what, step, NULL, &found);
                    assert_int_equal(found.rows, rows);
                    assert_true(reduced_value(&found) == (double)dot);
                    reduced_fini(&found);
                }
                table_destroy(x);
                table_destroy(y);
            }
    struct table *x = make(PARAMO_TABLE_SPARSE, 2, PARAMO_F32), *y = make(PARAMO_TABLE_SPARSE, 3, PARAMO_F32);
    struct table *v = make(PARAMO_TABLE_VAR, 1, PARAMO_F32);
    assert_int_equal(table_reduce_check(x, y), PARAMO_E_SIZE_MISMATCH);
    assert_int_equal(table_reduce_check(x, v), PARAMO_E_UNSUPPORTED);
    table_destroy(x);
    table_destroy(y);
    table_destroy(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stores), cmocka_unit_test(long_rows),
                                       cmocka_unit_test(two_tables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
