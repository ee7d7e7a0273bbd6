/* The model of a job that trains, as a reader of the job saves it. */
#include "learn/model/scale.h"
#include "learn/store/modelio.h"
#include "learn/store/shared_model.h"
#include "learn/support_learn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KEYS 200
#define DIM  3

static char *dir;
static paramo_node *node;
static paramo_worker *worker, *reader;

static int setup(void **state)
{
    (void)state;
    paramo_config config;
    paramo_config_init(&config);
    config.roles = PARAMO_ROLE_ALL;
    config.num_servers = 2;
    dir = new_dir();
    return paramo_start(&config, &node) || paramo_worker_open(node, 0, &worker) ||
           paramo_reader_open(node, 1, &reader);
}

static int teardown(void **state)
{
    (void)state;
    remove_dir(dir);
    return paramo_stop(node) != PARAMO_OK;
}

static struct model_info info_of(const char *name)
{
    struct model_info info;
    model_info_init(&info, model_find(name));
    for (size_t t = 0; t < info.ops->tables; t++) {
        info.optimizer[t].alpha = 0.125;
        info.optimizer[t].beta = 1;
        info.optimizer[t].l2 = 0;
    }
    info.hash_bits = 20;
    info.epochs = 3;
    info.rows = 12345;
    (void)snprintf(info.data_format, sizeof info.data_format, "libffm");
    return info;
}

/* Row i of key 7 i has the values i + first, i + first + 1, ... */
static void fill(const char *name, uint32_t dim, float first)
{
    paramo_table_options o;
    paramo_table *t;
    uint64_t keys[KEYS], ts;
    float vals[KEYS * DIM];
    paramo_kv kv;
    paramo_table_options_init(&o);
    o.dim = dim;
    o.optimizer = PARAMO_OPT_ASSIGN;
    paramo_kv_init(&kv);
    for (uint32_t i = 0; i < KEYS; i++) {
        keys[i] = 7 * i;
        for (uint32_t d = 0; d < dim; d++)
            vals[i * dim + d] = (float)(i + d) + first;
    }
    kv.keys = keys;
    kv.n = KEYS;
    kv.vals = vals;
    kv.vals_len = (size_t)KEYS * dim;
    assert_int_equal(paramo_table_open(worker, name, &o, &t), PARAMO_OK);
    assert_int_equal(paramo_push(worker, t, &kv, NULL, &ts), PARAMO_OK);
    assert_int_equal(paramo_wait(worker, ts, 0), PARAMO_OK);
    paramo_table_close(t);
}

static void has_rows(const struct model_table *t, uint32_t dim, float first)
{
    assert_int_equal(t->n, KEYS);
    assert_int_equal(t->dim, dim);
    assert_int_equal(t->state, 0);
    for (uint32_t i = 0; i < KEYS; i++) {
        const float *row = modelio_row(t, 7 * i);
        assert_non_null(row);
        for (uint32_t d = 0; d < dim; d++)
            assert_true(row[d] == (float)(i + d) + first);
    }
}

/* From before there is anything to a second state of the same model, with and without magnitudes. */
static void a_reader_saves_it(void **state)
{
    (void)state;
    struct model m;
    struct model_info info = info_of("fm");
    info.scale = SCALE_AUTO;
    info.setting[0] = DIM;
    assert_int_equal(model_row_values(&info, 1), DIM);
    assert_int_equal(shared_model_save(reader, dir), PARAMO_E_NO_TABLE);
    assert_int_equal(shared_model_put(reader, &info), PARAMO_E_NO_TABLE); /* a reader creates nothing */
    assert_int_equal(shared_model_put(worker, &info), PARAMO_OK);
    assert_int_equal(shared_model_save(reader, dir), PARAMO_E_NO_TABLE); /* the model's own are missing */
    fill("w", 1, 0.5f);
    fill("v", DIM, -0.25f);
    assert_int_equal(shared_model_save(reader, dir), PARAMO_OK);
    assert_int_equal(modelio_open(dir, &m), PARAMO_OK);
    assert_string_equal(m.info.ops->name, "fm");
    assert_true(m.info.hash_bits == 20 && m.info.epochs == 3 && m.info.rows == 12345 &&
                m.info.seed == info.seed);
    assert_string_equal(m.info.data_format, "libffm");
    has_rows(&m.table[0], 1, 0.5f);
    has_rows(&m.table[1], DIM, -0.25f);
    assert_null(m.scale.file);
    modelio_close(&m);

    fill("w", 1, 7); /* the workers go on */
    fill(SCALE_TABLE, scale_dim(SCALE_AUTO), 1);
    info.epochs = 4;
    assert_int_equal(shared_model_put(worker, &info), PARAMO_OK);
    assert_int_equal(shared_model_save(reader, dir), PARAMO_OK);
    assert_int_equal(modelio_open(dir, &m), PARAMO_OK);
    assert_int_equal(m.info.epochs, 4);
    has_rows(&m.table[0], 1, 7);
    has_rows(&m.scale, scale_dim(SCALE_AUTO), 1);
    modelio_close(&m);
}

