/* Tables whose rows lie in the index: the same bits as rows in slabs, all or nothing, repeats survived. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "support_reference.h"
#include "table/table.h"

static const struct {
    paramo_optimizer optimizer;
    paramo_dtype dtype;
    uint32_t dim, values; /* of a row with its state */
} kinds[] = {
    {PARAMO_OPT_ADD, PARAMO_F32, 1, 1},  {PARAMO_OPT_SGD, PARAMO_F32, 1, 1},
    {PARAMO_OPT_FTRL, PARAMO_F32, 1, 3}, {PARAMO_OPT_ASSIGN, PARAMO_F32, 3, 3},
    {PARAMO_OPT_ADD, PARAMO_I32, 1, 1},  {PARAMO_OPT_ADD, PARAMO_U8, 3, 3},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static struct table *make(size_t kind, paramo_init_kind init, const struct table_alloc *alloc)
{
    paramo_table_options o;
    table_options_default(&o);
    o.optimizer = kinds[kind].optimizer;
    o.dtype = kinds[kind].dtype;
    o.dim = kinds[kind].dim;
    o.init = init;
    o.init_a = 1;
    o.init_b = 3;
    struct table *t;
    assert_int_equal(table_create(&o, 4711, alloc, &t), PARAMO_OK);
    return t;
}

/* Each kind of small row against the reference, one key after the other; keys come and go. */
static void small_rows_learn_as_the_reference(void **state)
{
    (void)state;
    enum { UNIVERSE = 4000, BATCH = 500, ROUNDS = 60 };
    for (size_t kind = 0; kind < 3; kind++) {
        struct table *t = make(kind, PARAMO_INIT_UNIFORM, NULL);
        const paramo_table_options *o = table_get_options(t);
        static float model[UNIVERSE][3];
        static bool there[UNIVERSE];
        memset(there, 0, sizeof there);
        uint64_t random = 11 + kind;
        for (unsigned round = 0; round < ROUNDS; round++) {
            uint64_t keys[BATCH];
            uint32_t which[BATCH];
            float g[BATCH];
            float out[BATCH];
            size_t n = 0;
            for (uint32_t k = (uint32_t)(draw(&random) >> 40) % 7; k < UNIVERSE && n < BATCH;
                 k += 1 + (uint32_t)(draw(&random) >> 40) % 12) {
                which[n] = k;
                keys[n] = k * UINT64_C(0x1000000000) + 3;
                g[n++] = draw_float(&random);
            }
            for (size_t i = 0; i < n; i++) {
                float initial;
                uint64_t before = table_rows(t);
                assert_int_equal(table_pull(t, &keys[i], 1, &initial, false), PARAMO_OK);
                assert_int_equal(table_rows(t), before);
                float *row = model[which[i]];
                if (!there[which[i]]) {
                    row[0] = initial;
                    assert_true(initial >= 1 && initial < 3);
                    reference_start(o, row);
                    there[which[i]] = true;
                }
                reference_push(o, row, &g[i]);
            }
            if (round % 2) {
                uint32_t rows[BATCH];
                assert_int_equal(table_resolve(t, keys, n, rows, round % 4 == 1), PARAMO_OK);
                assert_int_equal(table_push_rows(t, keys, rows, n, g, NULL), PARAMO_OK);
                assert_int_equal(table_pull_rows(t, keys, rows, n, out), PARAMO_OK);
            } else {
                assert_int_equal(table_push(t, keys, n, g), PARAMO_OK);
                assert_int_equal(table_pull(t, keys, n, out, false), PARAMO_OK);
            }
            float whole[BATCH * 3];
            assert_int_equal(table_get_rows(t, keys, n, true, whole), PARAMO_OK);
            for (size_t i = 0; i < n; i++) {
                assert_memory_equal(&out[i], model[which[i]], sizeof(float));
                assert_memory_equal(whole + i * kinds[kind].values, model[which[i]],
                                    kinds[kind].values * sizeof(float));
            }
            size_t removed;
            assert_int_equal(table_delete(t, keys, n / 3, &removed), PARAMO_OK);
            assert_int_equal(removed, n / 3);
            for (size_t i = 0; i < n / 3; i++) {
                there[which[i]] = false;
            }
        }
        uint64_t count = 0;
        for (size_t k = 0; k < UNIVERSE; k++) {
            count += there[k];
        }
        assert_int_equal(table_rows(t), count);
        table_destroy(t);
    }
}

/* Each allocation of a request of old and new keys fails once, with and without repeated keys: the table is as it was,
 * bit for bit, and the same request then works. */
static void without_memory_nothing_changes(void **state)
{
    (void)state;
    enum { OLD = 3000, KEYS = 9000, BYTES = 12 };
    for (size_t kind = 0; kind < KINDS; kind++) {
        for (unsigned repeats = 0; repeats < 2; repeats++) {
            struct failing_alloc f;
            failing_alloc_init(&f);
            struct table *t = make(kind, PARAMO_INIT_CONSTANT, &f.alloc);
            static uint64_t keys[KEYS];
            static char values[KEYS * BYTES];
            static char before[OLD * BYTES];
            static char after[OLD * BYTES];
            memset(values, 1, sizeof values);
            for (size_t i = 0; i < KEYS; i++) { /* old ones: every third */
                keys[i] = 2 * i;
            }
            for (size_t i = 0; i < OLD; i++) {
                assert_int_equal(table_push(t, &keys[3 * i], 1, values), PARAMO_OK);
            }
            if (repeats) {
                keys[10] = keys[4];
                keys[11] = keys[3];
                keys[KEYS - 1] = keys[8];
            }
            static uint64_t old[OLD];
            for (size_t i = 0; i < OLD; i++) {
                old[i] = 6 * i;
            }
            assert_int_equal(table_get_rows(t, old, OLD, true, before), PARAMO_OK);
            size_t failures = 0;
            for (size_t at = 1;; at++) {
                f.fail_at = at;
                paramo_err err = at % 3 == 0   ? table_push(t, keys, KEYS, values)
                                 : at % 3 == 1 ? table_pull(t, keys, KEYS, values, true)
                                               : table_put_rows(t, keys, KEYS, true, values);
                f.fail_at = 0;
                if (err == PARAMO_OK) {
                    break;
                }
                assert_int_equal(err, PARAMO_E_MEMORY);
                failures++;
                assert_int_equal(table_rows(t), OLD);
                assert_int_equal(table_get_rows(t, old, OLD, true, after), PARAMO_OK);
                assert_memory_equal(before, after, OLD * kinds[kind].values);
                memset(values, 1, sizeof values);
            }
            assert_true(failures >= 4);
            assert_int_equal(table_rows(t), KEYS - (repeats ? 3 : 0));
            table_destroy(t);
            assert_int_equal(f.live_blocks, 0);
        }
    }
}

/* Numbers noted by a push or a pull lead to the rows until the generation changes, which growth does. */
static void noted_rows_are_the_rows(void **state)
{
    (void)state;
    enum { KEYS = 20000, STEP = 1000 };
    for (size_t kind = 0; kind < 2; kind++) {
        struct table *t = make(kind * 2, PARAMO_INIT_ZERO, NULL);
        static uint64_t keys[KEYS];
        static uint32_t rows[KEYS];
        static float ones[KEYS];
        static float out[KEYS];
        static float again[KEYS];
        for (size_t i = 0; i < KEYS; i++) {
            keys[i] = mix64(i);
            ones[i] = 1;
        }
        size_t changes = 0;
        for (size_t n = STEP; n <= KEYS; n += STEP) {
            uint64_t before = table_generation(t);
            if (n / STEP % 2) {
                assert_int_equal(table_push_noting(t, keys, n, ones, rows), PARAMO_OK);
            } else {
                assert_int_equal(table_pull_noting(t, keys, n, out, true, rows), PARAMO_OK);
            }
            uint64_t generation = table_generation(t);
            changes += generation != before;
            assert_int_equal(table_push_rows(t, keys, rows, n, ones, NULL), PARAMO_OK);
            assert_int_equal(table_pull_rows(t, keys, rows, n, out), PARAMO_OK);
            assert_int_equal(table_pull(t, keys, n, again, false), PARAMO_OK);
            assert_memory_equal(out, again, n * sizeof *out);
            assert_int_equal(table_rows(t), n);
            assert_int_equal(table_generation(t), generation);
            rows[n / 2] = TABLE_NO_ROW; /* goes by key, and finds the number again */
            assert_int_equal(table_push_rows(t, keys, rows, n, ones, NULL), PARAMO_OK);
            assert_int_not_equal(rows[n / 2], TABLE_NO_ROW);
            assert_int_equal(table_push_rows(t, keys, rows, n, ones, NULL), PARAMO_OK);
            assert_int_equal(table_pull(t, keys, n, again, false), PARAMO_OK);
            for (size_t i = 0; i < n && kind == 0; i++) {
                assert_true(again[i] == out[i] + 2);
            }
        }
        assert_true(changes > 8);
        table_destroy(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_rows_learn_as_the_reference),
        cmocka_unit_test(without_memory_nothing_changes),
        cmocka_unit_test(noted_rows_are_the_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
