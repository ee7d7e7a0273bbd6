#include "ring/chains.h"

#include <string.h>

/* Members that stay move up; the rest is nobody. */
static void close_up(struct ring_chains *chains, size_t arc, const uint16_t member[RING_LEVELS])
{
    unsigned used = 0;
    for (unsigned l = 0; l < RING_LEVELS; l++)
        if (member[l] != RING_NOBODY)
            chains->level[used++].owner[arc] = member[l];
    for (; used < RING_LEVELS; used++)
        chains->level[used].owner[arc] = RING_NOBODY;
}

uint32_t ring_promote(struct ring_chains *chains, const bool *gone, size_t n)
{
    uint32_t orphans = 0;
    for (size_t a = 0; a < RING_ARCS; a++) {
        uint16_t member[RING_LEVELS], owner = chains->level[0].owner[a];
        bool left = owner == RING_NOBODY; /* there is nothing to lose */
        for (unsigned l = 0; l < RING_LEVELS; l++) {
            member[l] = chains->level[l].owner[a];
            if (member[l] < n && gone[member[l]])
                member[l] = RING_NOBODY;
            left |= member[l] != RING_NOBODY;
        }
        if (!left)
            member[0] = owner;
        orphans += !left;
        close_up(chains, a, member);
    }
    return orphans;
}

void ring_touched(const struct ring_chains *before, const struct ring_chains *after, uint8_t *touched,
                  size_t n)
{
    memset(touched, 0, n * sizeof *touched);
    for (size_t a = 0; a < RING_ARCS; a++) {
        unsigned what = 0;
        for (unsigned l = 0; l < RING_LEVELS; l++)
            if (before->level[l].owner[a] != after->level[l].owner[a])
                what |= l ? RING_TOUCHED_CHAIN : RING_TOUCHED_CHAIN | RING_TOUCHED_ARCS;
        for (unsigned l = 0; what && l < RING_LEVELS; l++) {
            uint8_t bits = (uint8_t)(l ? what & ~(unsigned)RING_TOUCHED_ARCS : what);
            uint16_t old = before->level[l].owner[a], new = after->level[l].owner[a];
            if (old < n)
                touched[old] |= bits;
            if (new < n)
                touched[new] |= bits;
        }
    }
}
