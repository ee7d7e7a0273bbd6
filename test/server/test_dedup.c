#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "server/shard/dedup.h"

static void test_states(void **state)
{
    (void)state;
    struct dedup d;
    dedup_init(&d);
    assert_int_equal(dedup_check(&d, 0), DEDUP_OLD);
    assert_int_equal(dedup_check(&d, 1), DEDUP_NEW);
    assert_int_equal(dedup_check(&d, DATA_WINDOW), DEDUP_NEW);
    assert_int_equal(dedup_check(&d, 1 + DATA_WINDOW), DEDUP_BEYOND);
    dedup_record(&d, 3);
    assert_int_equal(dedup_check(&d, 3), DEDUP_DONE);
    dedup_raise(&d, 3);
    assert_int_equal(dedup_check(&d, 3), DEDUP_DONE);
    assert_int_equal(dedup_check(&d, 2), DEDUP_OLD);
    dedup_raise(&d, 2);
    assert_int_equal(d.floor, 3);
    dedup_raise(&d, 4);
    /* the bit that 3 had is that of 3 + DATA_WINDOW now */
    assert_int_equal(dedup_check(&d, 3 + DATA_WINDOW), DEDUP_NEW);
    assert_int_equal(dedup_check(&d, 3), DEDUP_OLD);
    dedup_raise(&d, UINT64_MAX - 10);
    assert_int_equal(dedup_check(&d, UINT64_MAX), DEDUP_NEW);
    dedup_record(&d, UINT64_MAX);
    assert_int_equal(dedup_check(&d, UINT64_MAX), DEDUP_DONE);
    dedup_raise(&d, UINT64_MAX); /* across the last word of bits */
    assert_int_equal(dedup_check(&d, UINT64_MAX), DEDUP_DONE);
    assert_int_equal(dedup_check(&d, UINT64_MAX - 1), DEDUP_OLD);
}

/* Beside a record of everything. */
static void test_against_all(void **state)
{
    (void)state;
    enum { NUMBERS = 20000 };
    static uint8_t applied[NUMBERS];
    uint64_t seed = 0;
    for (int run = 0; run < 20; run++) {
        struct dedup d;
        uint64_t floor = 1;
        dedup_init(&d);
        memset(applied, 0, sizeof applied);
        for (int i = 0; i < 20000; i++) {
            uint64_t r = mix64(++seed);
            uint64_t number = floor + r % DATA_WINDOW;
            if (number >= NUMBERS)
                break;
            enum dedup_state is = dedup_check(&d, number);
            assert_int_equal(is, applied[number] ? DEDUP_DONE : DEDUP_NEW);
            if (is == DEDUP_NEW) {
                dedup_record(&d, number);
                applied[number] = 1;
            }
            if (r >> 60 == 0) {
                uint64_t step = (r >> 40) % (run % 2 ? 200 : 2000);
                dedup_raise(&d, floor + step);
                floor += step;
            }
            if (floor > 1)
                assert_int_equal(dedup_check(&d, floor - 1), DEDUP_OLD);
            assert_int_equal(dedup_check(&d, floor + DATA_WINDOW), DEDUP_BEYOND);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_states), cmocka_unit_test(test_against_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
