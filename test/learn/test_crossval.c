#include "learn/data/holdout.h"
#include "learn/io/kept_pipe.h"
#include "learn/support_learn.h"
#include "learn/tune/crossval.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Each row is in one fold, folds are equally large, and neighbours are spread over them. */
static void rows_are_dealt_to_folds(void **state)
{
    (void)state;
    enum { ROWS = 1003 };
    uint8_t side[ROWS], other[ROWS];
    unsigned folds[ROWS];
    for (unsigned n = 2; n <= HOLDOUT_FOLDS_MAX; n++) {
        memset(folds, 0, sizeof folds);
        for (unsigned f = 0; f < n; f++) {
            size_t out = 0, first = 0;
            holdout_fold(1, 2, n, f, ROWS, side);
            for (size_t r = 0; r < ROWS; r++) {
                folds[r] += side[r] == HOLDOUT_MEASURE;
                out += side[r] == HOLDOUT_MEASURE;
                first += side[r] == HOLDOUT_MEASURE && r % n == 0;
            }
            assert_in_range(out, ROWS / n, ROWS / n + 1);
            assert_true(first > 0 && first < out); /* its rows do not all have the same place among n */
        }
        for (size_t r = 0; r < ROWS; r++)
            assert_int_equal(folds[r], 1);
    }
    holdout_fold(1, 3, 5, 0, ROWS, other);
    holdout_fold(1, 2, 5, 0, ROWS, side);
    assert_memory_not_equal(side, other, ROWS);
}

static void passes_grow(void **state)
{
    (void)state;
    static const uint64_t want[] = {1, 1, 1, 1, 2, 3, 4, 6, 9, 14};
    uint64_t all = 0;
    for (uint32_t r = 0; r < 20; r++) {
        assert_true(r >= sizeof want / sizeof *want || train_passes(r) == want[r]);
        all += train_passes(r);
    }
    assert_int_equal(all, 2398);
    assert_true(train_passes(1000) > 0);
}

/* Rows with one weight that matters; noise: the label has nothing to do with it. */
static void write_rows(const char *path, size_t rows, int noise, int label)
{
    FILE *f = fopen(path, "w");
    uint64_t seed = 5;
    assert_non_null(f);
    for (size_t i = 0; i < rows; i++) {
        const int on = (int)(draw(&seed) % 2), chance = draw(&seed) % 8 == 0;
        (void)fprintf(f, "%d %d:1 %d:1\n",
                      label >= 0 ? label
                      : noise    ? (int)(draw(&seed) % 2)
                                 : on ^ chance,
                      on + 1, 10 + (int)(draw(&seed) % 5));
    }
    (void)fclose(f);
}

static struct train_options options_of(const char *const *path)
{
    struct train_options o = {
        .data = path, .data_n = 1, .hold_out = 10, .servers = 1, .workers = 1, .ahead = 1, .quiet = 2};
    reader_options_init(&o.reader);
    model_info_init(&o.model, &model_lr);
    return o;
}

static void few_rows_are_measured_by_models_without_them(void **state)
{
    (void)state;
    char *dir = new_dir(), path[4096];
    const char *paths[] = {path};
    (void)snprintf(path, sizeof path, "%s/rows.libsvm", dir);
    write_rows(path, 203, 0, -1);
    struct train_options o = options_of(paths);
    struct crossval cv, again;
    assert_int_equal(crossval_run(&o, &cv), PARAMO_OK);
    assert_true(cv.epochs > 0 && cv.rows == 203);
    assert_int_equal(crossval_run(&o, &again), PARAMO_OK);
    assert_int_equal(again.epochs, cv.epochs);
    for (uint64_t e = 0; e < cv.epochs; e++) {
        assert_int_equal(cv.epoch[e].rows, 203);
        assert_true(cv.epoch[e].loss == again.epoch[e].loss);
        assert_true(cv.epoch[e].loss >= cv.epoch[cv.epochs - 1].loss);
    }
    assert_true(cv.epoch[cv.epochs - 1].loss < 0.8 * cv.epoch[0].base);

    /* The job learns all rows for that long. */
    struct train_result result;
    uint64_t passes = 0;
    for (uint32_t e = 0; e < cv.epochs; e++)
        passes += train_passes(e);
    crossval_apply(&cv, &o);
    assert_int_equal(train_run(&o, &result), PARAMO_OK);
    assert_int_equal(result.epochs, cv.epochs);
    assert_int_equal(result.best_epoch, cv.epochs);
    assert_int_equal(result.rows, 203 * passes);
    assert_int_equal(result.hold_out, 0);
    assert_true(result.best_loss == cv.epoch[cv.epochs - 1].loss);
    assert_int_equal(result.measured, 203);
    train_result_free(&result);
    crossval_free(&cv);
    crossval_free(&again);
    remove_dir(dir);
}

