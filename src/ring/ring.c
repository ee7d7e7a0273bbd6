#include "ring/ring.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* ---- assignment -------------------------------------------------------------------------------------- */

struct share {
    uint32_t have;   /* arcs held: before, then while arcs are taken and given */
    uint32_t target; /* floor or ceiling of the due share */
    bool fraction;   /* the due share is no whole number, so target may be one more */
};

/* Cuts the ring in order by cumulated weight: the boundary after shard i is the sum so far, rounded, so every
 * share is less than one arc off its due. */
static void assign_in_order(const uint32_t *weights, size_t n, uint64_t total, struct ring *ring)
{
    uint64_t sum = 0;
    size_t arc = 0;
    for (size_t i = 0; i < n; i++) {
        sum += weights ? weights[i] : 1;
        size_t end = (size_t)((sum * RING_ARCS + total / 2) / total);
        while (arc < end)
            ring->owner[arc++] = (uint16_t)i;
    }
    assert(arc == RING_ARCS);
}

/* Targets whose sum is RING_ARCS. The roundings up go first to those who hold more than their floor: each
 * saves a move; so the moves are as few as shares within one arc allow. */
static void set_targets(const uint32_t *weights, size_t n, uint64_t total, struct share *share)
{
    uint64_t given = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t due = (weights ? weights[i] : 1) * (uint64_t)RING_ARCS;
        share[i].target = (uint32_t)(due / total);
        share[i].fraction = due % total != 0;
        given += share[i].target;
    }
    for (int holders = 1; holders >= 0; holders--)
        for (size_t i = 0; i < n && given < RING_ARCS; i++)
            if (share[i].fraction && (!holders || share[i].have > share[i].target)) {
                share[i].target++;
                share[i].fraction = false;
                given++;
            }
    assert(given == RING_ARCS);
}

static size_t run_end(const struct ring *ring, size_t begin)
{
    size_t end = begin + 1;
    while (end < RING_ARCS && ring->owner[end] == ring->owner[begin])
        end++;
    return end;
}

/* Frees what shard i holds beyond its target: its shortest runs, the last of them in part. */
static void release_excess(struct ring *ring, uint16_t i, struct share *share)
{
    while (share->have > share->target) {
        size_t best = 0, best_len = RING_ARCS + 1;
        for (size_t a = 0, end; a < RING_ARCS; a = end) {
            end = run_end(ring, a);
            if (ring->owner[a] == i && end - a < best_len) {
                best = a;
                best_len = end - a;
            }
        }
        size_t excess = share->have - share->target;
        size_t freed = best_len < excess ? best_len : excess;
        for (size_t a = best + best_len - freed; a < best + best_len; a++)
            ring->owner[a] = RING_NOBODY;
        share->have -= (uint32_t)freed;
    }
}

static uint32_t wants(const struct share *share, size_t n, uint16_t i)
{
    return i < n && share[i].target > share[i].have ? share[i].target - share[i].have : 0;
}

static void give(struct ring *ring, struct share *share, size_t n, uint16_t i, size_t *begin, size_t *end,
                 bool from_end)
{
    for (uint32_t left = wants(share, n, i); left && *begin < *end; left--) {
        ring->owner[from_end ? --*end : (*begin)++] = i;
        share[i].have++;
    }
}

/* Fills the free arcs [begin, end): first the neighbours grow, then whoever lacks most. */
static void fill_gap(struct ring *ring, struct share *share, size_t n, size_t begin, size_t end)
{
    if (begin > 0)
        give(ring, share, n, ring->owner[begin - 1], &begin, &end, false);
    if (end < RING_ARCS)
        give(ring, share, n, ring->owner[end], &begin, &end, true);
    while (begin < end) {
        uint16_t most = 0;
        for (size_t i = 1; i < n; i++)
            if (wants(share, n, (uint16_t)i) > wants(share, n, most))
                most = (uint16_t)i;
        assert(wants(share, n, most));
        give(ring, share, n, most, &begin, &end, false);
    }
}

