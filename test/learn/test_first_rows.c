/* The bias that a new model begins with: in every model and optimizer, once a job, and not in a trained one; and the
 * rates of a job whose rows are long. */
#include "learn/support_learn.h"
#include "learn/train/centre.h"
#include "learn/train/train.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { ROWS = 4000, EVERY = 40 };
static char *dir, model[4096], data[4096];
static const char *const files[] = {data};

/* One row of EVERY is positive, and no feature says which. */
static int setup(void **state)
{
    (void)state;
    dir = new_dir();
    (void)snprintf(data, sizeof data, "%s/data", dir);
    (void)snprintf(model, sizeof model, "%s-model", dir);
    FILE *f = fopen(data, "w");
    assert_non_null(f);
    for (unsigned i = 0; i < ROWS; i++)
        (void)fprintf(f, "%d %u:%u:1\n", i % EVERY == 7, i % 2, i * 7 % 5);
    (void)fclose(f);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove_dir(dir);
    return 0;
}

static struct train_options options(const struct model_ops *ops, const char *optimizer)
{
    struct train_options o = {.data = files,
                              .data_n = 1,
                              .epochs = 1,
                              .batch = ROWS,
                              .servers = 1,
                              .workers = 1,
                              .model_out = model,
                              .quiet = 1};
    reader_options_init(&o.reader);
    model_info_init(&o.model, ops);
    (void)snprintf(o.model.optimizer[0].name, sizeof o.model.optimizer[0].name, "%s", optimizer);
    o.model.optimizer[0].alpha = 1e-6; /* nothing moves */
    return o;
}

static double train(const struct train_options *o)
{
    struct train_result r;
    if (train_run(o, &r) != PARAMO_OK)
        fail_msg("%s", paramo_last_error());
    const double logloss = r.epoch[r.epochs - 1].loss;
    train_result_free(&r);
    return logloss;
}

static float saved_bias(void)
{
    struct model m;
    assert_int_equal(modelio_open(model, &m), PARAMO_OK);
    assert_true(m.table[0].n > 0 && m.table[0].keys[m.table[0].n - 1] == UINT64_MAX);
    const float bias = m.table[0].values[m.table[0].n - 1];
    modelio_close(&m);
    return bias;
}

static void the_first_batch_is_scored_with_the_mean_rate(void **state)
{
    (void)state;
    const double p = 1.0 / EVERY, entropy = -p * log(p) - (1 - p) * log(1 - p);
    for (size_t i = 0; model_at(i); i++)
        for (size_t k = 0; optimizers_at(k); k++) {
            struct train_options o = options(model_at(i), optimizers_at(k)->name);
            const double logloss = train(&o);
            assert_true(fabs(logloss - entropy) < 1e-4);
            const double offset = o.model.ops->offset == NULL ? 0 : o.model.ops->offset(&o.model);
            assert_true(fabs((double)saved_bias() + offset - log(p / (1 - p))) < 0.02);
            remove_dir(strdup(model));
        }
}

static void a_trained_bias_stays(void **state)
{
    (void)state;
    struct train_options o = options(&model_lr, "sgd");
    o.epochs = 3;
    o.model.optimizer[0].alpha = 0.01; /* moves by 0.01 for a row too many */
    o.batch = 16;
    o.reader.part_bytes = 4096; /* several parts: the bias is that of the first one only once */
    (void)train(&o);
    const float bias = saved_bias();
    o.model_in = model;
    o.epochs = 1;
    o.model.optimizer[0].alpha = 1e-9;
    assert_int_equal(train_take_settings(model, &o.model), PARAMO_OK);
    o.model.optimizer[0].alpha = 1e-9;
    (void)train(&o);
    assert_true(fabs((double)(saved_bias() - bias)) < 1e-4);
    remove_dir(strdup(model));
}

/* ---- columns that are centred ---- */

/* Of each row: 1 a year, 2 a number around 0, 3 a number that half of the rows have, 4 always 1, 5 always 7, 6 a
 * number that the first block lacks. */
