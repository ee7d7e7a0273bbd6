/* Factors after N sightings, and features that are admitted: which have rows on the servers, and that what was
 * measured is what is saved. */
#include "learn/eval/score.h"
#include "learn/support_learn.h"
#include "learn/train/chosen.h"
#include "learn/train/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

enum { ROWS = 1200, IDS = 300, AFTER = 5 };
static char *dir, data[4096], valid[4096];
static const char *const data_files[] = {data}, *const valid_files[] = {valid};
static unsigned shown[2 * IDS]; /* rows of `data` that show an id */

/* Two features a row, one of each field. Small ids are frequent: the largest are in no row. */
static void write_log(const char *path, uint64_t seed, unsigned rows)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (unsigned r = 0; r < rows; r++) {
        unsigned id[2];
        for (unsigned i = 0; i < 2; i++) {
            const double u = (double)draw_float(&seed);
            id[i] = i * IDS + (unsigned)(fabs(u * u * u * u) * IDS);
            if (path == data)
                shown[id[i]]++;
        }
        const double p = (id[0] + id[1]) % 3 == 0 ? 0.8 : 0.2;
        (void)fprintf(f, "%d 0:%u:1 1:%u:1\n", (double)draw_float(&seed) < 2 * p - 1, id[0], id[1]);
    }
    (void)fclose(f);
}

static int setup(void **state)
{
    (void)state;
    dir = new_dir();
    (void)snprintf(data, sizeof data, "%s/data", dir);
    (void)snprintf(valid, sizeof valid, "%s/valid", dir);
    write_log(data, 1, ROWS);
    write_log(valid, 2, ROWS / 2);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove_dir(dir);
    return 0;
}

static struct train_options options(const struct model_ops *model, uint32_t after, const char *out)
{
    struct train_options o = {.data = data_files,
                              .data_n = 1,
                              .valid = valid_files,
                              .valid_n = 1,
                              .model_out = out,
                              .epochs = 2,
                              .batch = 16,
                              .servers = 2,
                              .workers = 1,
                              .ahead = 1,
                              .quiet = 2};
    reader_options_init(&o.reader);
    o.reader.part_bytes = 4000; /* several parts */
    model_info_init(&o.model, model);
    (void)strcpy(o.model.data_format, "auto");
    o.model.seed = 1;
    o.model.factor_after = after;
    return o;
}

/* The loss of the best epoch, which is saved. */
static double train(const struct train_options *o)
{
    struct train_result r;
    if (train_run(o, &r) != PARAMO_OK)
        fail_msg("%s", paramo_last_error());
    const double loss = r.epoch[r.best_epoch - 1].valid.loss;
    train_result_free(&r);
    return loss;
}

/* Without validation rows, so that the last epoch's model is saved. */
static void train_last(struct train_options *o)
{
    struct train_result r;
    o->valid_n = 0;
    assert_int_equal(train_run(o, &r), PARAMO_OK);
    train_result_free(&r);
}

static double measure(const char *path)
{
    return learn_measure(path, valid_files).loss;
}

/* The ids with a row in a table, as flags. */
static void rows_of(const char *path, size_t table, uint8_t has[2 * IDS])
{
    struct model m;
    assert_int_equal(modelio_open(path, &m), PARAMO_OK);
    memset(has, 0, 2 * IDS);
    for (size_t i = 0; i < m.table[table].n; i++)
        if (m.table[table].keys[i] != BATCH_BIAS_KEY)
            has[m.table[table].keys[i]] = 1;
    modelio_close(&m);
}

static void check_rows(const char *path, unsigned weights_from, unsigned least)
{
    uint8_t weights[2 * IDS], factors[2 * IDS];
    unsigned without = 0;
    rows_of(path, 0, weights);
    rows_of(path, 1, factors);
    for (unsigned i = 0; i < 2 * IDS; i++) {
        assert_int_equal(weights[i], shown[i] >= weights_from);
        if (factors[i] != (shown[i] >= least))
            fail_msg("id %u was shown %u times and has %d rows of factors", i, shown[i], factors[i]);
        without += shown[i] > 0 && !factors[i];
    }
    assert_true(without > 20);
}

static char *model_dir(const char *name)
{
    char *path;
    if (asprintf(&path, "%s-%s", dir, name) < 0)
        abort();
    return path;
}

static void frequent_features_have_factors(void **state)
{
    (void)state;
    for (size_t m = 0; model_at(m) != NULL; m++) {
        if (model_at(m)->tables == 1)
            continue;
        char *out = model_dir("after");
        struct train_options o = options(model_at(m), AFTER, out);
        o.epochs = 1;
        o.ahead = 0; /* each batch is pulled when the one before is pushed */
        const double loss = train(&o);
        check_rows(out, 1, AFTER);
        if (!(fabs(measure(out) - loss) < 1e-9))
            fail_msg("%s: the model that is saved is not the one that was measured", model_at(m)->name);
        remove_dir(out);
    }
}

static void several_workers_count_together(void **state)
{
    (void)state;
    char *out = model_dir("workers");
    struct train_options o = options(model_find("fm"), AFTER, out);
    struct train_result r;
    o.workers = 3;
    o.valid_n = 0; /* the last epoch's model is saved */
    assert_int_equal(train_run(&o, &r), PARAMO_OK);
    train_result_free(&r);
    check_rows(out, 1, AFTER);
    remove_dir(out);
}

