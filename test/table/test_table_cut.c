/* A cut gives out what the table was, each row once, whatever happens to it meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "table/table_cut.h"

enum { KEYS = 16000, DENSE_ROWS = 6000, WIDTH = 64 };

/* What the cut must give out, and what it has; values of a row as bytes. */
static struct {
    struct table *t;
    bool var, dense;
    size_t row; /* values of a row with state */
    bool there[KEYS];
    uint32_t len[KEYS];
    float was[KEYS][WIDTH];
    unsigned given[KEYS];
    uint64_t random;
} w;

static uint64_t draw(uint64_t below)
{
    w.random = w.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (w.random >> 33) % below;
}

static uint64_t key_of(size_t i)
{
    return w.dense ? i : i * UINT64_C(0x9e3779b97f4a7c15); /* 0 among them */
}

static size_t index_of_key(uint64_t key)
{
    return (size_t)(w.dense ? key : key * UINT64_C(0xf1de83e19937733d));
}

static size_t keys_count(void)
{
    return w.dense ? DENSE_ROWS : KEYS;
}

static void got(void *arg, uint64_t key, const void *row, uint32_t values)
{
    size_t i = index_of_key(key);
    (void)arg;
    assert_true(i < keys_count());
    assert_true(w.there[i]); /* else it came to be after the cut */
    assert_int_equal(w.given[i]++, 0);
    assert_int_equal(values, w.var ? w.len[i] : w.row);
    if (values)
        assert_memory_equal(row, w.was[i], values * sizeof(float));
}

static void change(unsigned what, size_t i)
{
    uint64_t key = key_of(i);
    float v[WIDTH];
    uint32_t len = (uint32_t)draw(4);
    for (size_t k = 0; k < WIDTH; k++)
        v[k] = (float)draw(1000) / 8;
    if (w.var && what < 5) {
        assert_int_equal(table_var_put(w.t, &key, 1, v, &len), PARAMO_OK);
        return;
    }
    uint32_t row;
    switch (what) {
    case 0:
        assert_int_equal(table_push(w.t, &key, 1, v), PARAMO_OK);
        break;
    case 1:
        assert_int_equal(table_put_rows(w.t, &key, 1, false, v), PARAMO_OK);
        break;
    case 2:
        assert_int_equal(table_pull(w.t, &key, 1, v, true), PARAMO_OK);
        break;
    case 3:
        assert_int_equal(table_pushpull(w.t, &key, 1, v), PARAMO_OK);
        break;
    case 4:
        assert_int_equal(table_resolve(w.t, &key, 1, &row, true), PARAMO_OK);
        assert_int_equal(table_push_rows(w.t, &key, &row, 1, v), PARAMO_OK);
        break;
    default:
        if (!w.dense)
            assert_int_equal(table_delete(w.t, &key, 1, NULL), PARAMO_OK);
    }
}

/* What is there now is what the cut must give out. */
static void remember(void)
{
    memset(w.there, 0, sizeof w.there);
    memset(w.given, 0, sizeof w.given);
    for (size_t i = 0; i < keys_count(); i++) {
        uint64_t key = key_of(i);
        size_t total;
        if (w.var) {
            table_var_lens(w.t, &key, 1, &w.len[i], &total);
            table_var_pull(w.t, &key, 1, w.was[i]);
            w.there[i] = w.len[i] > 0; /* a row without values looks like none */
        } else {
            w.there[i] = table_get_rows(w.t, &key, 1, true, w.was[i]) == PARAMO_OK;
        }
    }
}

static void run(const paramo_table_options *options, uint64_t seed)
{
    memset(&w, 0, sizeof w);
    w.random = seed;
    w.var = options->kind == PARAMO_TABLE_VAR;
    w.dense = options->kind == PARAMO_TABLE_DENSE;
    w.row = w.var ? 0 : table_row_values(options, true);
    assert_true(w.row <= WIDTH);
    assert_int_equal(table_create(options, seed, NULL, &w.t), PARAMO_OK);
    if (w.dense) { /* with holes */
        assert_int_equal(table_dense_own(w.t, 100, 3000), PARAMO_OK);
        assert_int_equal(table_dense_own(w.t, 4000, 2000), PARAMO_OK);
    }
    for (size_t n = draw(9000); n--;)
        if (!w.dense)
            change((unsigned)draw(w.var ? 5 : 6), (size_t)draw(KEYS));
    for (unsigned cuts = 0; cuts < 3; cuts++) {
        struct table_cut *cut;
        bool done = false;
        size_t step = 1000 + (size_t)draw(100000);
        remember();
        if (w.var) /* rows without values are rows: they are given out, too */
            for (size_t i = 0; i < KEYS; i++)
                w.there[i] = true;
        assert_int_equal(table_cut_open(w.t, TABLE_CUT_ALL, false, got, NULL, &cut), PARAMO_OK);
        struct table_cut *second;
        assert_int_equal(table_cut_open(w.t, TABLE_CUT_ALL, false, got, NULL, &second), PARAMO_E_INVALID);
        bool clear = draw(4) == 0;
        while (!done) {
            for (size_t n = draw(600); n--;) {
                size_t i = (size_t)draw(keys_count());
                uint64_t key = key_of(i);
                if (w.dense && !(i >= 100 && i < 3100) && !(i >= 4000))
                    continue;
                bool holds = table_cut_holds(cut, &key, 1);
                unsigned before = w.given[i];
                change((unsigned)draw(6), i);
                assert_true(holds || w.given[i] == before);
            }
            if (clear && draw(5) == 0) {
                table_clear(w.t);
                assert_false(table_cut_holds(cut, NULL, 0));
            }
            assert_int_equal(table_cut_step(cut, step, &done), PARAMO_OK);
        }
        assert_false(table_cut_holds(cut, NULL, 0));
        for (size_t i = 0; i < keys_count(); i++)
            if (w.there[i] && !(w.var && !w.len[i]))
                assert_int_equal(w.given[i], 1);
        table_cut_close(cut);
    }
    table_destroy(w.t);
}

static void test_small(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2; seed++) {
        run(&(paramo_table_options){.size = sizeof(paramo_table_options), .dim = 1}, seed);
        run(&(paramo_table_options){.size = sizeof(paramo_table_options),
                                    .dim = 1,
                                    .optimizer = PARAMO_OPT_FTRL,
                                    .alpha = 0.1F,
                                    .beta = 1},
            seed);
    }
}

static void test_slab(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2; seed++)
        run(&(paramo_table_options){.size = sizeof(paramo_table_options),
                                    .dim = 9,
                                    .optimizer = PARAMO_OPT_ADAGRAD,
                                    .alpha = 0.1F,
                                    .beta = 1},
            seed);
}

static void test_dense(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2; seed++)
        run(&(paramo_table_options){.size = sizeof(paramo_table_options),
                                    .kind = PARAMO_TABLE_DENSE,
                                    .rows = DENSE_ROWS,
                                    .dim = 5,
                                    .optimizer = PARAMO_OPT_ADAGRAD,
                                    .alpha = 0.1F,
                                    .beta = 1},
            seed);
}

static void test_var(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2; seed++)
        run(&(paramo_table_options){.size = sizeof(paramo_table_options),
                                    .kind = PARAMO_TABLE_VAR,
                                    .dim = 1,
                                    .optimizer = PARAMO_OPT_ASSIGN},
            seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_slab),
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_var),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
