#include "learn/model/factors.h"
#include "learn/model/model_fm.h"
#include "learn/support_learn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Rendle's eq. (1) as it stands: all pairs, in double precision. w and v by place of the key in the batch. */
static double slow_margin(const struct batch *t, size_t dim, size_t row, const double *w, const double *v)
{
    uint32_t from = t->start[row] - t->start[0], to = t->start[row + 1] - t->start[0];
    double sum = w[t->unique - 1];
    for (uint32_t i = from; i < to; i++) {
        double xi = t->value == NULL ? 1.0 : (double)t->value[i];
        sum += w[t->index[i]] * xi;
        for (uint32_t j = i + 1; j < to; j++) {
            double xj = t->value == NULL ? 1.0 : (double)t->value[j], dot = 0;
            for (size_t f = 0; f < dim; f++)
                dot += v[t->index[i] * dim + f] * v[t->index[j] * dim + f];
            sum += dot * xi * xj;
        }
    }
    return sum;
}

/* sum_r residual_r margin_r, whose derivative by a parameter is what fm_gradient claims to give. */
static double slow_objective(const struct batch *t, size_t dim, const float *residual, const double *w,
                             const double *v)
{
    double sum = 0;
    for (size_t r = 0; r < t->rows; r++)
        sum += (double)residual[r] * slow_margin(t, dim, r, w, v);
    return sum;
}

static void one(uint64_t seed, uint32_t dim, int values)
{
    enum { ROWS = 9 };
    uint64_t s = seed;
    struct block b = random_block(seed, ROWS, 7, 25, 3, values);
    for (size_t r = 0; r < ROWS; r++) /* eq. (1) is over distinct features: give a repeated one another id */
        for (uint32_t i = b.offset[r]; i < b.offset[r + 1]; i++)
            for (uint32_t j = b.offset[r]; j < i; j++)
                if (b.key[i] == b.key[j])
                    b.key[i] = 1000 + i;
    struct batcher *batcher;
    struct batch_list list = {0};
    assert_int_equal(batcher_new(&batcher), PARAMO_OK);
    assert_int_equal(batcher_cut(batcher, &b, ROWS, &list), PARAMO_OK);
    const struct batch *t = &list.batch[0];
    size_t n = t->unique;
    float *w = calloc(n, sizeof *w), *v = calloc(n * dim, sizeof *v), *gw = calloc(n, sizeof *gw),
          *gv = calloc(n * dim, sizeof *gv), *sum = calloc(ROWS * dim, sizeof *sum);
    double *dw = calloc(n, sizeof *dw), *dv = calloc(n * dim, sizeof *dv);
    for (size_t i = 0; i < n; i++)
        w[i] = draw(&s) % 8 == 0 ? 0.0f : draw_float(&s);
    for (size_t i = 0; i < n * dim; i++)
        v[i] = draw_float(&s);
    factors_clear(t, dim, w, v);
    for (size_t i = 0; i < n; i++)
        for (size_t f = 0; f < dim; f++)
            assert_true((v[i * dim + f] == 0) == (w[i] == 0 || i + 1 == n));
    for (size_t i = 0; i < n; i++)
        dw[i] = (double)w[i];
    for (size_t i = 0; i < n * dim; i++)
        dv[i] = (double)v[i];

    float margin[ROWS], residual[ROWS];
    fm_margins(t, dim, w, v, sum, margin);
    for (size_t r = 0; r < ROWS; r++) {
        assert_true(fabs((double)margin[r] - slow_margin(t, dim, r, dw, dv)) < 1e-4);
        residual[r] = draw_float(&s);
    }
    fm_gradient(t, dim, v, sum, residual, gw, gv);
    /* the objective is linear in each single parameter (eq. 5), so a wide difference quotient is exact */
    for (size_t i = 0; i < n; i++) {
        double keep = dw[i], up, down;
        dw[i] = keep + 1;
        up = slow_objective(t, dim, residual, dw, dv);
        dw[i] = keep - 1;
        down = slow_objective(t, dim, residual, dw, dv);
        dw[i] = keep;
        assert_true(fabs((double)gw[i] - (up - down) / 2) < 1e-4);
    }
    for (size_t i = 0; i < (n - 1) * dim; i++) {
        double keep = dv[i], up, down;
        dv[i] = keep + 1;
        up = slow_objective(t, dim, residual, dw, dv);
        dv[i] = keep - 1;
        down = slow_objective(t, dim, residual, dw, dv);
        dv[i] = keep;
        assert_true(fabs((double)gv[i] - (up - down) / 2) < 1e-3);
    }
    free(w);
    free(v);
    free(gw);
    free(gv);
    free(sum);
    free(dw);
    free(dv);
    batch_list_free(&list);
    batcher_free(batcher);
    block_free(&b);
}