paramo_err ring_assign(const uint32_t *weights, size_t n, const struct ring *before, struct ring *ring)
{
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += weights ? weights[i] : 1;
    if (n >= RING_NOBODY || total == 0)
        return err_set(PARAMO_E_INVALID, "a ring needs 1 to %d shards with a weight, not %zu",
                       RING_NOBODY - 1, n);
    if (!before) {
        assign_in_order(weights, n, total, ring);
        return PARAMO_OK;
    }
    struct share *share = calloc(n, sizeof *share);
    if (!share)
        return err_memory(n * sizeof *share);
    for (size_t a = 0; a < RING_ARCS; a++) {
        ring->owner[a] = before->owner[a] < n ? before->owner[a] : RING_NOBODY;
        if (ring->owner[a] != RING_NOBODY)
            share[ring->owner[a]].have++;
    }
    set_targets(weights, n, total, share);
    for (size_t i = 0; i < n; i++)
        release_excess(ring, (uint16_t)i, &share[i]);
    for (size_t a = 0, end; a < RING_ARCS; a = end) {
        end = run_end(ring, a);
        if (ring->owner[a] == RING_NOBODY)
            fill_gap(ring, share, n, a, end);
    }
    free(share);
    return PARAMO_OK;
}

/* ---- where keys fall ---------------------------------------------------------------------------------- */

uint64_t ring_first_row(const struct ring_placement *placement, unsigned arc)
{
    /* The least row with row 2^64 / rows >= arc 2^52. */
    unsigned __int128 scaled = ((unsigned __int128)arc << RING_ARC_SHIFT) * placement->rows;
    return (uint64_t)((scaled + UINT64_MAX) >> 64);
}

/* The least key at or behind the beginning of an arc, arc in [1, RING_ARCS); placements that keep order. */
static uint64_t first_key(const struct ring_placement *placement, unsigned arc)
{
    return placement->kind == PARAMO_PLACE_DENSE ? ring_first_row(placement, arc)
                                                 : (uint64_t)arc << RING_ARC_SHIFT;
}

/* First index in [from, n) whose key is not below bound: doubling steps, then halving, so near ends are found
 * soon. */
static size_t lower_bound_from(const uint64_t *keys, size_t from, size_t n, uint64_t bound)
{
    size_t step = 1, low = from;
    while (low < n && n - low > step && keys[low + step] < bound) {
        low += step;
        step *= 2;
    }
    size_t high = n - low > step ? low + step : n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (keys[middle] < bound)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

paramo_err ring_runs(const struct ring *ring, const struct ring_placement *placement, const uint64_t *keys,
                     size_t n, struct ring_run *runs, size_t cap, size_t *count)
{
    if (placement->kind == PARAMO_PLACE_MIXED || placement->kind == PARAMO_PLACE_AUTO)
        return err_set(PARAMO_E_INVALID, "keys of this placement have no runs");
    size_t used = 0;
    for (size_t i = 0; i < n;) {
        unsigned arc = ring_arc(ring_position(placement, keys[i]));
        unsigned next = (unsigned)run_end(ring, arc);
        size_t end = next < RING_ARCS ? lower_bound_from(keys, i, n, first_key(placement, next)) : n;
        if (used == cap)
            return err_set(PARAMO_E_TOO_LARGE, "the keys fall into more than %zu runs", cap);
        runs[used++] = (struct ring_run){.shard = ring->owner[arc], .first = i, .count = end - i};
        i = end;
    }
    *count = used;
    return PARAMO_OK;
}

void ring_scatter(const struct ring *ring, const struct ring_placement *placement, const uint64_t *keys,
                  size_t n, uint16_t *shard_of, size_t *count_of, size_t nshards)
{
    memset(count_of, 0, nshards * sizeof *count_of);
    for (size_t i = 0; i < n; i++) {
        uint16_t shard = ring->owner[ring_arc(ring_position(placement, keys[i]))];
        shard_of[i] = shard;
        if (shard < nshards)
            count_of[shard]++;
    }
}

uint64_t ring_position(const struct ring_placement *placement, uint64_t key)
{
    switch (placement->kind) {
    case PARAMO_PLACE_DENSE:
        if (key >= placement->rows) /* not a row; the end of the ring, so that the function is total */
            return UINT64_MAX;
        return (uint64_t)(((unsigned __int128)key << 64) / placement->rows);
    case PARAMO_PLACE_MIXED:
        return mix64(key);
    default:
        return key;
    }
}
