/* Scales of features against a slow reference that goes over all values, batch by batch. */
#include "learn/model/scale.h"
#include "learn/support_learn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { KEYS = 12, BATCHES = 9 };
static const enum scale_kind kinds[] = {SCALE_MAXABS, SCALE_STD, SCALE_AUTO};

struct seen {
    double most, count, squares;
};

static double reference(enum scale_kind kind, const struct seen *s)
{
    const double d = kind == SCALE_MAXABS ? s->most : s->count > 0 ? sqrt(s->squares / s->count) : 0;
    return d > 0 ? d : 1;
}

/* As the servers: rows by key, joined by what is pushed. */
static void put(enum scale_kind kind, const float *own, float *to)
{
    for (uint32_t k = 0; k < scale_dim(kind); k++)
        to[k] = scale_optimizer(kind) == PARAMO_OPT_ADD ? to[k] + own[k] : fmaxf(to[k], own[k]);
}

static void each_batch_is_divided_by_what_was_seen(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const uint32_t dim = scale_dim(kinds[k]);
        struct seen seen[KEYS] = {{0}};
        float server[KEYS * SCALE_MAX_DIM] = {0};
        struct batcher *batcher;
        struct batch_list list = {0};
        assert_int_equal(batcher_new(&batcher), PARAMO_OK);
        for (uint64_t seed = 1; seed <= BATCHES; seed++) {
            struct block block = random_block(seed, 30, 6, KEYS, 1, seed != 5); /* one without values */
            for (size_t i = 0; block.value != NULL && i < block.features; i++)
                block.value[i] *= (float)pow(10, (double)block.key[i] - 5); /* of any size */
            assert_int_equal(batcher_cut(batcher, &block, 100, &list), PARAMO_OK);
            const struct batch *b = &list.batch[0];
            float known[(KEYS + 1) * SCALE_MAX_DIM] = {0}, own[(KEYS + 1) * SCALE_MAX_DIM];
            float *value = malloc((block.features + 1) * sizeof *value);
            uint32_t changed[KEYS + 1];
            for (size_t i = 0; i + 1 < b->unique; i++)
                memcpy(known + i * dim, server + b->key[i] * dim, dim * sizeof *known);
            scale_measure(kinds[k], b, known, own);
            const size_t n = scale_join(kinds[k], b->unique - 1, own, known, changed);
            for (size_t i = 0; i < n; i++)
                put(kinds[k], own + changed[i] * dim, server + b->key[changed[i]] * dim);
            for (size_t i = 0; i < block.features; i++) {
                const double x = block.value == NULL ? 1 : (double)block.value[i];
                struct seen *s = &seen[block.key[i]];
                s->most = fmax(s->most, fabs(x));
                s->count += x != 0;
                s->squares += x * x;
            }
            scale_divide(kinds[k], b, known, value);
            for (size_t i = 0; i < block.features; i++) {
                const double x = block.value == NULL ? 1 : (double)block.value[i],
                             d = reference(kinds[k], &seen[block.key[i]]);
                double expected = x / d;
                if (kinds[k] != SCALE_MAXABS)
                    expected = fmin(fmax(expected, -(double)SCALE_MOST), (double)SCALE_MOST);
                assert_true(fabs((double)value[i] - expected) <= 1e-5 * fabs(expected));
                assert_true(fabs((double)scale_divisor(kinds[k], server + block.key[i] * dim) - d) <=
                            1e-5 * d);
            }
            free(value);
            block_free(&block);
        }
        batch_list_free(&list);
        batcher_free(batcher);
    }
}

static void zeros_and_ones_stay(void **state)
{
    (void)state;
    float value[] = {1, 0, 1, 1, 0, 1, 1}, label[2] = {0}, own[8], known[8], out[7];
    const uint32_t start[] = {0, 4, 7}, index[] = {0, 1, 2, 0, 1, 2, 3};
    uint32_t changed[4];
    const uint64_t key[] = {4, 7, 9, BATCH_BIAS_KEY};
    struct batch b = {
        .rows = 2, .unique = 4, .key = key, .label = label, .start = start, .index = index, .value = value};
    assert_int_equal(scale_wanted(&b), 0);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int ones = 0; ones < 2; ones++) {
            b.value = ones ? NULL : value;
            memset(known, 0, sizeof known);
            scale_measure(kinds[k], &b, known, own);
            (void)scale_join(kinds[k], 3, own, known, changed);
            scale_divide(kinds[k], &b, known, out);
            for (size_t i = 0; i < 7; i++)
                assert_true(out[i] == (ones ? 1.0f : value[i]));
        }
    b.value = NULL;
    assert_int_equal(scale_wanted(&b), 0);
    b.value = value;
    value[6] = -1;
    assert_int_equal(scale_wanted(&b), 1);
}

