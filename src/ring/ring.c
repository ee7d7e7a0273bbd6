#include "ring/ring.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"

static size_t run_end(const struct ring *ring, size_t begin)
{
    size_t end = begin + 1;
    while (end < RING_PARTITIONS && ring->owner[end] == ring->owner[begin])
        end++;
    return end;
}

uint64_t ring_first_row(const struct ring_placement *placement, unsigned partition)
{
    assert(partition <= RING_PARTITIONS);
    /* The least row with row * 2^64 / rows >= partition * 2^52. */
    unsigned __int128 scaled = ((unsigned __int128)partition << RING_PARTITION_SHIFT) * placement->rows;
    return (uint64_t)((scaled + UINT64_MAX) >> 64);
}

/* The least key at or after the beginning of a partition in [1, RING_PARTITIONS), for placements that
 * keep the order of keys. */
static uint64_t first_key(const struct ring_placement *placement, unsigned partition)
{
    return placement->kind == PARAMO_PLACE_DENSE ? ring_first_row(placement, partition)
                                                 : (uint64_t)partition << RING_PARTITION_SHIFT;
}

/* The first index in [from, n) whose key is not below bound. Steps double, then halve, so that a near end is
 * found soon. */
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

/* keys NULL: the n keys from `begin` on. */
static paramo_err runs_of(const struct ring *ring, const struct ring_placement *placement,
                          const uint64_t *keys, uint64_t begin, size_t n, struct ring_run *runs, size_t cap,
                          size_t *count)
{
    if (placement->kind == PARAMO_PLACE_MIXED || placement->kind == PARAMO_PLACE_AUTO)
        return err_set(PARAMO_E_INVALID, "keys of this placement have no runs");
    size_t used = 0;
    for (size_t i = 0; i < n;) {
        unsigned partition = ring_partition(ring_position(placement, keys ? keys[i] : begin + i));
        unsigned next = (unsigned)run_end(ring, partition);
        uint64_t bound = next < RING_PARTITIONS ? first_key(placement, next) : 0;
        size_t end = n;
        if (bound && keys)
            end = lower_bound_from(keys, i, n, bound);
        else if (bound && bound - begin < n)
            end = (size_t)(bound - begin);
        assert(end > i && end <= n); /* each run has a key */
        if (used == cap)
            return err_set(PARAMO_E_TOO_LARGE, "the keys fall into more than %zu runs", cap);
        runs[used++] = (struct ring_run){.shard = ring->owner[partition], .first = i, .count = end - i};
        i = end;
    }
    *count = used;
    return PARAMO_OK;
}

paramo_err ring_runs(const struct ring *ring, const struct ring_placement *placement, const uint64_t *keys,
                     size_t n, struct ring_run *runs, size_t cap, size_t *count)
{
    return runs_of(ring, placement, keys, 0, n, runs, cap, count);
}

paramo_err ring_range_runs(const struct ring *ring, const struct ring_placement *placement, uint64_t begin,
                           size_t n, struct ring_run *runs, size_t cap, size_t *count)
{
    return runs_of(ring, placement, NULL, begin, n, runs, cap, count);
}

uint64_t ring_position(const struct ring_placement *placement, uint64_t key)
{
    switch (placement->kind) {
    case PARAMO_PLACE_DENSE:
        if (key >= placement->rows) /* not a row: the end of the ring, so that the function is total */
            return UINT64_MAX;
        return (uint64_t)(((unsigned __int128)key << 64) / placement->rows);
    case PARAMO_PLACE_MIXED:
        return mix64(key);
    default:
        return key;
    }
}
