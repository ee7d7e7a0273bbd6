/*
 * Random calls on a table beside a model that is too simple to be wrong: rows in a plain array by key, pushed
 * by the slow reference. After every call the two must agree bit for bit; some calls are made to run out of
 * memory, and must then have changed nothing. Seeds are printed by the assertion that fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support_reference.h"
#include "table/rowinit.h"
#include "table/table.h"

enum { UNIVERSE = 97, DIM_MAX = 5, VALUES_MAX = 3 * DIM_MAX + 1, STEPS = 400 };

struct model {
    paramo_table_options options;
    struct rowinit init;
    bool there[UNIVERSE];
    float rows[UNIVERSE][VALUES_MAX];
};

/* Sparse keys lie at both ends of the range and between; dense ones are 0 .. UNIVERSE-1. Ascending in i. */
static uint64_t key_of(const struct model *m, size_t i)
{
    if (m->options.kind == PARAMO_TABLE_DENSE || i < 10) {
        return i;
    }
    return i >= UNIVERSE - 10 ? UINT64_MAX - (UNIVERSE - 1 - i) : UINT64_C(0x0123456789abcdef) * i;
}

static void model_initial(const struct model *m, size_t i, float *row)
{
    rowinit_fill(&m->init, key_of(m, i), 0, m->options.dim, row);
    reference_start(&m->options, row);
}

static void model_create(struct model *m, size_t i)
{
    if (!m->there[i]) {
        m->there[i] = true;
        model_initial(m, i, m->rows[i]);
    }
}

static void assert_floats(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x = a[i] == 0 ? 0 : a[i];
        float y = b[i] == 0 ? 0 : b[i];
        assert_memory_equal(&x, &y, sizeof x);
    }
}

static void assert_agrees(const struct model *m, struct table *t)
{
    uint64_t *keys;
    size_t n;
    assert_int_equal(table_sorted_keys(t, &keys, &n), PARAMO_OK);
    assert_int_equal(table_rows(t), n);
    size_t at = 0;
    uint64_t nonzero = 0;
    for (size_t i = 0; i < UNIVERSE; i++) {
        if (m->there[i]) {
            assert_true(at < n && keys[at] == key_of(m, i));
            float row[VALUES_MAX];
            assert_int_equal(table_get_rows(t, &keys[at], 1, true, row), PARAMO_OK);
            assert_floats(row, m->rows[i], table_row_values(&m->options, true));
            for (uint32_t c = 0; c < m->options.dim; c++) {
                nonzero += m->rows[i][c] != 0;
            }
            at++;
        }
    }
    assert_int_equal(at, n);
    assert_int_equal(count_nonzero(t), nonzero);
    free(keys);
}

/* A subset of the keys: a stretch, or scattered. Returns how many; which[] and keys[] ascend. */
static size_t draw_keys(const struct model *m, uint64_t *seed, size_t *which, uint64_t *keys)
{
    size_t n = 0;
    size_t first = draw(seed) % UNIVERSE;
    size_t last = draw(seed) % UNIVERSE;
    uint64_t thin = draw(seed) % 4;
    for (size_t i = 0; i < UNIVERSE; i++) {
        if (i >= first && i <= last && (thin == 0 || draw(seed) % (thin + 1) == 0)) {
            which[n] = i;
            keys[n++] = key_of(m, i);
        }
    }
    return n;
}

/* Remembered row numbers, as a shard keeps them. */
struct memory {
    uint64_t generation;
    size_t n;
    size_t which[UNIVERSE];
    uint64_t keys[UNIVERSE];
    uint32_t rows[UNIVERSE];
};

/* The rest of the row, and of its state, stays. */
static void model_push_columns(struct model *m, size_t i, uint32_t col, uint32_t ncols, const float *vals)
{
    uint32_t dim = m->options.dim;
    float whole[VALUES_MAX];
    float g[DIM_MAX] = {0};
    model_create(m, i);
    memcpy(whole, m->rows[i], sizeof whole);
    memcpy(g + col, vals, ncols * sizeof *g);
    reference_push(&m->options, whole, g);
    for (size_t plane = 0; plane < table_row_values(&m->options, true) / dim; plane++)
        memcpy(m->rows[i] + plane * dim + col, whole + plane * dim + col, ncols * sizeof *g);
}

