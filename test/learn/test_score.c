#include "learn/eval/score.h"
#include "learn/model/factors.h"
#include "learn/support_learn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The row of key in the table, found the slow way; zeros if there is none. */
static float slow_value(const struct model_table *t, uint64_t key, size_t column)
{
    for (uint64_t i = 0; i < t->n; i++)
        if (t->keys[i] == key)
            return t->values[i * t->dim + column];
    return 0;
}

static void test_fetch_finds_each_key(void **state)
{
    (void)state;
    enum { N = 500, DIM = 2 };
    static uint64_t keys[N], wanted[2 * N];
    static float values[N * DIM], w[2 * N], v[2 * N * DIM];
    uint64_t s = 5;
    for (int t = 0; t < 200; t++) {
        struct model m = {.n = 2};
        model_info_init(&m.info, &model_fm);
        m.info.setting[FACTORS_DIM] = DIM;
        uint64_t n = draw(&s) % N, at = 0;
        for (uint64_t i = 0; i < n; i++) {
            keys[i] = at += 1 + draw(&s) % 4;
            values[i] = draw_float(&s);
        }
        if (n > 0 && t % 2 == 0)
            keys[n - 1] = BATCH_BIAS_KEY;
        for (uint64_t i = 0; i < n * DIM; i++)
            values[i] = draw_float(&s);
        m.table[0] = (struct model_table){.n = n, .dim = 1, .keys = keys, .values = values};
        m.table[1] = (struct model_table){.n = n, .dim = DIM, .keys = keys, .values = values};
        struct batch b = {.key = wanted};
        for (uint64_t key = draw(&s) % 8; b.unique < N - 1 && key < 3 * N;
             key += 1 + draw(&s) % (t % 7 == 0 ? 300 : 5))
            wanted[b.unique++] = key;
        wanted[b.unique++] = BATCH_BIAS_KEY;
        struct score_lookup lookup = {.model = &m};
        assert_int_equal(score_fetch_model(&lookup, &b, (float *[]){w, v}, NULL), PARAMO_OK);
        uint64_t known = 0;
        for (size_t i = 0; i + 1 < b.unique; i++)
            for (uint64_t k = 0; k < n; k++)
                known += keys[k] == wanted[i];
        assert_int_equal(lookup.asked, b.unique - 1);
        assert_int_equal(lookup.known, known);
        for (size_t i = 0; i < b.unique; i++) {
            assert_true(w[i] == slow_value(&m.table[0], wanted[i], 0));
            for (size_t f = 0; i + 1 < b.unique && f < DIM; f++) /* the bias has no factors */
                assert_true(v[i * DIM + f] == slow_value(&m.table[1], wanted[i], f));
        }
    }
}

struct seen {
    size_t n;
    float margin[5000], label[5000];
};

static paramo_err collect(void *arg, const struct scored_rows *rows)
{
    struct seen *seen = arg;
    memcpy(seen->margin + seen->n, rows->margin, rows->n * sizeof *rows->margin);
    memcpy(seen->label + seen->n, rows->label, rows->n * sizeof *rows->label);
    seen->n += rows->n;
    return PARAMO_OK;
}

static paramo_err fail_at_once(void *arg, const struct scored_rows *rows)
{
    (void)arg, (void)rows;
    return paramo_error_set(PARAMO_E_IO, "full");
}

/* Rows "y k:1" with w[k] = k / 100 and bias 1, over several batches: margins in row order. */
static void test_rows_come_in_order(void **state)
{
    (void)state;
    char *dir = new_dir(), path[4096];
    (void)snprintf(path, sizeof path, "%s/rows.libsvm", dir);
    FILE *f = fopen(path, "w");
    uint64_t s = 6;
    static uint64_t row_key[5000];
    for (size_t i = 0; i < 5000; i++) {
        row_key[i] = draw(&s) % 120;
        (void)fprintf(f, "%d %llu:1\n", (int)(i % 3 == 0), (unsigned long long)row_key[i]);
    }
    (void)fclose(f);
    uint64_t keys[101];
    float values[101];
    for (uint64_t i = 0; i < 100; i++) {
        keys[i] = i;
        values[i] = (float)i / 100;
    }
    keys[100] = BATCH_BIAS_KEY;
    values[100] = 1;
    struct model m = {.n = 1};
    model_info_init(&m.info, &model_lr);
    m.table[0] = (struct model_table){.n = 101, .dim = 1, .keys = keys, .values = values};
    struct score_lookup lookup = {.model = &m};
    struct score_source source = score_model(&lookup);
    struct reader_options options;
    struct reader *reader;
    reader_options_init(&options);
    const char *paths[] = {path};
    assert_int_equal(reader_open(&options, paths, 1, &reader), PARAMO_OK);
    static struct seen seen;
    seen.n = 0;
    assert_int_equal(score_reader(&source, reader, collect, &seen), PARAMO_OK);
    assert_int_equal(seen.n, 5000);
    for (size_t i = 0; i < 5000; i++) {
        assert_true(seen.label[i] == (float)(i % 3 == 0));
        assert_true(seen.margin[i] == 1 + (row_key[i] < 100 ? (float)row_key[i] / 100 : 0));
    }
    assert_int_equal(reader_rewind(reader), PARAMO_OK);
    assert_int_equal(score_reader(&source, reader, fail_at_once, NULL), PARAMO_E_IO);
    assert_string_equal(paramo_last_error(), "full");
    reader_close(reader);
    remove_dir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fetch_finds_each_key),
        cmocka_unit_test(test_rows_come_in_order),
    };
    return cmocka_run_group_tests_name("score", tests, NULL, NULL);
}
