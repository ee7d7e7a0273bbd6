#include "learn/explain/inspect.h"
#include "learn/support_learn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 60, DIM = 2, CLASSES = 3 };

static uint64_t keys[N + 1];
static float weights[(N + 1) * CLASSES], factors[N * DIM * CLASSES];

/* Weights of few sizes, so that many are equal; every third row has factors. */
static void make(struct model *m, uint32_t classes, uint64_t seed)
{
    static uint64_t some[N];
    uint64_t n = 0;
    *m = (struct model){.n = 2};
    model_info_init(&m->info, &model_fm);
    m->info.setting[0] = DIM;
    for (uint64_t i = 0; i < N; i++) {
        keys[i] = 3 * i + 1;
        if (i % 3 == 0)
            some[n++] = keys[i];
    }
    keys[N] = BATCH_BIAS_KEY;
    for (size_t i = 0; i < (size_t)(N + 1) * classes; i++)
        weights[i] = (float)(draw(&seed) % 9) / 4 - 1;
    for (size_t c = 0; c < classes; c++)
        weights[(size_t)N * classes + c] = 100;
    for (size_t i = 0; i < n * DIM; i++)
        factors[i] = draw_float(&seed);
    m->table[0] = (struct model_table){.n = N + 1, .dim = classes, .keys = keys, .values = weights};
    m->table[1] = (struct model_table){.n = n, .dim = DIM, .keys = some, .values = factors};
}

static float largest(uint32_t classes, size_t row)
{
    float most = 0;
    for (uint32_t c = 0; c < classes; c++)
        most = fmaxf(most, fabsf(weights[row * classes + c]));
    return most;
}

/* How many weights come before that of the row: greater ones, and equal ones of a lower key. */
static size_t rank_of(uint32_t classes, size_t row)
{
    size_t n = 0;
    for (size_t i = 0; i < N; i++)
        n += largest(classes, i) > largest(classes, row) ||
             (largest(classes, i) == largest(classes, row) && i < row);
    return n;
}

static void the_largest_come_first(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 30; seed++)
        for (size_t most = 0; most < N + 5; most += 7) {
            const uint32_t classes = seed % 2 == 0 ? CLASSES : 1;
            struct model m;
            struct inspection in;
            size_t nonzero = 0;
            make(&m, classes, seed);
            assert_int_equal(inspect_model(&m, most, &in), PARAMO_OK);
            for (size_t i = 0; i < N; i++)
                nonzero += largest(classes, i) > 0;
            assert_int_equal(in.top, most < nonzero ? most : nonzero);
            for (size_t i = 0; i < in.top; i++) {
                const struct inspect_weight *w = &in.weight[i];
                const size_t row = (size_t)(w->key - 1) / 3;
                assert_int_equal(rank_of(classes, row), i);
                assert_true(w->weight == weights[row * classes + w->output]);
                assert_true(fabsf(w->weight) == largest(classes, row));
                assert_int_equal(w->norm[1] > 0, row % 3 == 0);
                assert_true(w->divisor == 1);
            }
            inspect_free(&in);
        }
}

static void tables_are_measured_without_the_bias(void **state)
{
    (void)state;
    struct model m;
    struct inspection in;
    double l1 = 0, squares = 0;
    size_t nonzero = 0;
    make(&m, 1, 4);
    assert_int_equal(inspect_model(&m, 3, &in), PARAMO_OK);
    for (size_t i = 0; i < N; i++) {
        l1 += fabs((double)weights[i]);
        squares += (double)weights[i] * (double)weights[i];
        nonzero += weights[i] != 0;
    }
    assert_int_equal(in.table[0].rows, N);
    assert_int_equal(in.table[0].nonzero, nonzero);
    assert_int_equal(in.table[0].nonzero_rows, nonzero);
    assert_true(fabs(in.table[0].l1 - l1) < 1e-9 && fabs(in.table[0].l2 - sqrt(squares)) < 1e-9);
    assert_true(in.table[0].most <= 1);
    assert_true(in.bias && *in.bias == 100);
    assert_int_equal(in.table[1].values, in.table[1].rows * DIM);
    inspect_free(&in);
}

static void a_model_may_be_empty(void **state)
{
    (void)state;
    struct model m = {.n = 1};
    struct inspection in;
    model_info_init(&m.info, &model_lr);
    m.table[0].dim = 1;
    assert_int_equal(inspect_model(&m, 10, &in), PARAMO_OK);
    assert_int_equal(in.top, 0);
    assert_null(in.bias);
    assert_int_equal(in.table[0].rows, 0);
    inspect_free(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_come_first),
        cmocka_unit_test(tables_are_measured_without_the_bias),
        cmocka_unit_test(a_model_may_be_empty),
    };
    return cmocka_run_group_tests_name("inspect", tests, NULL, NULL);
}
