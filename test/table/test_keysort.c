/* Sorting keys of every spread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support_reference.h"
#include "table/keysort.h"

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void sorts_like_qsort(void **state)
{
    (void)state;
    enum { MOST = 5000 };
    static uint64_t keys[MOST];
    static uint64_t expected[MOST];
    static uint64_t scratch[MOST];
    static const size_t sizes[] = {0, 1, 2, 3, 100, MOST};
    uint64_t seed = 11;
    for (unsigned bits = 1; bits <= 64; bits += 7) { /* odd and even numbers of passes */
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            size_t n = sizes[k];
            for (size_t i = 0; i < n; i++) {
                keys[i] = draw(&seed) >> (64 - bits) << (bits % 8);
            }
            if (n > 2) {
                keys[1] = UINT64_MAX;
                keys[2] = 0;
            }
            memcpy(expected, keys, sizeof keys);
            qsort(expected, n, sizeof *expected, ascending);
            keysort(keys, scratch, n);
            assert_memory_equal(keys, expected, n * sizeof *keys);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sorts_like_qsort)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