static void test_against_the_definition(void **state)
{
    (void)state;
    static const uint32_t dims[] = {1, 3, 4, 8, 16, 20};
    for (size_t level = 0; level < vector_count(); level++) {
        vector_limit(vector_names[level]);
        for (uint64_t seed = 1; seed <= 60; seed++)
            one(seed, dims[seed % 6], seed % 2 == 0);
    }
    vector_limit(NULL);
}

/* Row r's margin and the gradient as model_fm.h and .c define their order, one float at a time. */
static void slow_row(const struct batch *t, size_t dim, size_t r, const float *v, float *sum, float *margin)
{
    float lane[8] = {0};
    for (size_t f = 0; f < dim; f++) {
        float s = 0, squares = 0;
        for (uint32_t i = t->start[r] - t->start[0]; i < t->start[r + 1] - t->start[0]; i++) {
            float x = t->value == NULL ? 1.0f : t->value[i], p = v[t->index[i] * dim + f] * x;
            s += p;
            squares += p * p;
        }
        sum[r * dim + f] = s;
        lane[f % 8] += s * s - squares;
    }
    *margin +=
        0.5f * (((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7])));
}

static void slow_gradient(const struct batch *t, size_t dim, const float *v, const float *sum,
                          const float *residual, float *gv)
{
    memset(gv, 0, t->unique * dim * sizeof *gv);
    for (size_t r = 0; r < t->rows; r++)
        for (uint32_t i = t->start[r] - t->start[0]; i < t->start[r + 1] - t->start[0]; i++) {
            float x = t->value == NULL ? 1.0f : t->value[i], dx = residual[r] * x;
            for (size_t f = 0; f < dim; f++)
                gv[t->index[i] * dim + f] += dx * (sum[r * dim + f] - v[t->index[i] * dim + f] * x);
        }
}

static void same_bits(const float *a, const float *b, size_t n, const char *what, size_t dim)
{
    if (memcmp(a, b, n * sizeof *a) != 0)
        fail_msg("%s of %zu factors differ from the reference", what, dim);
}

static void test_the_same_bits_at_every_level(void **state)
{
    (void)state;
    enum { ROWS = 40, MOST = 70 };
    uint64_t s = 5;
    struct batcher *batcher;
    struct batch_list list = {0};
    assert_int_equal(batcher_new(&batcher), PARAMO_OK);
    for (size_t dim = 1; dim <= MOST; dim++) {
        struct block b = random_block(dim, ROWS, 12, 60, 3, dim % 2 == 0);
        assert_int_equal(batcher_cut(batcher, &b, ROWS, &list), PARAMO_OK);
        const struct batch *t = &list.batch[0];
        size_t n = t->unique * dim;
        float *w = calloc(t->unique, sizeof *w), *v = calloc(n, sizeof *v),
              *gw = calloc(t->unique, sizeof *gw);
        float *gv = malloc(n * sizeof *gv), *slow_gv = malloc(n * sizeof *gv);
        float *sum = malloc(ROWS * dim * sizeof *sum), *slow_sum = malloc(ROWS * dim * sizeof *sum);
        float margin[ROWS], slow[ROWS] = {0}, residual[ROWS];
        for (size_t i = 0; i < n; i++)
            v[i] = draw_float(&s);
        for (size_t r = 0; r < ROWS; r++) {
            residual[r] = draw_float(&s);
            slow_row(t, dim, r, v, slow_sum, &slow[r]);
        }
        slow_gradient(t, dim, v, slow_sum, residual, slow_gv);
        for (size_t level = 0; level < vector_count(); level++) {
            vector_limit(vector_names[level]);
            fm_margins(t, (uint32_t)dim, w, v, sum, margin);
            fm_gradient(t, (uint32_t)dim, v, sum, residual, gw, gv);
            same_bits(margin, slow, ROWS, "margins", dim);
            same_bits(sum, slow_sum, ROWS * dim, "sums", dim);
            same_bits(gv, slow_gv, n, "gradients", dim);
        }
        free(w);
        free(v);
        free(gw);
        free(gv);
        free(slow_gv);
        free(sum);
        free(slow_sum);
        block_free(&b);
    }
    vector_limit(NULL);
    batch_list_free(&list);
    batcher_free(batcher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_the_definition),
                                       cmocka_unit_test(test_the_same_bits_at_every_level)};
    return cmocka_run_group_tests_name("fm", tests, NULL, NULL);
}