static void columns_far_from_zero_are_centred(void **state)
{
    (void)state;
    enum { PART_ROWS = 100 };
    uint32_t offset[PART_ROWS + 1] = {0};
    uint64_t key[PART_ROWS * 5];
    float value[PART_ROWS * 5];
    struct centre *centre;
    const uint64_t *keys;
    const float *rows;
    assert_int_equal(centre_new(&centre), PARAMO_OK);
    assert_int_equal(centre_rows(centre, &keys, &rows), 0);
    for (int part = 0; part < 2; part++) {
        uint32_t n = 0;
        for (uint32_t r = 0; r < PART_ROWS; r++) {
            const float with[] = {(float)(2000 + r), r % 2 ? 3 : -3, 5, 1, 7, 9};
            for (uint32_t c = 0; c < 6; c++)
                if ((c != 2 || r % 2) && (c != 5 || part == 1) && (c != 4 || r != 50) &&
                    (c != 3 || part == 0)) {
                    key[n] = c + 1;
                    value[n++] = with[c];
                }
            offset[r + 1] = n;
        }
        const struct block b = {
            .rows = PART_ROWS, .features = n, .offset = offset, .key = key, .value = value};
        centre_add(centre, &b);
    }
    assert_int_equal(centre_rows(centre, &keys, &rows), 2);
    assert_true(keys[0] == 1 && rows[0] == 200 && rows[2] == 2049.5f);
    assert_true(fabsf(rows[1] / 200 - 833.25f) < 0.01f); /* (100^2 - 1) / 12 */
    assert_true(keys[1] == 5 && rows[3] == 198 && rows[4] == 0 && rows[5] == 7);
    centre_free(centre);
    centre_free(NULL);
}

static void few_rows_and_one_hot_are_not_centred(void **state)
{
    (void)state;
    uint32_t offset[17];
    uint64_t key[16];
    float value[16];
    struct centre *centre;
    const uint64_t *keys;
    const float *rows;
    for (uint32_t i = 0; i < 17; i++)
        offset[i] = i;
    for (uint32_t i = 0; i < 16; i++) {
        key[i] = 3;
        value[i] = (float)(100 + i);
    }
    for (int k = 0; k < 3; k++) {
        const struct block b = {.rows = k == 0 ? 15 : 16,
                                .features = k == 0 ? 15 : 16,
                                .offset = offset,
                                .key = key,
                                .value = k == 1 ? NULL : value};
        assert_int_equal(centre_new(&centre), PARAMO_OK);
        assert_int_equal(centre_wanted(&b), k != 1);
        centre_add(centre, &b);
        assert_int_equal(centre_rows(centre, &keys, &rows), k == 2 ? 1 : 0);
        centre_free(centre);
    }
}

/* Rows of 30 features, of which the last is 0, and a rate that is named. */
static void long_rows_have_shorter_steps(void **state)
{
    (void)state;
    char path[4200];
    const char *const wide[] = {path};
    (void)snprintf(path, sizeof path, "%s/wide", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (unsigned i = 0; i < ROWS; i++) {
        (void)fprintf(f, "%u", i % 2);
        for (unsigned k = 0; k < 30; k++)
            (void)fprintf(f, " %u:%u:%d", k, k, k < 29);
        (void)fprintf(f, "\n");
    }
    (void)fclose(f);
    struct train_options o = options(&model_fm, "ftrl");
    struct train_result r;
    o.data = wide;
    o.model_out = NULL;
    o.model.optimizer[0].alpha = 0;
    o.model.optimizer[1].alpha = 0.5;
    assert_int_equal(train_run(&o, &r), PARAMO_OK);
    const double share = MODEL_LONG_ROW / 29.0;
    assert_true(fabs(r.alpha[0] - 0.25 * share * share) < 1e-9 && r.alpha[1] == 0.5);
    train_result_free(&r);
    o.data = files; /* one feature a row */
    assert_int_equal(train_run(&o, &r), PARAMO_OK);
    assert_true(r.alpha[0] == 0.25);
    train_result_free(&r);
    /* a pipe, whose rows may come later */
    char pipe_path[4200], command[9000];
    const char *const from_pipe[] = {pipe_path};
    (void)snprintf(pipe_path, sizeof pipe_path, "%s/pipe", dir);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    (void)snprintf(command, sizeof command, "cat '%s' >'%s' &", path, pipe_path);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
    o.data = from_pipe;
    assert_int_equal(train_run(&o, &r), PARAMO_OK);
    assert_true(r.rows == ROWS && r.alpha[0] == 0.25);
    train_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_rows_have_shorter_steps),
        cmocka_unit_test(the_first_batch_is_scored_with_the_mean_rate),
        cmocka_unit_test(a_trained_bias_stays),
        cmocka_unit_test(columns_far_from_zero_are_centred),
        cmocka_unit_test(few_rows_and_one_hot_are_not_centred),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
