/* Jobs in this process on columns of different scale, and on one-hot rows, which no scale changes. */
#include "learn/eval/score.h"
#include "learn/support_learn.h"
#include "learn/train/train.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 6000 };
static char *dir, raw[4096], hot[4096], late[4096];
static const char *const raw_files[] = {raw}, *const hot_files[] = {hot}, *const late_files[] = {late};

/* Rows first..ROWS have three columns of sizes from 1e-3 to 1e6, the others an id alone. */
static void write_log(const char *path, unsigned first)
{
    uint64_t seed = 3;
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (unsigned i = 0; i < ROWS; i++) {
        const double a = (double)draw_float(&seed), b = (double)draw_float(&seed),
                     c = (double)draw_float(&seed);
        const unsigned id = (unsigned)(draw(&seed) % 8);
        const double p = 1 / (1 + exp(-(3 * a - 2 * b + c + 0.3 * id - 1)));
        (void)fprintf(f, "%d", (double)draw_float(&seed) < 2 * p - 1);
        if (i >= first)
            (void)fprintf(f, " 0:1:%g 1:2:%g 2:3:%g", a * 1e6, b * 1e-3, 40 + c);
        (void)fprintf(f, " %u:%u:1\n", id % 4, 10 + id);
    }
    (void)fclose(f);
}

static int setup(void **state)
{
    (void)state;
    dir = new_dir();
    (void)snprintf(raw, sizeof raw, "%s/raw", dir);
    (void)snprintf(hot, sizeof hot, "%s/hot", dir);
    (void)snprintf(late, sizeof late, "%s/late", dir);
    write_log(raw, 0);
    write_log(hot, ROWS);
    write_log(late, ROWS / 2);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove_dir(dir);
    return 0;
}

static struct train_options options(const struct model_ops *model, const char *const *files, const char *out,
                                    enum scale_kind scale)
{
    struct train_options o = {.data = files,
                              .data_n = 1,
                              .valid = files,
                              .valid_n = 1,
                              .model_out = out,
                              .epochs = 2,
                              .batch = 64,
                              .servers = 1,
                              .workers = 1,
                              .ahead = 1,
                              .quiet = 1};
    reader_options_init(&o.reader);
    o.reader.part_bytes = 20000; /* several parts */
    model_info_init(&o.model, model);
    o.model.scale = scale;
    return o;
}

static double train(const struct train_options *o)
{
    struct train_result r;
    if (train_run(o, &r) != PARAMO_OK)
        fail_msg("%s", paramo_last_error());
    const double logloss = r.epoch[r.best_epoch - 1].valid.loss; /* that model is saved */
    train_result_free(&r);
    return logloss;
}

static char *model_dir(const char *name)
{
    char *path;
    if (asprintf(&path, "%s-%s", dir, name) < 0)
        abort();
    return path;
}

/* The manifest holds the tables' checksums, so equal manifests are equal models. */
static char *manifest(const char *model)
{
    char path[4096];
    size_t len;
    (void)snprintf(path, sizeof path, "%s/manifest.json", model);
    return read_file(path, &len);
}

static double measure(const char *model, const char *const *files)
{
    return learn_measure(model, files).loss;
}

static void columns_of_any_size_are_learned(void **state)
{
    (void)state;
    static const enum scale_kind kinds[] = {SCALE_MAXABS, SCALE_STD, SCALE_AUTO};
    for (size_t i = 0; model_at(i); i++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            char *out = model_dir("m");
            struct train_options o = options(model_at(i), raw_files, out, kinds[k]);
            o.epochs = 4;
            const double logloss = train(&o);
            if (!(logloss < 0.56)) /* the mean rate's is 0.69 */
                fail_msg("%s, %s: %g", model_at(i)->name, scale_name(kinds[k]), logloss);
            assert_true(measure(out, raw_files) == logloss); /* from the files, without servers */
            remove_dir(out);
        }
}

static void servers_make_no_difference(void **state)
{
    (void)state;
    for (size_t i = 0; model_at(i); i++) {
        char *first = NULL;
        for (uint32_t servers = 1; servers <= 3; servers++) {
            char *out = model_dir("m");
            struct train_options o = options(model_at(i), late_files, out, SCALE_AUTO);
            o.servers = servers;
            (void)train(&o);
            char *text = manifest(out);
            assert_non_null(strstr(text, "\"scale\": \"auto\""));
            assert_non_null(strstr(text, "scale-")); /* the table */
            if (first != NULL)
                assert_string_equal(first, text);
            else
                first = strdup(text);
            free(text);
            remove_dir(out);
        }
        free(first);
    }
}

static void going_on_is_as_if_never_stopped(void **state)
{
    (void)state;
    for (size_t i = 0; model_at(i); i++) {
        char *whole = model_dir("whole"), *half = model_dir("half");
        struct train_options o = options(model_at(i), raw_files, whole, SCALE_AUTO);
        (void)train(&o);
        o.epochs = 1;
        o.model_out = half;
        (void)train(&o);
        o.model_in = half;
        assert_int_equal(train_take_settings(half, &o.model), PARAMO_OK);
        assert_int_equal(o.model.scale, SCALE_CENTRED); /* its third column is far from 0 */
        (void)train(&o);
        char *a = manifest(whole), *b = manifest(half);
        assert_string_equal(a, b);
        free(a);
        free(b);
        remove_dir(whole);
        remove_dir(half);
    }
}

/* The name of the file of w has its checksum. */
static char *file_of_w(const char *model)
{
    struct model m;
    assert_int_equal(modelio_open(model, &m), PARAMO_OK);
    assert_null(m.scale.file);
    char *name = strdup(strrchr(m.table[0].path, '/'));
    modelio_close(&m);
    return name;
}

static void one_hot_rows_need_no_scale(void **state)
{
    (void)state;
    for (size_t i = 0; model_at(i); i++) {
        char *a = model_dir("a"), *b = model_dir("b");
        struct train_options o = options(model_at(i), hot_files, a, SCALE_NONE);
        const double without = train(&o);
        o = options(model_at(i), hot_files, b, SCALE_AUTO);
        assert_true(train(&o) == without);
        char *w = file_of_w(a), *same = file_of_w(b);
        assert_string_equal(w, same);
        free(w);
        free(same);
        o.model.scale = SCALE_MAXABS; /* with a table */
        assert_true(train(&o) == without);
        o.model.scale = SCALE_STD;
        assert_true(train(&o) == without);
        remove_dir(a);
        remove_dir(b);
    }
}

static void workers_share_the_scales(void **state)
{
    (void)state;
    char *out = model_dir("m");
    struct train_options o = options(&model_lr, late_files, out, SCALE_AUTO);
    o.workers = 3;
    o.servers = 2;
    const double logloss = train(&o);
    assert_true(logloss < 0.66);
    assert_true(measure(out, late_files) == logloss);
    struct model m;
    assert_int_equal(modelio_open(out, &m), PARAMO_OK);
    assert_int_equal(m.scale.n, 11);
    assert_int_equal(m.scale.keys[0], 1);
    assert_true(fabs((double)scale_divisor(SCALE_AUTO, m.scale.values) - 1e6 / sqrt(3)) < 2e4);
    modelio_close(&m);
    remove_dir(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_of_any_size_are_learned), cmocka_unit_test(servers_make_no_difference),
        cmocka_unit_test(going_on_is_as_if_never_stopped), cmocka_unit_test(one_hot_rows_need_no_scale),
        cmocka_unit_test(workers_share_the_scales),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
