#include "wire/key_range.h"

#include <assert.h>

#include "base/cursor.h"

size_t key_range_bytes(const uint64_t *keys, size_t n)
{
    assert(n);
    uint64_t words = (keys[n - 1] - keys[0]) / 64 + 1;
    return n <= KEY_RANGE_KEYS_MAX && words < n - 1 ? KEY_RANGE_BYTES + 8 * (size_t)words : 0;
}

void key_range_encode(const uint64_t *keys, size_t n, uint8_t *out)
{
    struct writer w = writer_over(out, key_range_bytes(keys, n));
    uint64_t word = 0, at = 0; /* the word of bits that is being filled, and its place */
    write_u64(&w, keys[0]);
    for (size_t i = 0; i < n; i++) {
        uint64_t bit = keys[i] - keys[0];
        for (; at < bit / 64; at++) {
            write_u64(&w, word);
            word = 0;
        }
        word |= UINT64_C(1) << bit % 64;
    }
    write_u64(&w, word);
}

static paramo_err wrong(const char *what)
{
    return err_set(PARAMO_E_PROTOCOL, "a range of keys: %s", what);
}

paramo_err key_range_decode(const void *bytes, uint64_t len, uint32_t count, uint64_t *keys)
{
    struct reader r = reader_over(bytes, len);
    uint64_t first = read_u64(&r), words = len / 8 - 1;
    if (!count || count > KEY_RANGE_KEYS_MAX)
        return wrong("it has no keys, or too many");
    if (len < KEY_RANGE_BYTES || len % 8)
        return wrong("its length");
    if (!words) {
        if (first > UINT64_MAX - (count - 1))
            return wrong("it goes beyond the last key");
        for (uint32_t i = 0; i < count; i++)
            keys[i] = first + i;
        return PARAMO_OK;
    }
    uint32_t n = 0;
    for (uint64_t at = 0; at < words; at++) {
        uint64_t word = read_u64(&r);
        if ((at == 0 && !(word & 1)) || (at == words - 1 && !word))
            return wrong("it does not begin with its first key and end with its last");
        for (; word; word &= word - 1) {
            uint64_t bit = 64 * at + (unsigned)__builtin_ctzll(word);
            if (n == count || bit > UINT64_MAX - first)
                return wrong("it has more keys than it should have");
            keys[n++] = first + bit;
        }
    }
    return n == count ? PARAMO_OK : wrong("it has fewer keys than it should have");
}