static void same_table(const struct model_table *a, const struct model_table *b)
{
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->keys, b->keys, a->n * sizeof *a->keys);
    assert_memory_equal(a->values, b->values, a->n * a->dim * sizeof *a->values);
}

/* Every feature in a batch was seen once. */
static void after_one_is_at_once(void **state)
{
    (void)state;
    char *out[] = {model_dir("none"), model_dir("one")};
    struct model m[2];
    for (uint32_t i = 0; i < 2; i++) {
        struct train_options o = options(model_find("fm"), i, out[i]);
        if (i == 1)
            o.admission = (struct admission_rule){.kind = ADMIT_COUNT, .count = 1, .bytes = 1 << 20};
        (void)train(&o);
        assert_int_equal(modelio_open(out[i], &m[i]), PARAMO_OK);
        assert_int_equal(m[i].info.factor_after, i);
    }
    same_table(&m[0].table[0], &m[1].table[0]);
    same_table(&m[0].table[1], &m[1].table[1]);
    for (size_t i = 0; i < 2; i++) {
        modelio_close(&m[i]);
        remove_dir(out[i]);
    }
}

/* Features that have factors keep them, and others need as many sightings as in a new job. */
static void a_model_goes_on(void **state)
{
    (void)state;
    char *first = model_dir("first"), *second = model_dir("second");
    uint8_t factors[2 * IDS];
    struct train_options o = options(model_find("fm"), AFTER, first);
    train_last(&o);
    static const unsigned after[] = {2 * AFTER, 2}, has[] = {AFTER, 2};
    for (unsigned k = 0; k < 2; k++) {
        o = options(model_find("fm"), after[k], second);
        o.model_in = first;
        train_last(&o);
        rows_of(second, 1, factors);
        for (unsigned i = 0; i < 2 * IDS; i++)
            assert_int_equal(factors[i], shown[i] >= has[k]);
    }
    remove_dir(first);
    remove_dir(second);
}

/* ---- admission ---- */

static void frequent_features_are_admitted(void **state)
{
    (void)state;
    for (size_t m = 0; model_at(m) != NULL; m++) {
        char *out = model_dir("admitted");
        struct train_options o = options(model_at(m), 0, out);
        o.admission = (struct admission_rule){.kind = ADMIT_COUNT, .count = 3, .bytes = 1 << 20};
        o.model.scale = m == 0 ? SCALE_STD : SCALE_NONE;
        const double loss = train(&o);
        if (model_at(m)->tables > 1)
            check_rows(out, 3, 3);
        if (!(fabs(measure(out) - loss) < 1e-9))
            fail_msg("%s: the model that is saved is not the one that was measured", model_at(m)->name);
        struct model saved;
        assert_int_equal(modelio_open(out, &saved), PARAMO_OK);
        if (m == 0)
            assert_int_equal(saved.scale.n + 1, saved.table[0].n); /* the bias has no scale */
        modelio_close(&saved);
        remove_dir(out);
    }
    char *out = model_dir("both");
    struct train_options o = options(model_find("fm"), AFTER, out);
    o.admission = (struct admission_rule){.kind = ADMIT_COUNT, .count = 2, .bytes = 1 << 20};
    o.ahead = 0;
    (void)train(&o);
    uint8_t factors[2 * IDS];
    rows_of(out, 1, factors);
    for (unsigned i = 0; i < 2 * IDS; i++) /* a sighting before it is admitted is not counted */
        if (factors[i] != (shown[i] > AFTER) && !(factors[i] && shown[i] == AFTER))
            fail_msg("id %u was shown %u times and has %d rows of factors", i, shown[i], factors[i]);
    remove_dir(out);
}

static void there_is_room_for_so_many(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 3; workers += 2) {
        char *out = model_dir("room");
        struct train_options o = options(model_find("fm"), 0, out);
        uint8_t has[2 * IDS];
        unsigned n = 0;
        o.admission = (struct admission_rule){.kind = ADMIT_SHARE, .share = 0.5, .most = 60};
        o.workers = workers;
        (void)train(&o);
        rows_of(out, 0, has);
        for (unsigned i = 0; i < 2 * IDS; i++)
            n += has[i];
        assert_in_range(n, 60 / workers, 60); /* one worker may have learned all */
        remove_dir(out);
    }
}

static void rows_move_to_the_front(void **state)
{
    (void)state;
    const uint64_t key[] = {2, 3, 5, 7, 11};
    const uint8_t keep[] = {0, 1, 0, 1, 1}, none[5] = {0};
    float rows[] = {1, 1, 2, 2, 3, 3, 4, 4, 5, 5};
    struct chosen c = {0};
    assert_int_equal(chosen_keys(&c, key, none, 5), PARAMO_OK);
    assert_int_equal(c.n, 0);
    assert_int_equal(chosen_keys(&c, key, keep, 5), PARAMO_OK);
    chosen_rows(keep, 5, 2, rows);
    assert_int_equal(c.n, 3);
    assert_memory_equal(c.key, ((const uint64_t[]){3, 7, 11}), 3 * sizeof *c.key);
    assert_memory_equal(rows, ((const float[]){2, 2, 4, 4, 5, 5}), 6 * sizeof *rows);
    chosen_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequent_features_have_factors), cmocka_unit_test(several_workers_count_together),
        cmocka_unit_test(after_one_is_at_once),           cmocka_unit_test(frequent_features_are_admitted),
        cmocka_unit_test(there_is_room_for_so_many),      cmocka_unit_test(a_model_goes_on),
        cmocka_unit_test(rows_move_to_the_front)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