/* Nothing to learn is seen on all rows, so fewer rows tell. */
static void noise_is_told(void **state)
{
    (void)state;
    char *dir = new_dir(), path[4096];
    const char *paths[] = {path};
    (void)snprintf(path, sizeof path, "%s/rows.libsvm", dir);
    write_rows(path, 3000, 1, -1);
    struct train_options o = options_of(paths);
    struct crossval cv;
    struct train_result result;
    assert_int_equal(crossval_run(&o, &cv), PARAMO_OK);
    assert_true(cv.epochs > 0 && cv.epoch[cv.epochs - 1].loss > cv.epoch[cv.epochs - 1].base);
    crossval_apply(&cv, &o);
    assert_int_equal(train_run(&o, &result), PARAMO_OK);
    assert_non_null(strstr(result.warning, "nothing is learned"));
    assert_non_null(strstr(result.warning, "in cross-validation"));
    assert_null(strstr(result.warning, "epochs help")); /* more were tried */
    train_result_free(&result);
    crossval_free(&cv);
    remove_dir(dir);
}

static uint64_t epochs_for(const struct train_options *o)
{
    struct crossval cv;
    assert_int_equal(crossval_run(o, &cv), PARAMO_OK);
    const uint64_t epochs = cv.epochs;
    crossval_free(&cv);
    return epochs;
}

static void other_data_is_left_to_the_job(void **state)
{
    (void)state;
    char *dir = new_dir(), path[4096];
    const char *paths[] = {path};
    struct train_options o = options_of(paths);
    (void)snprintf(path, sizeof path, "%s/rows.libsvm", dir);
    assert_int_equal(epochs_for(&o), 0); /* no file */
    write_rows(path, 9, 0, -1);
    assert_int_equal(epochs_for(&o), 0); /* too few rows */
    write_rows(path, 200, 0, 1);
    assert_int_equal(epochs_for(&o), 0); /* one class */
    write_rows(path, 200000, 0, -1);
    assert_int_equal(epochs_for(&o), 0); /* many */
    write_file(path, "1 1:1\n0 2:x\n", 12);
    assert_int_equal(epochs_for(&o), 0); /* damaged: the job says so */
    remove_dir(dir);
}

/* The end of a pipe that has a file's bytes; as much as a pipe holds. */
static int pipe_of(const char *path, char *name, size_t cap)
{
    static char bytes[1 << 20];
    int end[2];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    (void)fclose(f);
    assert_int_equal(pipe(end), 0);
    assert_int_equal(write(end[1], bytes, n), (ssize_t)n);
    (void)close(end[1]);
    (void)snprintf(name, cap, "/dev/fd/%d", end[0]);
    return end[0];
}

/* Few rows from a pipe are those of a file; others come from the pipe all the same. */
static void a_pipe_is_kept(void **state)
{
    (void)state;
    char *dir = new_dir(), path[4096], name[64];
    const char *paths[] = {path}, *pipes[] = {name};
    (void)snprintf(path, sizeof path, "%s/rows.libsvm", dir);
    write_rows(path, 203, 0, -1);
    struct train_options file = options_of(paths), o = options_of(pipes);
    struct crossval cv, want;
    struct train_result result;
    int end = pipe_of(path, name, sizeof name);
    assert_int_equal(crossval_run(&file, &want), PARAMO_OK);
    assert_int_equal(crossval_run(&o, &cv), PARAMO_OK);
    assert_true(cv.epochs == want.epochs && cv.rows == 203);
    assert_true(cv.epoch[cv.epochs - 1].loss == want.epoch[want.epochs - 1].loss);
    crossval_apply(&cv, &o);
    assert_int_equal(train_run(&o, &result), PARAMO_OK); /* the rows are there once more */
    assert_int_equal(result.rows % 203, 0);
    train_result_free(&result);
    crossval_free(&cv);
    crossval_free(&want);
    kept_pipe_free_all();
    (void)close(end);

    write_rows(path, 9, 0, -1); /* too few */
    o = options_of(pipes);
    o.epochs = 1;
    end = pipe_of(path, name, sizeof name);
    assert_int_equal(epochs_for(&o), 0);
    assert_int_equal(train_run(&o, &result), PARAMO_OK);
    assert_int_equal(result.rows + result.measured, 9);
    train_result_free(&result);
    kept_pipe_free_all();
    (void)close(end);
    remove_dir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_dealt_to_folds),
                                       cmocka_unit_test(passes_grow),
                                       cmocka_unit_test(few_rows_are_measured_by_models_without_them),
                                       cmocka_unit_test(noise_is_told),
                                       cmocka_unit_test(other_data_is_left_to_the_job),
                                       cmocka_unit_test(a_pipe_is_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
