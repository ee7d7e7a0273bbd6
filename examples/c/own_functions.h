/* Functions of our own that run on the servers: one changes rows (no weight beyond a limit), one reduces them (a
 * histogram). function.c registers them in each process of a program; plugin.c makes them a plugin. */
#ifndef OWN_FUNCTIONS_H
#define OWN_FUNCTIONS_H

#include <inttypes.h>
#include <paramo/function_types.h>
#include <string.h>

enum { BINS = 8 };

/* params: the limit, a double. */
static int clip(void *user, paramo_function_rows *rows)
{
    double limit;
    float *w = rows->vals;
    (void)user;
    if (rows->dtype != PARAMO_F32 || rows->params_bytes != sizeof limit)
        return 1;
    memcpy(&limit, rows->params, sizeof limit);
    for (size_t i = 0; i < rows->n * rows->columns; i++)
        w[i] = w[i] > limit ? (float)limit : w[i] < -limit ? (float)-limit : w[i];
    return 0;
}

/* params: the bins reach from -limit to limit, a double. The state: a count for each bin. */
static void histogram_add(void *user, const paramo_function_rows *rows, void *state)
{
    double limit = 1;
    const float *w = rows->vals;
    uint64_t *count = state;
    (void)user;
    if (rows->dtype != PARAMO_F32)
        return;
    if (rows->params_bytes == sizeof limit)
        memcpy(&limit, rows->params, sizeof limit);
    for (size_t i = 0; i < rows->n * rows->columns; i++) {
        double at = (w[i] / limit + 1) / 2 * BINS;
        count[at < 0 ? 0 : at >= BINS ? BINS - 1 : (int)at]++;
    }
}

static int histogram_merge(void *user, const void *params, size_t bytes, void *state, const void *from)
{
    uint64_t *count = state, more[BINS];
    (void)user;
    (void)params;
    (void)bytes;
    memcpy(more, from, sizeof more);
    for (int i = 0; i < BINS; i++)
        count[i] += more[i];
    return 0;
}

static const paramo_function clip_function = {
    .size = sizeof(paramo_function), .name = "clip", .change = clip};
static const paramo_function histogram_function = {.size = sizeof(paramo_function),
                                                   .name = "histogram",
                                                   .state_bytes = BINS * sizeof(uint64_t),
                                                   .add = histogram_add,
                                                   .merge = histogram_merge};

#endif
