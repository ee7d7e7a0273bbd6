#include "table/packed_sums.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

enum { SUM = 16, ALL = 0xf0 };

static void sum_bytes(struct aggregate_sum s, uint8_t bytes[SUM])
{
    uint64_t lo = htole64(s.lo), hi = htole64(s.hi);
    memcpy(bytes, &lo, 8);
    memcpy(bytes + 8, &hi, 8);
}

size_t packed_sums_put(const struct aggregate_sum *sums, size_t n, uint8_t *out)
{
    uint8_t *to = out;
    for (size_t i = 0; i < n; i++) {
        uint8_t bytes[SUM];
        unsigned first = 0, end = SUM;
        sum_bytes(sums[i], bytes);
        uint8_t sign = bytes[SUM - 1] & 0x80 ? 0xff : 0;
        while (first < SUM && !bytes[first])
            first++;
        while (end > first + 1 && bytes[end - 1] == sign && (bytes[end - 2] & 0x80) == (sign & 0x80))
            end--;
        unsigned count = end - first;
        *to++ = count == SUM ? ALL : count ? (uint8_t)(first << 4 | count) : 0;
        memcpy(to, bytes + first, count);
        to += count;
    }
    assert((size_t)(to - out) <= n * PACKED_SUM_MAX);
    return (size_t)(to - out);
}

/* False: the head is not valid. */
static bool head_read(uint8_t head, unsigned *first, unsigned *count)
{
    *first = head == ALL ? 0 : head >> 4;
    *count = head == ALL ? SUM : head & 15;
    return *first + *count <= SUM && (*count || !head);
}

size_t packed_sums_bytes(const uint8_t *at, size_t bytes, size_t n)
{
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned first, count;
        if (used >= bytes || !head_read(at[used], &first, &count) || count > bytes - used - 1)
            return 0;
        used += 1 + count;
    }
    return used;
}

size_t packed_sums_get(const uint8_t *at, size_t n, struct aggregate_sum *sums)
{
    const uint8_t *from = at;
    for (size_t i = 0; i < n; i++) {
        uint8_t bytes[SUM] = {0};
        uint64_t lo, hi;
        unsigned first, count;
        bool valid = head_read(*from++, &first, &count);
        assert(valid);
        (void)valid;
        memcpy(bytes + first, from, count);
        from += count;
        if (count && bytes[first + count - 1] & 0x80)
            memset(bytes + first + count, 0xff, SUM - first - count);
        memcpy(&lo, bytes, 8);
        memcpy(&hi, bytes + 8, 8);
        sums[i] = (struct aggregate_sum){.lo = le64toh(lo), .hi = le64toh(hi)};
    }
    return (size_t)(from - at);
}
