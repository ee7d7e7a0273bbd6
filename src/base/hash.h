/*
 * Mixing functions. mix64 is a bijection on 64 bits (the finalizer of Steele et al.'s SplitMix, OOPSLA'14);
 * it spreads ids. hash_bytes is XXH3; it guards headers and files against damage, not against an attacker.
 * Both are part of the wire and file formats and never change. This module never knows what it hashes. Tests:
 * test/base/test_base.c.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t mix64(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    x ^= x >> 31;
    return x;
}

uint64_t hash_bytes(const void *data, size_t len);
/* Compares secrets in time that depends on len only. */
int bytes_equal_secret(const void *a, const void *b, size_t len);

#endif
