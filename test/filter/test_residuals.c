/* Rows that are held back: what is put is there, what is taken is not, and a flush finds the old ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "filter/residuals.h"

enum { KEYS = 20000, DIM = 3 };

static void put(struct residuals *r, uint64_t key, float value)
{
    float row[DIM] = {value, -value, 0};
    assert_false(residuals_put(r, key, row));
}

static void random_puts_and_takes(void **state)
{
    struct residuals r;
    static float want[KEYS];
    (void)state;
    residuals_init(&r, DIM * sizeof(float));
    memset(want, 0, sizeof want);
    for (uint64_t i = 0; i < 10 * KEYS; i++) {
        uint64_t k = mix64(i) % KEYS;
        if (mix64(~i) % 3) {
            put(&r, mix64(k), want[k] = (float)(i + 1));
        } else {
            residuals_take(&r, mix64(k));
            want[k] = 0;
        }
    }
    size_t count = 0;
    for (uint64_t k = 0; k < KEYS; k++) {
        const float *row = residuals_get(&r, mix64(k));
        assert_int_equal(row != NULL, want[k] != 0);
        if (row)
            assert_true(row[0] == want[k] && row[1] == -want[k]);
        count += row != NULL;
    }
    assert_int_equal(r.count, count);
    assert_true(residuals_bytes(&r) > count * DIM * sizeof(float));
    for (uint64_t k = 0; k < KEYS; k++)
        residuals_take(&r, mix64(k));
    assert_int_equal(r.count, 0);
    assert_true(r.blocks_count <= 2);
    residuals_fini(&r);
}

/* Rows come and go between the turns of a flush: each old row that is left is found once, and no new one. */
static void the_old_rows_are_found(void **state)
{
    struct residuals r;
    static uint8_t is_old[KEYS], found[KEYS];
    uint64_t keys[100];
    size_t cursor = SIZE_MAX;
    (void)state;
    residuals_init(&r, DIM * sizeof(float));
    for (uint64_t k = 0; k < KEYS / 2; k++) {
        put(&r, k, 1);
        is_old[k] = 1;
    }
    uint64_t stamp = ++r.stamp;
    for (uint64_t turn = 0; cursor; turn++) {
        size_t n = residuals_old(&r, stamp, &cursor, keys, 100);
        for (size_t i = 0; i < n; i++) {
            assert_true(is_old[keys[i]] && !found[keys[i]]);
            found[keys[i]] = 1;
            residuals_take(&r, keys[i]);
        }
        for (uint64_t i = 0; i < 60; i++) {
            uint64_t k = mix64(turn * 60 + i) % KEYS;
            if (i % 2 && !residuals_get(&r, k)) {
                put(&r, k, 2);
                is_old[k] = 0;
            } else if (i % 2 == 0) {
                residuals_take(&r, k);
                is_old[k] = 0;
            }
        }
    }
    for (uint64_t k = 0; k < KEYS; k++)
        assert_false(is_old[k] && !found[k]);
    residuals_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_puts_and_takes),
                                       cmocka_unit_test(the_old_rows_are_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
