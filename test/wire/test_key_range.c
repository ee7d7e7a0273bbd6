/* Ranges of keys as bytes. */
#include <string.h>

#include "unit.h"
#include "wire/key_range.h"

static uint64_t keys[KEY_RANGE_KEYS_MAX], back[KEY_RANGE_KEYS_MAX];
static uint8_t bytes[8 * KEY_RANGE_KEYS_MAX];

static void u64(uint8_t *to, uint64_t v)
{
    for (unsigned i = 0; i < 8; i++)
        to[i] = (uint8_t)(v >> 8 * i);
}

static void whole_ranges(void **state)
{
    (void)state;
    static const uint64_t firsts[] = {0, 7, UINT64_MAX - 999};
    for (unsigned f = 0; f < 3; f++) {
        u64(bytes, firsts[f]);
        assert_int_equal(key_range_decode(bytes, 8, 1000, back), PARAMO_OK);
        for (uint64_t i = 0; i < 1000; i++)
            assert_true(back[i] == firsts[f] + i);
    }
    assert_int_equal(key_range_decode(bytes, 8, 1001, back), PARAMO_E_PROTOCOL); /* beyond the last key */
    u64(bytes, 0);
    assert_int_equal(key_range_decode(bytes, 8, KEY_RANGE_KEYS_MAX, back), PARAMO_OK);
    assert_int_equal(key_range_decode(bytes, 8, KEY_RANGE_KEYS_MAX + 1, back), PARAMO_E_PROTOCOL);
    assert_int_equal(key_range_decode(bytes, 8, 0, back), PARAMO_E_PROTOCOL);
    assert_int_equal(key_range_decode(bytes, 7, 1, back), PARAMO_E_PROTOCOL);
    assert_int_equal(key_range_decode(bytes, 0, 1, back), PARAMO_E_PROTOCOL);
}

static void with_gaps(void **state)
{
    (void)state;
    for (unsigned gap = 1; gap < 70; gap++)
        for (size_t n = 3; n < 3000; n = 3 * n + 1) {
            uint64_t key = UINT64_MAX - 3000 * 70;
            for (size_t i = 0; i < n; i++, key += 1 + (i * i + n) % gap)
                keys[i] = key;
            size_t len = key_range_bytes(keys, n);
            assert_true(len < 8 * n);
            if (!len)
                continue;
            key_range_encode(keys, n, bytes);
            assert_int_equal(key_range_decode(bytes, len, (uint32_t)n, back), PARAMO_OK);
            assert_memory_equal(keys, back, 8 * n);
            assert_int_equal(key_range_decode(bytes, len, (uint32_t)n - 1, back), PARAMO_E_PROTOCOL);
            assert_int_equal(key_range_decode(bytes, len, (uint32_t)n + 1, back), PARAMO_E_PROTOCOL);
            assert_int_equal(key_range_decode(bytes, len - 1, (uint32_t)n, back), PARAMO_E_PROTOCOL);
        }
    keys[0] = 0, keys[1] = 1, keys[2] = 5000; /* bits are longer */
    assert_int_equal(key_range_bytes(keys, 3), 0);
    keys[2] = UINT64_MAX;
    assert_int_equal(key_range_bytes(keys, 3), 0);
}

static void bits_that_are_refused(void **state)
{
    (void)state;
    u64(bytes, 5);
    u64(bytes + 8, 6); /* not the first key */
    assert_int_equal(key_range_decode(bytes, 16, 2, back), PARAMO_E_PROTOCOL);
    u64(bytes + 8, 7);
    assert_int_equal(key_range_decode(bytes, 16, 3, back), PARAMO_OK);
    assert_true(back[0] == 5 && back[1] == 6 && back[2] == 7);
    u64(bytes + 16, 0); /* the last word has none */
    assert_int_equal(key_range_decode(bytes, 24, 3, back), PARAMO_E_PROTOCOL);
    u64(bytes, UINT64_MAX - 1); /* beyond the last key */
    assert_int_equal(key_range_decode(bytes, 16, 3, back), PARAMO_E_PROTOCOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_ranges), cmocka_unit_test(with_gaps),
                                       cmocka_unit_test(bits_that_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
