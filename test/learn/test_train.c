#include "learn/data/loader.h"
#include "learn/eval/score.h"
#include "learn/model/factors.h"
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

/* Whole jobs in this process, on a log whose labels follow a known logistic model of 30 features; with
 * `noise`, each row has one more of this many features, which mean nothing. */
static char *dir, data[4096], valid[4096];

static void write_log(const char *path, uint64_t seed, size_t rows, unsigned noise)
{
    FILE *f = fopen(path, "w");
    if (f == NULL)
        abort();
    for (size_t r = 0; r < rows; r++) {
        unsigned a = (unsigned)(draw(&seed) % 10), b = (unsigned)(draw(&seed) % 20);
        double p = 1 / (1 + exp(-((double)a - 4.5) * 0.6 - ((double)b - 9.5) * 0.1));
        int y = (double)(draw(&seed) >> 11) / 9007199254740992.0 < p;
        (void)fprintf(f, "%d 0:%u:1 1:%u:1", y, a, 100 + b);
        if (noise > 0)
            (void)fprintf(f, " 2:%u:1", 1000 + (unsigned)(draw(&seed) % noise));
        (void)fputc('\n', f);
    }
    (void)fclose(f);
}

static int setup(void **state)
{
    (void)state;
    dir = new_dir();
    (void)snprintf(data, sizeof data, "%s/data", dir);
    (void)snprintf(valid, sizeof valid, "%s/valid", dir);
    write_log(data, 1, 20000, 0);
    write_log(valid, 2, 5000, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove_dir(dir);
    return 0;
}

static const char *const data_files[] = {data}, *const valid_files[] = {valid};

static struct train_options options(const struct model_ops *model, char *out)
{
    struct train_options o = {
        .data = data_files,
        .data_n = 1,
        .valid = valid_files,
        .valid_n = 1,
        .model_out = out,
        .epochs = 2,
        .batch = 64,
        .servers = 1,
        .workers = 1,
        .ahead = 1,
        .quiet = 1,
    };
    reader_options_init(&o.reader);
    o.reader.part_bytes = 20000; /* several parts */
    model_info_init(&o.model, model);
    (void)strcpy(o.model.data_format, "auto");
    o.model.seed = 1;
    if (model == &model_fm) {
        o.model.setting[FACTORS_DIM] = 4;
        o.model.setting[FACTORS_INIT] = 0.05;
        o.model.optimizer[1].alpha = 0.05;
    }
    return o;
}

static struct train_result run(const struct train_options *o)
{
    struct train_result r;
    paramo_err err = train_run(o, &r);
    if (err != PARAMO_OK)
        fail_msg("%s", paramo_last_error());
    assert_true(r.leader && !r.interrupted);
    return r;
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

static struct metrics_result measure(const char *model)
{
    return learn_measure(model, valid_files);
}

static void test_learns_and_saves_what_it_validated(void **state)
{
    (void)state;
    for (size_t m = 0; model_at(m) != NULL; m++) {
        char *out = model_dir("m");
        struct train_options o = options(model_at(m), out);
        struct train_result r = run(&o);
        assert_int_equal(r.epochs, 2);
        assert_int_equal(r.rows, 40000);
        assert_int_equal(r.epoch[1].rows, 20000);
        assert_int_equal(r.epoch[1].keys, 31); /* and the bias */
        assert_true(r.epoch[1].loss < r.epoch[0].loss && r.epoch[0].loss < 0.6);
        assert_int_equal(r.epoch[1].valid.rows, 5000);
        assert_true(r.epoch[1].valid.value[METRIC_AUC] > 0.8);
        assert_true(r.saved);
        struct metrics_result again = measure(out); /* from the files, without servers */
        assert_true(again.loss == r.epoch[1].valid.loss &&
                    again.value[METRIC_AUC] == r.epoch[1].valid.value[METRIC_AUC]);
        train_result_free(&r);
        remove_dir(out);
    }
}

static void test_one_worker_gives_the_same_bits(void **state)
{
    (void)state;
    for (size_t m = 0; model_at(m) != NULL; m++) {
        char *first = NULL;
        for (uint32_t servers = 1; servers <= 3; servers++) {
            char *out = model_dir("m");
            struct train_options o = options(model_at(m), out);
            o.servers = servers;
            struct train_result r = run(&o);
            char *text = manifest(out);
            if (first != NULL)
                assert_string_equal(first, text);
            else
                first = strdup(text);
            free(text);
            train_result_free(&r);
            remove_dir(out);
        }
        free(first);
    }
}

static void test_going_on_is_as_if_never_stopped(void **state)
{
    (void)state;
    for (size_t m = 0; model_at(m) != NULL; m++) {
        char *whole = model_dir("whole"), *half = model_dir("half");
        struct train_options o = options(model_at(m), whole);
        struct train_result r = run(&o);
        train_result_free(&r);
        o.epochs = 1;
        o.model_out = half;
        r = run(&o);
        train_result_free(&r);
        o.model_in = half;
        assert_int_equal(train_take_settings(half, &o.model), PARAMO_OK);
        r = run(&o);
        train_result_free(&r);
        char *a = manifest(whole), *b = manifest(half);
        assert_string_equal(a, b);
        free(a);
        free(b);
        remove_dir(whole);
        remove_dir(half);
    }
}

/* A share of the negative rows: fewer are learned, predictions stay those for all rows, and so is the guess that the
 * model is compared with. The bits are the same with any number of servers. */
static void test_negative_rows_left_out_do_not_shift_predictions(void **state)
{
    (void)state;
    char *first = NULL;
    for (uint32_t servers = 1; servers <= 2; servers++) {
        char *out = model_dir("m");
        struct train_options o = options(&model_lr, out);
        o.negatives = 0.1;
        o.servers = servers;
        o.shuffle = 100;
        struct train_result r = run(&o);
        const struct train_epoch *e = &r.epoch[r.epochs - 1];
        const uint64_t negatives = e->rows - e->positives;
        assert_true(r.epoch[0].rows != e->rows); /* others in each epoch */
        assert_true(negatives > 750 && negatives < 1250 && e->positives > 9000);
        assert_true(e->valid.value[METRIC_CALIBRATION] > 0.95 && e->valid.value[METRIC_CALIBRATION] < 1.05);
        assert_true(e->valid.value[METRIC_AUC] > 0.8 && e->valid.loss < 0.55);
        assert_true(e->valid.base > 0.68 && e->valid.base < 0.70); /* half of all rows are positive */
        char *text = manifest(out);
        if (first != NULL)
            assert_string_equal(first, text);
        else
            first = strdup(text);
        free(text);
        train_result_free(&r);
        remove_dir(out);
    }
    free(first);
}

static void test_many_workers_learn_each_row_once(void **state)
{
    (void)state;
    struct train_options o = options(&model_lr, NULL);
    o.workers = 3;
    o.servers = 2;
    o.epochs = 3;
    struct train_result r = run(&o);
    assert_int_equal(r.epochs, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(r.epoch[i].rows, 20000);
    assert_true(r.epoch[2].valid.value[METRIC_AUC] > 0.8);
    train_result_free(&r);
}

static void test_rows_under_way_are_bounded_whatever_the_workers(void **state)
{
    (void)state;
    assert_int_equal(train_batch(1, 1), 256);
    assert_int_equal(train_batch(2, 1), 128);
    assert_int_equal(train_batch(8, 1), 32);
    assert_int_equal(train_batch(1, 15), 32);
    assert_int_equal(train_batch(1000, 64), 16);
    assert_int_equal(train_first_batch(1, 1), 32);
    assert_int_equal(train_first_batch(2, 1), 16);
    assert_int_equal(train_first_batch(8, 1), 16);
    assert_int_equal(loader_batch_rows(32, 256, 0, 0), 32);
    assert_int_equal(loader_batch_rows(32, 256, 0, 1), 64);
    assert_int_equal(loader_batch_rows(32, 256, 1, 2), 128);
    assert_int_equal(loader_batch_rows(32, 256, 4, 0), 256);
    assert_int_equal(loader_batch_rows(32, 256, UINT32_MAX, UINT32_MAX), 256);
    assert_int_equal(loader_batch_rows(32, 100, 0, 2), 100);
    assert_int_equal(loader_batch_rows(32, 16, 0, 0), 16);
    struct model_info info;
    model_info_init(&info, &model_fm);
    assert_true(model_alpha(&info, 1, 1) == 0.1 && model_alpha(&info, 1, 2) == 0.1);
    assert_true(model_alpha(&info, 1, 8) == 0.05 && model_beta(&info, 1) == 10);
    assert_true(model_alpha(&info, 0, 1) == 0.25 && model_alpha(&info, 0, 8) == 0.25 &&
                model_beta(&info, 0) == 5);
    info.row_features = MODEL_LONG_ROW; /* longer rows have shorter steps, those of pairs twice */
    assert_true(model_alpha(&info, 0, 1) == 0.25 && model_alpha(&info, 1, 1) == 0.1);
    info.row_features = 64; /* of 5 values each, w and v */
    info.setting[0] = 4;
    assert_int_equal(train_batch_fitting(&info, 256, 32), 256);
    info.setting[0] = 15;
    assert_int_equal(train_batch_fitting(&info, 256, 32), 128);
    assert_int_equal(train_batch_fitting(&info, 100, 32), 100);
    info.setting[0] = 511;
    assert_int_equal(train_batch_fitting(&info, 256, 32), 32);
    info.row_features = 2 * MODEL_LONG_ROW;
    assert_true(model_alpha(&info, 0, 1) == 0.25 / 4 && model_alpha(&info, 1, 8) == 0.05 / 16);
    info.row_features = 50 * MODEL_LONG_ROW; /* not measured: as the longest that were */
    assert_true(model_alpha(&info, 0, 1) == 0.25 / 4 && model_alpha(&info, 1, 8) == 0.05 / 16);
    (void)snprintf(info.optimizer[1].name, sizeof info.optimizer[1].name, "sgd");
    assert_true(model_alpha(&info, 1, 8) == optimizers_find("sgd")->alpha && model_beta(&info, 1) == 1);
    info.row_features = 0;
    char *out = model_dir("m");
    struct train_options o = options(&model_fm, out);
    o.batch = 0;
    o.model.optimizer[1].alpha = 0;
    o.workers = 4;
    struct train_result r = run(&o);
    struct model m;
    assert_int_equal(r.batch, 64);
    assert_int_equal(modelio_open(out, &m), PARAMO_OK);
    assert_int_equal(m.info.batch, 64);
    assert_true(m.info.optimizer[1].alpha == 0.05 && r.alpha[1] == 0.05);
    modelio_close(&m);
    train_result_free(&r);
    remove_dir(out);
}

static void test_divergence_is_warned_of(void **state)
{
    (void)state;
    struct train_options o = options(&model_lr, NULL);
    struct train_result r = run(&o);
    assert_string_equal(r.warning, "");
    assert_int_equal(r.epoch[0].positives, r.epoch[1].positives);
    assert_true(r.epoch[0].guess_loss > 0.6 && r.epoch[0].guess_loss < 0.6932);
    train_result_free(&r);
    o.model.optimizer[0] = (struct model_optimizer){"sgd", 5, 1, 0, 0};
    r = run(&o);
    assert_non_null(strstr(r.warning, "training diverges"));
    assert_true(r.epoch[1].loss > r.epoch[1].guess_loss);
    train_result_free(&r);
}

static void test_early_stop_keeps_the_best(void **state)
{
    (void)state;
    char *out = model_dir("m");
    write_log(data, 1, 5000, 3000); /* it can learn the noise by heart */
    struct train_options o = options(&model_lr, out);
    o.model.optimizer[0].alpha = 0.3;
    o.epochs = 200;
    o.patience = 2;
    struct train_result r = run(&o);
    assert_true(r.stopped_early && r.epochs < 200 && r.best_epoch == r.epochs - 2 && r.best_epoch > 0);
    struct metrics_result saved = measure(out);
    assert_true(saved.loss == r.epoch[r.best_epoch - 1].valid.loss);
    train_result_free(&r);
    remove_dir(out);
}

static struct train_options held_out_options(char *out)
{
    struct train_options o = options(&model_lr, out);
    o.valid_n = 0;
    o.hold_out = 10;
    o.epochs = 0;
    o.patience = TRAIN_PATIENCE;
    return o;
}

static void test_a_tenth_is_held_out_whatever_the_workers(void **state)
{
    (void)state;
    uint64_t rows = 0, positives = 0;
    for (uint32_t workers = 1; workers <= 3; workers++) {
        struct train_options o = held_out_options(NULL);
        o.workers = workers;
        o.epochs = 3;
        struct train_result r = run(&o);
        assert_int_equal(r.hold_out, 10);
        for (size_t i = 0; i < 3; i++) {
            const struct train_epoch *e = &r.epoch[i];
            assert_true(e->has_valid && e->valid.rows > 1700 && e->valid.rows < 2300);
            assert_int_equal(e->rows + e->valid.rows, 20000);
            assert_true((rows == 0 || e->valid.rows == rows) &&
                        (rows == 0 || e->valid.positives == positives));
            assert_true(e->valid.loss < 0.6 && e->valid.value[METRIC_ACCURACY] > 0.7);
            assert_true(fabs(e->valid.value[METRIC_CALIBRATION] - 1) < 0.2);
            rows = e->valid.rows;
            positives = e->valid.positives;
        }
        assert_true(r.best_epoch > 0 && r.best_loss < r.base_loss);
        assert_false(train_nothing_learned(&r));
        train_result_free(&r);
    }
}

static void test_the_best_epoch_is_saved_and_ends_the_training(void **state)
{
    (void)state;
    char *out = model_dir("m"), *again = model_dir("n");
    write_log(data, 1, 5000, 3000); /* it can learn the noise by heart */
    struct train_options o = held_out_options(out);
    struct train_result r = run(&o);
    assert_true(r.stopped_early && r.epochs < TRAIN_EPOCHS && r.best_epoch == r.epochs - 2);
    for (size_t i = 0; i < r.epochs; i++)
        assert_true(r.epoch[i].valid.loss >= r.best_loss);
    o.epochs = r.best_epoch;
    o.model_out = again;
    train_result_free(&r);
    r = run(&o);
    char *a = manifest(out), *b = manifest(again);
    assert_string_equal(a, b);
    free(a);
    free(b);
    train_result_free(&r);
    remove_dir(out);
    remove_dir(again);
}

static void test_a_set_too_small_to_hold_rows_out(void **state)
{
    (void)state;
    for (size_t rows = 1; rows <= 5; rows++) {
        write_log(data, 1, rows, 0);
        struct train_options o = held_out_options(NULL);
        struct train_result r = run(&o);
        assert_true(r.epochs == 1 && r.rows == rows && r.hold_out == 0 && r.best_epoch == 0);
        assert_false(train_nothing_learned(&r));
        train_result_free(&r);
    }
}

static void test_nothing_to_learn_is_said_of_the_held_out_rows(void **state)
{
    (void)state;
    char *out = model_dir("m");
    uint64_t seed = 5;
    FILE *f = fopen(data, "w");
    for (unsigned i = 0; i < 40000; i++)
        (void)fprintf(f, "%d %u:1\n", draw(&seed) % 10 < 3, (unsigned)(draw(&seed) % 400));
    (void)fclose(f);
    struct train_options o = held_out_options(out);
    struct train_result r = run(&o);
    assert_true(train_nothing_learned(&r) && r.saved);
    assert_non_null(strstr(r.warning, "nothing is learned: log-loss 0."));
    assert_non_null(strstr(r.warning, "on the held-out rows"));
    train_result_free(&r);
    remove_dir(out);
}

static void test_later_epochs_are_shuffled_by_the_seed(void **state)
{
    (void)state;
    char *out = model_dir("m"), *first = NULL;
    double plain[2] = {0}, shuffled[2] = {0};
    for (uint32_t run_number = 0; run_number < 3;
         run_number++) { /* in order, shuffled, and again on more servers */
        struct train_options o = options(&model_lr, out);
        o.shuffle = run_number > 0 ? 1000 : 0;
        o.servers = run_number > 1 ? 3 : 1;
        struct train_result r = run(&o);
        double *losses = run_number > 0 ? shuffled : plain;
        losses[0] = r.epoch[0].loss;
        losses[1] = r.epoch[1].loss;
        assert_int_equal(r.epoch[1].rows, 20000);
        char *text = manifest(out);
        if (run_number == 1)
            first = strdup(text);
        if (run_number == 2)
            assert_string_equal(first, text);
        free(text);
        train_result_free(&r);
        remove_dir(out);
        out = model_dir("m");
    }
    assert_true(plain[0] == shuffled[0] && plain[1] != shuffled[1]);
    free(first);
    free(out);
}

static void test_sorted_labels_are_noticed(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 2; workers++) {
        struct train_options o = held_out_options(NULL);
        o.workers = workers;
        write_log(data, 1, 20000, 0);
        struct train_result r = run(&o);
        assert_false(r.sorted);
        train_result_free(&r);
        FILE *f = fopen(data, "w");
        for (unsigned i = 0; i < 20000; i++) /* its parts are of one class, all but one */
            (void)fprintf(f, "%d %u:1\n", i < 7000, i % 400);
        (void)fclose(f);
        r = run(&o);
        assert_true(r.sorted);
        train_result_free(&r);
    }
}

static void test_failures_leave_nothing_behind(void **state)
{
    (void)state;
    struct train_result r;
    char *out = model_dir("m");
    struct train_options o = options(&model_lr, out);
    FILE *f = fopen(data, "a");
    (void)fputs("1 2:3:four\n", f);
    (void)fclose(f);
    assert_int_equal(train_run(&o, &r), PARAMO_E_FORMAT);
    assert_non_null(strstr(paramo_last_error(), ":20001"));
    train_result_free(&r);
    struct model m;
    assert_int_equal(modelio_open(out, &m), PARAMO_E_NOT_FOUND);
    assert_int_not_equal(remove(out), 0); /* not even the directory */
    o.reader.skip_bad = 1;
    r = run(&o);
    assert_int_equal(r.read.bad_lines, 1);
    train_result_free(&r);
    remove_dir(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_learns_and_saves_what_it_validated, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_worker_gives_the_same_bits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_going_on_is_as_if_never_stopped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_negative_rows_left_out_do_not_shift_predictions, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_many_workers_learn_each_row_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rows_under_way_are_bounded_whatever_the_workers, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_divergence_is_warned_of, setup, teardown),
        cmocka_unit_test_setup_teardown(test_early_stop_keeps_the_best, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_tenth_is_held_out_whatever_the_workers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_best_epoch_is_saved_and_ends_the_training, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_set_too_small_to_hold_rows_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_to_learn_is_said_of_the_held_out_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_later_epochs_are_shuffled_by_the_seed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sorted_labels_are_noticed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failures_leave_nothing_behind, setup, teardown),
    };
    return cmocka_run_group_tests_name("train", tests, NULL, NULL);
}