static void step(struct model *m, struct table *t, struct failing_alloc *f, struct memory *known,
                 uint64_t *seed)
{
    uint32_t dim = m->options.dim;
    bool sparse = m->options.kind == PARAMO_TABLE_SPARSE;
    size_t which[UNIVERSE];
    uint64_t keys[UNIVERSE];
    float vals[UNIVERSE * VALUES_MAX];
    float out[UNIVERSE * VALUES_MAX];
    size_t n = draw_keys(m, seed, which, keys);
    for (size_t i = 0; i < n * dim; i++) {
        vals[i] = draw(seed) % 8 == 0 ? 0 : draw_float(seed);
    }
    f->fail_at = draw(seed) % 3 == 0 ? 1 + draw(seed) % 6 : 0;
    paramo_err err = PARAMO_OK;
    switch (draw(seed) % 10) {
    case 0:
    case 1:
    case 2: /* push */
        err = table_push(t, keys, n, vals);
        for (size_t i = 0; i < n && err == PARAMO_OK; i++) {
            model_create(m, which[i]);
            reference_push(&m->options, m->rows[which[i]], vals + i * dim);
        }
        f->fail_at = 0;
        for (size_t i = 0; i < n && err == PARAMO_OK; i++) {
            assert_int_equal(table_pull(t, &keys[i], 1, out, false), PARAMO_OK);
            assert_floats(out, m->rows[which[i]], dim);
        }
        break;
    case 3:
    case 4: { /* pull */
        bool create = draw(seed) % 2;
        err = table_pull(t, keys, n, out, create);
        for (size_t i = 0; i < n && err == PARAMO_OK; i++) {
            float fresh[VALUES_MAX];
            model_initial(m, which[i], fresh);
            assert_floats(out + i * dim, m->there[which[i]] ? m->rows[which[i]] : fresh, dim);
            if (create) {
                model_create(m, which[i]);
            }
        }
        break;
    }
    case 5: { /* columns of rows */
        if (n == 0 || !table_options_splittable(&m->options)) {
            break;
        }
        uint32_t col = (uint32_t)(draw(seed) % dim);
        uint32_t ncols = (uint32_t)(1 + draw(seed) % (dim - col));
        err = table_push_columns(t, keys, n, col, ncols, vals);
        if (err == PARAMO_OK) {
            for (size_t i = 0; i < n; i++)
                model_push_columns(m, which[i], col, ncols, vals + i * ncols);
            f->fail_at = 0;
            assert_int_equal(table_pull_columns(t, keys, n, col, ncols, out, false), PARAMO_OK);
            for (size_t i = 0; i < n; i++)
                assert_floats(out + i * ncols, m->rows[which[i]] + col, ncols);
        }
        if (sparse) { /* those that exist */
            size_t kept = table_scan_columns(t, keys, n, col, ncols, out), at = 0;
            for (size_t i = 0; i < n; i++)
                if (m->there[which[i]]) {
                    assert_true(at < kept && keys[at] == key_of(m, which[i]));
                    assert_floats(out + at++ * ncols, m->rows[which[i]] + col, ncols);
                }
            assert_int_equal(at, kept);
        }
        break;
    }
    case 6: /* resolve now, use later */
        err = table_resolve(t, keys, n, known->rows, draw(seed) % 2);
        known->n = 0;
        if (err == PARAMO_OK) {
            for (size_t i = 0; i < n && sparse; i++) {
                if (known->rows[i] != TABLE_NO_ROW) {
                    model_create(m, which[i]);
                }
                assert_int_equal(known->rows[i] != TABLE_NO_ROW, m->there[which[i]]);
            }
            known->generation = table_generation(t);
            known->n = n;
            memcpy(known->which, which, sizeof which);
            memcpy(known->keys, keys, sizeof keys);
        }
        break;
    case 7: { /* the later */
        if (known->generation != table_generation(t)) {
            break;
        }
        for (size_t i = 0; i < known->n * dim; i++) {
            vals[i] = draw_float(seed);
        }
        uint32_t before[UNIVERSE];
        memcpy(before, known->rows, sizeof before);
        err = table_push_rows(t, known->keys, known->rows, known->n, vals, NULL);
        if (err) {
            assert_memory_equal(before, known->rows, known->n * sizeof *before);
            break;
        }
        assert_int_equal(table_pull_rows(t, known->keys, known->rows, known->n, out), PARAMO_OK);
        for (size_t i = 0; i < known->n; i++) {
            model_create(m, known->which[i]);
            reference_push(&m->options, m->rows[known->which[i]], vals + i * dim);
            assert_floats(out + i * dim, m->rows[known->which[i]], dim);
        }
        break;
    }
    case 8: { /* put back rows, with and without state */
        bool state = draw(seed) % 2;
        size_t values = table_row_values(&m->options, state);
        for (size_t i = 0; i < n * values; i++) {
            vals[i] = draw(seed) % 4 == 0 ? 0 : (float)(draw(seed) % 100);
        }
        err = table_put_rows(t, keys, n, state, vals);
        for (size_t i = 0; i < n && err == PARAMO_OK; i++) {
            m->there[which[i]] = true;
            memcpy(m->rows[which[i]], vals + i * values, values * sizeof *vals);
            if (!state) {
                reference_start(&m->options, m->rows[which[i]]);
            }
        }
        break;
    }
    default: { /* delete a few; rarely, clear */
        if (draw(seed) % 8 == 0) {
            table_clear(t);
            for (size_t i = 0; i < UNIVERSE; i++) {
                m->there[i] = false;
                if (!sparse) {
                    model_create(m, i);
                }
            }
            break;
        }
        size_t removed = 0;
        size_t expected = 0;
        n = n > 20 ? 20 : n;
        err = table_delete(t, keys, n, &removed);
        for (size_t i = 0; i < n; i++) {
            expected += sparse && m->there[which[i]];
            m->there[which[i]] = false;
            if (!sparse) {
                model_create(m, which[i]);
            }
        }
        assert_int_equal(removed, expected);
        break;
    }
    }
    f->fail_at = 0;
    assert_true(err == PARAMO_OK || err == PARAMO_E_MEMORY);
    assert_agrees(m, t);
}

