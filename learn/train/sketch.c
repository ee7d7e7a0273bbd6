#include "learn/train/sketch.h"
#include "learn/data/holdout.h"

#include <assert.h>
#include <stdlib.h>

#define COUNTERS_MIN 1024 /* arbitrary */

paramo_err sketch_init(struct sketch *s, size_t bytes)
{
    size_t counters = COUNTERS_MIN;
    while (counters <= bytes / SKETCH_ROWS / 2)
        counters *= 2;
    *s = (struct sketch){.counters = counters, .count = calloc(SKETCH_ROWS, counters)};
    return s->count ? PARAMO_OK
                    : paramo_error_set(PARAMO_E_MEMORY, "out of memory for %zu MiB of counters of features",
                                       SKETCH_ROWS * counters >> 20);
}

void sketch_free(struct sketch *s)
{
    free(s->count);
    *s = (struct sketch){0};
}

/* Where a key's counters are. Two hashes give four places: Kirsch and Mitzenmacher, "Less Hashing, Same
 * Performance". */
static void places(const struct sketch *s, uint64_t key, size_t at[SKETCH_ROWS])
{
    const uint64_t a = holdout_mix(key), b = holdout_mix(a) | 1;
    for (size_t i = 0; i < SKETCH_ROWS; i++)
        at[i] = i * s->counters + ((a + i * b) >> 20 & (s->counters - 1));
}

static uint32_t least(const struct sketch *s, const size_t at[SKETCH_ROWS])
{
    uint32_t count = SKETCH_MOST;
    for (size_t i = 0; i < SKETCH_ROWS; i++)
        count = s->count[at[i]] < count ? s->count[at[i]] : count;
    return count;
}

uint32_t sketch_count(const struct sketch *s, uint64_t key)
{
    size_t at[SKETCH_ROWS];
    places(s, key, at);
    return least(s, at);
}

static void halve(struct sketch *s)
{
    for (size_t i = 0; i < SKETCH_ROWS * s->counters; i++)
        s->count[i] /= 2;
    s->added = 0;
}

uint32_t sketch_add(struct sketch *s, uint64_t key, uint32_t times, uint32_t most)
{
    size_t at[SKETCH_ROWS];
    assert(most <= SKETCH_MOST);
    places(s, key, at);
    const uint32_t before = least(s, at);
    if (before >= most)
        return before;
    const uint32_t now = times < most - before ? before + times : most;
    for (size_t i = 0; i < SKETCH_ROWS; i++)
        s->count[at[i]] = s->count[at[i]] < now ? (uint8_t)now : s->count[at[i]];
    s->added += now - before;
    if (s->added >= s->counters / 2)
        halve(s);
    return now;
}
