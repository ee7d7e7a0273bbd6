/* Variable-length tables: beside a model under random calls with failing memory, and rule by rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support_reference.h"
#include "table/table.h"

static struct table *make(paramo_optimizer optimizer, paramo_dtype dtype, const struct table_alloc *alloc)
{
    paramo_table_options o;
    table_options_default(&o);
    o.kind = PARAMO_TABLE_VAR;
    o.optimizer = optimizer;
    o.dtype = dtype;
    struct table *t;
    assert_int_equal(table_create(&o, 9, alloc, &t), PARAMO_OK);
    return t;
}

enum { UNIVERSE = 60, LEN_MAX = 9, STEPS = 3000 };

struct model {
    bool there[UNIVERSE];
    uint32_t lens[UNIVERSE];
    int32_t values[UNIVERSE][LEN_MAX];
};

static void assert_agrees(const struct model *m, const struct table *t)
{
    uint64_t keys[UNIVERSE];
    uint32_t lens[UNIVERSE];
    int32_t vals[UNIVERSE * LEN_MAX];
    uint64_t rows = 0;
    size_t values = 0;
    uint64_t nonzero = 0;
    for (size_t i = 0; i < UNIVERSE; i++) {
        keys[i] = i * 3;
        rows += m->there[i];
        values += m->lens[i];
        for (uint32_t j = 0; j < m->lens[i]; j++) {
            nonzero += m->values[i][j] != 0;
        }
    }
    size_t total;
    table_var_lens(t, keys, UNIVERSE, lens, &total);
    assert_int_equal(total, values);
    assert_memory_equal(lens, m->lens, sizeof lens);
    table_var_pull(t, keys, UNIVERSE, vals);
    const int32_t *at = vals;
    for (size_t i = 0; i < UNIVERSE; i++) {
        assert_memory_equal(at, m->values[i], lens[i] * sizeof *at);
        at += lens[i];
    }
    assert_int_equal(table_rows(t), rows);
    assert_int_equal(count_nonzero(t), nonzero);
}

static void run(paramo_optimizer optimizer, uint64_t seed)
{
    static struct model m;
    memset(&m, 0, sizeof m);
    struct failing_alloc f;
    failing_alloc_init(&f);
    struct table *t = make(optimizer, PARAMO_I32, &f.alloc);
    for (unsigned step = 0; step < STEPS; step++) {
        uint64_t keys[UNIVERSE];
        uint32_t lens[UNIVERSE];
        int32_t vals[UNIVERSE * LEN_MAX];
        size_t which[UNIVERSE];
        size_t n = 0;
        size_t total = 0;
        bool fits = true;
        bool assign = optimizer == PARAMO_OPT_ASSIGN || draw(&seed) % 4 == 0;
        bool same = draw(&seed) % 4 != 0; /* keep lengths: otherwise add would nearly always fail */
        for (size_t i = draw(&seed) % UNIVERSE; i < UNIVERSE; i += 1 + draw(&seed) % 5) {
            which[n] = i;
            keys[n] = i * 3;
            lens[n] = m.there[i] && same ? m.lens[i] : (uint32_t)(draw(&seed) % (LEN_MAX + 1));
            fits &= assign || !m.there[i] || lens[n] == m.lens[i];
            for (uint32_t j = 0; j < lens[n]; j++) {
                vals[total++] = (int32_t)(draw(&seed) % 7);
            }
            n++;
        }
        if (draw(&seed) % 8 == 0) {
            n = n < 5 ? n : 5;
            size_t removed;
            assert_int_equal(table_delete(t, keys, n, &removed), PARAMO_OK);
            for (size_t i = 0; i < n; i++) {
                removed -= m.there[which[i]];
                m.there[which[i]] = false;
                m.lens[which[i]] = 0;
            }
            assert_int_equal(removed, 0);
        } else {
            f.fail_at = draw(&seed) % 3 == 0 ? 1 + draw(&seed) % 20 : 0;
            paramo_err err = assign && optimizer == PARAMO_OPT_ADD ? table_var_put(t, keys, n, vals, lens)
                                                                   : table_var_push(t, keys, n, vals, lens);
            f.fail_at = 0;
            if (err != PARAMO_E_MEMORY) {
                assert_int_equal(err, fits ? PARAMO_OK : PARAMO_E_SIZE_MISMATCH);
            }
            const int32_t *from = vals;
            for (size_t i = 0; i < n && err == PARAMO_OK; i++) {
                size_t k = which[i];
                for (uint32_t j = 0; j < lens[i]; j++) {
                    m.values[k][j] = assign || !m.there[k] ? from[j] : m.values[k][j] + from[j];
                }
                from += lens[i];
                m.there[k] = true;
                m.lens[k] = lens[i];
            }
        }
        if (draw(&seed) % 200 == 0) {
            table_clear(t);
            memset(&m, 0, sizeof m);
        }
        assert_agrees(&m, t);
    }
    table_destroy(t);
    assert_int_equal(f.live_bytes, 0);
    assert_int_equal(f.live_blocks, 0);
}

static void is_the_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        run(PARAMO_OPT_ASSIGN, seed);
        run(PARAMO_OPT_ADD, seed);
    }
}

static void rules_are_kept(void **state)
{
    (void)state;
    struct table *t = make(PARAMO_OPT_ADD, PARAMO_F32, NULL);
    uint64_t keys[] = {0, UINT64_MAX};
    uint32_t lens[] = {2, 0};
    float vals[] = {1, 2, 3};
    assert_int_equal(table_var_push(t, keys, 2, vals, lens), PARAMO_OK);
    assert_int_equal(table_rows(t), 2); /* a row without values is a row */
    lens[0] = 3;
    assert_int_equal(table_var_push(t, keys, 1, vals, lens), PARAMO_E_SIZE_MISMATCH);
    assert_non_null(strstr(err_text(), "key 0"));
    uint64_t again[] = {5, 5};
    assert_int_equal(table_var_push(t, again, 2, vals, (uint32_t[]){1, 1}), PARAMO_E_KEYS_REPEATED);
    again[1] = 4;
    assert_int_equal(table_var_push(t, again, 2, vals, (uint32_t[]){1, 1}), PARAMO_E_KEYS_UNSORTED);
    vals[1] = -__builtin_inff();
    lens[0] = 2;
    assert_int_equal(table_var_push(t, keys, 1, vals, lens), PARAMO_E_NUMERIC);
    assert_int_equal(table_rows(t), 2);
    uint32_t rows[2];
    assert_int_equal(table_push(t, keys, 2, vals), PARAMO_E_UNSUPPORTED);
    assert_int_equal(table_pull(t, keys, 2, vals, true), PARAMO_E_UNSUPPORTED);
    assert_int_equal(table_resolve(t, keys, 2, rows, true), PARAMO_E_UNSUPPORTED);
    assert_int_equal(table_get_rows(t, keys, 1, false, vals), PARAMO_E_UNSUPPORTED);
    assert_int_equal(table_put_rows(t, keys, 1, false, vals), PARAMO_E_UNSUPPORTED);
    assert_int_equal(table_push_columns(t, &(uint64_t){0}, 1, 0, 1, vals), PARAMO_E_UNSUPPORTED);
    uint64_t *all;
    size_t n;
    assert_int_equal(table_sorted_keys(t, &all, &n), PARAMO_OK);
    assert_int_equal(n, 2);
    assert_memory_equal(all, keys, sizeof keys);
    free(all);
    table_clear(t);
    assert_int_equal(table_sorted_keys(t, &all, &n), PARAMO_OK);
    assert_null(all);
    table_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_model),
        cmocka_unit_test(rules_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