/* Of a job that takes snapshots the last one is saved, whatever the workers have done since. */
static void a_snapshot_is_saved(void **state)
{
    (void)state;
    struct model m;
    struct model_info info = info_of("lr");
    info.scale = SCALE_AUTO;
    for (uint32_t epoch = 1; epoch <= 4; epoch++) {
        info.epochs = epoch;
        fill("w", 1, (float)epoch);
        fill(SCALE_TABLE, scale_dim(SCALE_AUTO), (float)epoch);
        assert_int_equal(shared_model_put(worker, &info), PARAMO_OK);
        assert_int_equal(shared_model_snapshot(worker, &info, 1), PARAMO_OK);
        info.epochs = 99;
        fill("w", 1, -7); /* the workers go on */
        fill(SCALE_TABLE, scale_dim(SCALE_AUTO), -7);
        assert_int_equal(shared_model_put(worker, &info), PARAMO_OK);
        assert_int_equal(shared_model_save(reader, dir), PARAMO_OK);
        assert_int_equal(modelio_open(dir, &m), PARAMO_OK);
        assert_int_equal(m.info.epochs, epoch);
        has_rows(&m.table[0], 1, (float)epoch);
        has_rows(&m.scale, scale_dim(SCALE_AUTO), (float)epoch);
        modelio_close(&m);
    }
}

/* What another program has put there is refused, and what was saved before stays. */
static void a_row_that_is_none(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
        paramo_err err;
    } wrong[] = {{"", "has not begun to train", PARAMO_E_NOT_FOUND},
                 {"{", "damaged", PARAMO_E_CORRUPT},
                 {"{\"format\": \"another\"}", "not the manifest", PARAMO_E_FORMAT},
                 {"{\"format\": \"paramo-model\", \"version\": 999}", "newer", PARAMO_E_FORMAT},
                 {"{\"format\": \"paramo-model\", \"version\": 1}", "'model' is missing", PARAMO_E_CORRUPT}};
    paramo_table *t;
    assert_int_equal(paramo_table_open(worker, SHARED_MODEL_TABLE, NULL, &t), PARAMO_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const uint64_t key = 0;
        uint32_t len = (uint32_t)strlen(wrong[i].text);
        uint64_t ts;
        struct model m;
        paramo_kv kv;
        paramo_kv_init(&kv);
        kv.keys = &key;
        kv.n = 1;
        kv.vals = (void *)(uintptr_t)wrong[i].text;
        kv.vals_len = len;
        kv.lens = &len;
        assert_int_equal(paramo_push(worker, t, &kv, NULL, &ts), PARAMO_OK);
        assert_int_equal(paramo_wait(worker, ts, 0), PARAMO_OK);
        assert_int_equal(shared_model_save(reader, dir), wrong[i].err);
        assert_non_null(strstr(paramo_last_error(), wrong[i].says));
        assert_int_equal(modelio_open(dir, &m), PARAMO_OK);
        modelio_close(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_reader_saves_it),
                                       cmocka_unit_test(a_row_that_is_none),
                                       cmocka_unit_test(a_snapshot_is_saved)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
