#include "learn/model/model_lr.h"
#include "learn/objective/objective.h"
#include "learn/support_learn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* The definition, by keys and in double precision: no index, no batch. */
static double slow_margin(const struct block *b, size_t row, const double *w, double bias)
{
    double sum = bias;
    for (uint32_t f = b->offset[row]; f < b->offset[row + 1]; f++)
        sum += w[b->key[f]] * (b->value == NULL ? 1.0 : (double)b->value[f]);
    return sum;
}

enum { KEYS = 40, ROWS = 60 };

static void one(uint64_t seed, int values)
{
    uint64_t s = seed;
    struct block b = random_block(seed, ROWS, 12, KEYS, 1, values);
    double w[KEYS], bias = (double)draw_float(&s);
    for (int i = 0; i < KEYS; i++)
        w[i] = (double)draw_float(&s);
    struct batcher *batcher;
    struct batch_list list = {0};
    assert_int_equal(batcher_new(&batcher), PARAMO_OK);
    assert_int_equal(batcher_cut(batcher, &b, ROWS, &list), PARAMO_OK);
    const struct batch *t = &list.batch[0];
    float fast_w[KEYS + 1], g[KEYS + 1], margin[ROWS], residual[ROWS];
    for (size_t i = 0; i + 1 < t->unique; i++)
        fast_w[i] = (float)w[t->key[i]];
    fast_w[t->unique - 1] = (float)bias;
    lr_margins(t, fast_w, margin);
    const struct objective logistic = objective_of(&objective_logistic);
    (void)objective_residuals(&logistic, margin, t->rows, t->label, NULL, t->rows, 0, residual);
    lr_gradient(t, residual, g);

    double slow_g[KEYS] = {0}, slow_bias = 0;
    for (size_t r = 0; r < ROWS; r++) {
        double m = slow_margin(&b, r, w, bias);
        assert_true(fabs((double)margin[r] - m) < 1e-5);
        double d = 1 / (1 + exp(-m)) - (double)b.label[r];
        slow_bias += d;
        for (uint32_t f = b.offset[r]; f < b.offset[r + 1]; f++)
            slow_g[b.key[f]] += d * (values ? (double)b.value[f] : 1.0);
    }
    for (size_t i = 0; i + 1 < t->unique; i++)
        assert_true(fabs((double)g[i] - slow_g[t->key[i]]) < 1e-4);
    assert_true(fabs((double)g[t->unique - 1] - slow_bias) < 1e-4);
    batch_list_free(&list);
    batcher_free(batcher);
    block_free(&b);
}

static void test_against_the_definition(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++)
        one(seed, seed % 2 == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_the_definition)};
    return cmocka_run_group_tests_name("lr", tests, NULL, NULL);
}
