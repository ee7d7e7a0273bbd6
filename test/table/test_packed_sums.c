/* Sums as they travel: there and back, how short they are, and what is refused. */
#include "unit.h"

#include <string.h>

#include "base/hash.h"
#include "table/packed_sums.h"

enum { SUMS = 64 };

static void there_and_back(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 2000; seed++) {
        struct aggregate_sum in[SUMS], out[SUMS];
        uint8_t packed[SUMS * PACKED_SUM_MAX];
        for (unsigned i = 0; i < SUMS; i++) {
            uint64_t r = mix64(seed * SUMS + i);
            unsigned shift = (unsigned)(r % 128), keep = (unsigned)(mix64(r) % 64);
            uint64_t x = i == 0 ? 0 : mix64(r + 1) >> keep;
            in[i] = shift >= 64
                        ? (struct aggregate_sum){.hi = x << (shift - 64)}
                        : (struct aggregate_sum){.lo = x << shift, .hi = shift ? x >> (64 - shift) : 0};
            if (r >> 60 & 1) /* the negative */
                in[i] = (struct aggregate_sum){.lo = -in[i].lo, .hi = ~in[i].hi + !in[i].lo};
            if (r >> 58 == 5)
                in[i] = (struct aggregate_sum){.lo = mix64(r + 2) | 1, .hi = mix64(r + 3)};
        }
        size_t bytes = packed_sums_put(in, SUMS, packed);
        assert_in_range(bytes, SUMS, sizeof packed);
        assert_int_equal(packed_sums_bytes(packed, bytes, SUMS), bytes);
        assert_int_equal(packed_sums_bytes(packed, bytes - 1, SUMS), 0);
        assert_int_equal(packed_sums_get(packed, SUMS, out), bytes);
        assert_memory_equal(in, out, sizeof in);
    }
}

static size_t bytes_of(uint64_t hi, uint64_t lo)
{
    struct aggregate_sum s = {.lo = lo, .hi = hi};
    uint8_t packed[PACKED_SUM_MAX];
    return packed_sums_put(&s, 1, packed);
}

static void short_ones(void **state)
{
    (void)state;
    assert_int_equal(bytes_of(0, 0), 1);
    assert_int_equal(bytes_of(1, 0), 2);
    assert_int_equal(bytes_of(UINT64_MAX, 0), 2); /* -1 */
    assert_int_equal(bytes_of(127, 0), 2);
    assert_int_equal(bytes_of(128, 0), 3); /* a byte for the sign */
    assert_int_equal(bytes_of(0, UINT64_C(1) << 40), 2);
    assert_int_equal(bytes_of(UINT64_C(1) << 63, 1), 17);
    assert_int_equal(bytes_of(0, UINT64_C(0xabcdef) << 30), 5); /* a float's mantissa */
}

static void refused(void **state)
{
    (void)state;
    const uint8_t bad[] = {0x10, 0xf2, 0x8f, 0x02};
    uint8_t room[PACKED_SUM_MAX] = {0};
    for (unsigned i = 0; i < 3; i++) {
        room[0] = bad[i];
        assert_int_equal(packed_sums_bytes(room, sizeof room, 1), 0);
    }
    room[0] = bad[3];
    assert_int_equal(packed_sums_bytes(room, 2, 1), 0);
    assert_int_equal(packed_sums_bytes(room, 3, 1), 3);
    room[0] = 0xf0;
    assert_int_equal(packed_sums_bytes(room, 16, 1), 0);
    assert_int_equal(packed_sums_bytes(room, 17, 1), 17);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back), cmocka_unit_test(short_ones),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
