/*
 * A set of arcs, one bit each, in words of 64. Tests: test/ring/test_arcs.c.
 */
#ifndef RING_ARCS_H
#define RING_ARCS_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/ring.h"

enum { ARCS_WORDS = RING_ARCS / 64 };

static inline bool arcs_has(const uint64_t arcs[ARCS_WORDS], unsigned arc)
{
    return arcs[arc / 64] >> (arc % 64) & 1;
}
static inline void arcs_add(uint64_t arcs[ARCS_WORDS], unsigned arc)
{
    arcs[arc / 64] |= UINT64_C(1) << (arc % 64);
}
/* Those from first to before end. */
static inline void arcs_add_run(uint64_t arcs[ARCS_WORDS], unsigned first, unsigned end)
{
    for (unsigned word = first / 64; first < end; first = 64 * ++word) {
        uint64_t bits = UINT64_MAX << (first % 64);
        arcs[word] |= end < 64 * word + 64 ? bits & ~(UINT64_MAX << (end % 64)) : bits;
    }
}
/* The first that is in it, from `from` (to RING_ARCS) on; RING_ARCS: none is. */
static inline unsigned arcs_from(const uint64_t arcs[ARCS_WORDS], unsigned from)
{
    unsigned word = from / 64;
    uint64_t bits = word < ARCS_WORDS ? arcs[word] & UINT64_MAX << (from % 64) : 0;
    while (!bits && ++word < ARCS_WORDS)
        bits = arcs[word];
    return bits ? 64 * word + (unsigned)__builtin_ctzll(bits) : RING_ARCS;
}
/* The first that is not in it, from `from` on; RING_ARCS: all are. */
static inline unsigned arcs_until(const uint64_t arcs[ARCS_WORDS], unsigned from)
{
    unsigned word = from / 64;
    uint64_t bits = word < ARCS_WORDS ? ~arcs[word] & UINT64_MAX << (from % 64) : 0;
    while (!bits && ++word < ARCS_WORDS)
        bits = ~arcs[word];
    return bits ? 64 * word + (unsigned)__builtin_ctzll(bits) : RING_ARCS;
}
/* for (one arc of the set after the other): the time is that of its members, beside ARCS_WORDS words. */
#define arcs_each(arc, arcs)                                                                                 \
    unsigned arc = arcs_from(arcs, 0);                                                                       \
    arc < RING_ARCS;                                                                                         \
    arc = arcs_from(arcs, arc + 1)

/* Where runs begin that are all in the set or all out of it. */
static inline void arcs_begins(const uint64_t arcs[ARCS_WORDS], uint64_t begins[ARCS_WORDS])
{
    for (unsigned i = 0; i < ARCS_WORDS; i++)
        begins[i] |= arcs[i] ^ (arcs[i] << 1 | (i ? arcs[i - 1] >> 63 : ~arcs[0] & 1));
}
/* for (one run after the other): `begins` has the first of each, arc 0 among them. */
#define arcs_runs(first, end, begins)                                                                        \
    unsigned first = 0, end = arcs_from(begins, 1);                                                          \
    first < RING_ARCS;                                                                                       \
    first = end, end = arcs_from(begins, end + 1)

#endif
