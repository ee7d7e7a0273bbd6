/*
 * A set of arcs, one bit each, in words of 64. For src/server. Tests: test/server/test_arcs.c.
 */
#ifndef SERVER_ARCS_H
#define SERVER_ARCS_H

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
/* The first that is in it, from `from` (to RING_ARCS) on; RING_ARCS: none is. */
static inline unsigned arcs_from(const uint64_t arcs[ARCS_WORDS], unsigned from)
{
    unsigned word = from / 64;
    uint64_t bits = word < ARCS_WORDS ? arcs[word] & UINT64_MAX << (from % 64) : 0;
    while (!bits && ++word < ARCS_WORDS)
        bits = arcs[word];
    return bits ? 64 * word + (unsigned)__builtin_ctzll(bits) : RING_ARCS;
}
/* for (one arc of the set after the other): the time is that of its members, beside ARCS_WORDS words. */
#define arcs_each(arc, arcs)                                                                                 \
    unsigned arc = arcs_from(arcs, 0);                                                                       \
    arc < RING_ARCS;                                                                                         \
    arc = arcs_from(arcs, arc + 1)

#endif