static void nothing_is_infinite(void **state)
{
    (void)state;
    float value[] = {3e38f, -3e38f, 1e-45f}, label[1] = {0}, own[8], known[8] = {0}, out[3];
    const uint32_t start[] = {0, 3}, index[] = {0, 1, 2};
    uint32_t changed[3];
    const uint64_t key[] = {1, 2, 3, BATCH_BIAS_KEY};
    const struct batch b = {
        .rows = 1, .unique = 4, .key = key, .label = label, .start = start, .index = index, .value = value};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        memset(known, 0, sizeof known);
        scale_measure(kinds[k], &b, known, own);
        assert_int_equal(scale_join(kinds[k], 3, own, known, changed), 3);
        scale_divide(kinds[k], &b, known, out);
        for (size_t i = 0; i < 3; i++)
            assert_true(fabsf(out[i]) <= SCALE_MOST);
    }
}

static void what_is_known_is_not_pushed_again(void **state)
{
    (void)state;
    const float own_max[] = {2, 3}, own_std[] = {1, 4, 1, 9};
    float most[] = {2, 1}, std[] = {1 << 20, 100, 5, 3};
    uint32_t changed[2];
    assert_int_equal(scale_join(SCALE_MAXABS, 2, own_max, most, changed), 1);
    assert_true(changed[0] == 1 && most[0] == 2 && most[1] == 3);
    assert_int_equal(scale_join(SCALE_STD, 2, own_std, std, changed), 1);
    assert_true(changed[0] == 1 && std[0] == 1 << 20 && std[1] == 100 && std[2] == 6 && std[3] == 12);
}

/* Key 4 has the mean 100, and key 7 none: its values are as with std. A value that is the mean is seen. */
static void means_are_subtracted(void **state)
{
    (void)state;
    float value[] = {110, 2, 90, 100, -2}, label[3] = {0}, own[9], out[5];
    float known[9] = {0, 0, 100, 0, 0, 0};
    const uint32_t start[] = {0, 2, 3, 5}, index[] = {0, 1, 0, 0, 1};
    uint32_t changed[3];
    const uint64_t key[] = {4, 7, BATCH_BIAS_KEY};
    const struct batch b = {
        .rows = 3, .unique = 3, .key = key, .label = label, .start = start, .index = index, .value = value};
    scale_measure(SCALE_CENTRED, &b, known, own);
    assert_true(own[0] == 3 && own[1] == 200 && own[2] == 0 && own[3] == 2 && own[4] == 8 && own[5] == 0);
    assert_int_equal(scale_join(SCALE_CENTRED, 2, own, known, changed), 2);
    assert_true(scale_mean(SCALE_CENTRED, known) == 100 && scale_mean(SCALE_STD, known) == 0);
    const float s = scale_divisor(SCALE_CENTRED, known);
    assert_true(s == sqrtf(200.0f / 3));
    scale_divide(SCALE_CENTRED, &b, known, out);
    assert_true(out[0] == 10 / s && out[2] == -10 / s && out[3] == 0);
    assert_true(out[1] == 1 && out[4] == -1);
}

static void kinds_have_names(void **state)
{
    (void)state;
    char words[64] = "";
    for (int i = 0; i < SCALE_KINDS; i++) {
        assert_int_equal(scale_find(scale_name((enum scale_kind)i)), i);
        (void)strcat(strcat(words, i > 0 ? "|" : ""), scale_name((enum scale_kind)i));
        assert_true(scale_dim((enum scale_kind)i) <= SCALE_MAX_DIM);
    }
    assert_string_equal(words, SCALE_WORDS);
    assert_int_equal(scale_find("max"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_batch_is_divided_by_what_was_seen),
        cmocka_unit_test(zeros_and_ones_stay),
        cmocka_unit_test(means_are_subtracted),
        cmocka_unit_test(nothing_is_infinite),
        cmocka_unit_test(what_is_known_is_not_pushed_again),
        cmocka_unit_test(kinds_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
