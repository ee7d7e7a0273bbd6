/* Features that leave the model: which, when, and from which tables. */
#include "learn/support_learn.h"
#include "learn/train/train.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Part k shows the id 5000 + k in each row, and one of nine ids that come all the time. */
enum { PARTS = 40, PART_ROWS = 20, LINE = 20, OWN = 5000, COMMON = 9001, COMMONS = 9 };
static char *dir, data[4096], other[4096];

static void write_log(const char *path, unsigned own)
{
    uint64_t seed = own;
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (unsigned i = 0; i < PARTS * PART_ROWS; i++) {
        const unsigned id = COMMON + (unsigned)(draw(&seed) % COMMONS);
        assert_int_equal(
            fprintf(f, "%d 0:%u:1 1:%u:1\n", draw(&seed) % 9 < id - COMMON, own + i / PART_ROWS, id), LINE);
    }
    (void)fclose(f);
}

static int setup(void **state)
{
    (void)state;
    dir = new_dir();
    (void)snprintf(data, sizeof data, "%s/data", dir);
    (void)snprintf(other, sizeof other, "%s/other", dir);
    write_log(data, OWN);
    write_log(other, OWN + PARTS);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove_dir(dir);
    return 0;
}

static char *model_dir(const char *name)
{
    char *path;
    if (asprintf(&path, "%s-%s", dir, name) < 0)
        abort();
    return path;
}

static struct train_options options(const char *const *files, const char *model, uint32_t expire,
                                    const char *out)
{
    struct train_options o = {.data = files,
                              .data_n = 1,
                              .model_out = out,
                              .epochs = 1,
                              .batch = 8,
                              .servers = 2,
                              .workers = 1,
                              .ahead = 1,
                              .expire = expire,
                              .quiet = 2};
    reader_options_init(&o.reader);
    o.reader.part_bytes = PART_ROWS * LINE;
    model_info_init(&o.model, model_find(model));
    (void)strcpy(o.model.data_format, "auto");
    o.model.seed = 1;
    return o;
}

static void train(const struct train_options *o)
{
    struct train_result r;
    if (train_run(o, &r) != PARAMO_OK)
        fail_msg("%s", paramo_last_error());
    train_result_free(&r);
}

static int has(const struct model_table *t, uint64_t key)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->keys[i] == key)
            return 1;
    return 0;
}

/* Parts from `first` on have their ids in every table of features, those before it in none. */
static void check(const char *path, unsigned first, unsigned parts)
{
    struct model m;
    assert_int_equal(modelio_open(path, &m), PARAMO_OK);
    for (size_t t = 0; t < m.n; t++) {
        if (model_fixed_rows(&m.info, t) > 0)
            continue;
        for (unsigned k = 0; k < parts; k++)
            if (has(&m.table[t], OWN + k) != (k >= first))
                fail_msg("%s: table %zu %s the id of part %u", m.info.ops->name, t,
                         k < first ? "has" : "lacks", k);
        for (unsigned i = 0; i < COMMONS; i++)
            assert_true(has(&m.table[t], COMMON + i));
        assert_int_equal(has(&m.table[t], BATCH_BIAS_KEY), m.info.ops->table[t].bias);
    }
    if (m.scale.file)
        assert_int_equal(m.scale.n + 1, m.table[0].n);
    modelio_close(&m);
}

/* The last sweep is at the last part's begin, at time PARTS; part k was learned at time k + 1. */
static void idle_features_leave(void **state)
{
    (void)state;
    enum { N = 8 };
    static const char *const models[] = {"lr", "fm", "fwfm"};
    const char *const files[] = {data};
    char *out = model_dir("idle");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct train_options o = options(files, models[i], N, out);
        o.model.scale = i == 0 ? SCALE_STD : SCALE_NONE;
        o.model.factor_after = i == 2 ? 2 : 0;
        train(&o);
        check(out, PARTS - N - 1, PARTS);
    }
    remove_dir(out);
}

static void several_workers(void **state)
{
    (void)state;
    const char *const files[] = {data};
    char *out = model_dir("workers");
    struct train_options o = options(files, "fm", 4, out);
    struct model m;
    o.workers = 3;
    o.epochs = 2;
    train(&o);
    assert_int_equal(modelio_open(out, &m), PARAMO_OK);
    assert_in_range(m.table[0].n, COMMONS + 2,
                    COMMONS + 1 + 16); /* the last five parts, and those in flight */
    for (unsigned i = 0; i < COMMONS; i++)
        assert_true(has(&m.table[0], COMMON + i));
    modelio_close(&m);
    remove_dir(out);
}

/* What a job does not show expires, too, though an earlier job learned it; and without --expire nothing does. */
static void features_of_a_model_leave(void **state)
{
    (void)state;
    const char *const first[] = {data}, *const second[] = {other};
    char *before = model_dir("before"), *out = model_dir("after");
    struct train_options o = options(first, "fm", 0, before);
    train(&o);
    check(before, 0, PARTS);
    o = options(second, "fm", 0, out);
    o.model_in = before;
    train(&o);
    check(out, 0, 2 * PARTS);
    o.expire = 30;
    train(&o);
    check(out, 2 * PARTS - 1 - 30 - PARTS % (30 / 4),
          2 * PARTS); /* the last sweep is at a multiple of 30 / 4 */
    remove_dir(before);
    remove_dir(out);
}

/* There is room again when features have left. */
static void room_comes_back(void **state)
{
    (void)state;
    const char *const files[] = {data};
    char *out = model_dir("room");
    struct model m;
    for (uint32_t expire = 0; expire <= 4; expire += 4) {
        struct train_options o = options(files, "lr", expire, out);
        o.admission = (struct admission_rule){.kind = ADMIT_SHARE, .share = 1, .most = COMMONS + 8};
        train(&o);
        assert_int_equal(modelio_open(out, &m), PARAMO_OK);
        assert_true(m.table[0].n <= COMMONS + 8 + 1);
        assert_int_equal(has(&m.table[0], OWN + PARTS - 1), expire > 0);
        modelio_close(&m);
    }
    remove_dir(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_features_leave), cmocka_unit_test(several_workers),
        cmocka_unit_test(features_of_a_model_leave), cmocka_unit_test(room_comes_back)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
