/*
 * The keys of a request for a range, as bytes: all keys from the first on, or, where other shards own some of them, a
 * bit for each:
 *
 *     u64 first                   keys first, first + 1 ... as many as the header says
 *     u64 first, words of 64 bits     bit i of all words (lowest first): key first + i is one of them
 *
 * Bit 0 is set, and a bit of the last word is. One set of keys has two encodings only if it has no gap. It never
 * knows tables or owners. Tests: test/wire/test_key_range.c, fuzz/fuzz_frame.c.
 */
#ifndef WIRE_KEY_RANGE_H
#define WIRE_KEY_RANGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    KEY_RANGE_BYTES = 8,         /* without bits */
    KEY_RANGE_KEYS_MAX = 1 << 16 /* keys of one message, for which the receiver takes memory */
};

/* The length of n > 0 ascending keys in the form with bits. 0: it is not shorter than the keys themselves, or there are
 * too many keys. */
size_t key_range_bytes(const uint64_t *keys, size_t n);
/* Writes key_range_bytes() bytes, which are not 0. */
void key_range_encode(const uint64_t *keys, size_t n, uint8_t *out);
/* Writes count ascending keys. PROTOCOL: the bytes are not those of `count` keys. `keys` has room for
 * KEY_RANGE_KEYS_MAX, or for count if that is less. */
MUST_USE paramo_err key_range_decode(const void *bytes, uint64_t len, uint32_t count, uint64_t *keys);

#endif