static void run(paramo_table_kind kind, paramo_optimizer optimizer, uint32_t dim, uint64_t seed)
{
    struct model *m = calloc(1, sizeof *m);
    struct memory known = {0};
    assert_non_null(m);
    table_options_default(&m->options);
    m->options.kind = kind;
    m->options.rows = kind == PARAMO_TABLE_DENSE ? UNIVERSE : 0;
    m->options.optimizer = optimizer;
    m->options.dim = dim;
    m->options.l1 = seed % 2 ? 0.05F : 0;
    m->options.l2 = seed % 2 ? 0.1F : 0;
    m->options.init = (paramo_init_kind)(seed % 4);
    m->options.init_a = seed % 4 == PARAMO_INIT_UNIFORM ? -0.5F : 0.25F;
    m->options.init_b = 0.5F;
    m->options.seed = seed;
    rowinit_setup(&m->init, &m->options);
    struct failing_alloc f;
    failing_alloc_init(&f);
    struct table *t;
    assert_int_equal(table_create(&m->options, seed * 31, &f.alloc, &t), PARAMO_OK);
    if (kind == PARAMO_TABLE_DENSE) { /* in pieces, out of order */
        assert_int_equal(table_dense_own(t, 40, UNIVERSE - 40), PARAMO_OK);
        assert_int_equal(table_dense_own(t, 0, 7), PARAMO_OK);
        assert_int_equal(table_dense_own(t, 7, 33), PARAMO_OK);
        for (size_t i = 0; i < UNIVERSE; i++) {
            model_create(m, i);
        }
    }
    assert_agrees(m, t);
    uint64_t random = seed * 1000003 + 17;
    for (unsigned i = 0; i < STEPS; i++) {
        step(m, t, &f, &known, &random);
    }
    struct table_stats stats = table_get_stats(t);
    assert_int_equal(stats.bytes, f.live_bytes);
    table_destroy(t);
    assert_int_equal(f.live_bytes, 0);
    assert_int_equal(f.live_blocks, 0);
    free(m);
}

static void run_kind(paramo_table_kind kind)
{
    uint64_t seed = 1;
    for (unsigned optimizer = 0; optimizer < PARAMO_OPTIMIZER_COUNT; optimizer++) {
        for (unsigned i = 0; i < 4; i++, seed++) {
            run(kind, (paramo_optimizer)optimizer, i % 2 ? 1 : DIM_MAX, seed);
        }
    }
}

static void sparse_is_the_model(void **state)
{
    (void)state;
    run_kind(PARAMO_TABLE_SPARSE);
}

static void dense_is_the_model(void **state)
{
    (void)state;
    run_kind(PARAMO_TABLE_DENSE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sparse_is_the_model),
        cmocka_unit_test(dense_is_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
