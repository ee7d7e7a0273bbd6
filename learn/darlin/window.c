#include "learn/darlin/window.h"
#include "learn/darlin/coordinate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

paramo_err window_new(size_t rows, unsigned delay, struct window *w)
{
    const size_t blocks = delay + 1u, n = rows > 0 ? rows : 1;
    *w = (struct window){.rows = rows, .blocks = blocks};
    w->width = calloc(blocks * n, sizeof *w->width);
    w->way = calloc(blocks * n, sizeof *w->way);
    w->bound = malloc(n * sizeof *w->bound);
    if (w->width && w->way && w->bound)
        return PARAMO_OK;
    window_free(w);
    return paramo_error_set(PARAMO_E_MEMORY, "out of memory for %zu rows and %zu blocks of the delay", rows,
                            blocks);
}

void window_free(struct window *w)
{
    free(w->width);
    free(w->way);
    free(w->bound);
    *w = (struct window){0};
}

void window_clear(struct window *w)
{
    memset(w->width, 0, w->blocks * w->rows * sizeof *w->width);
    memset(w->way, 0, w->blocks * w->rows * sizeof *w->way);
}

static float entry(const struct design *d, size_t i)
{
    return d->value ? d->value[i] : 1.0F;
}

/* Notes the block's widths and ways, and its rows in d->touched. Returns the number of rows. */
static size_t enter(struct window *w, struct design *d, size_t slot, size_t from, size_t end,
                    const double *reach)
{
    float *width = w->width + slot % w->blocks * w->rows, *way = w->way + slot % w->blocks * w->rows;
    size_t n = 0;
    memset(width, 0, w->rows * sizeof *width);
    memset(way, 0, w->rows * sizeof *way);
    const uint32_t turn = design_turn(d);
    for (size_t c = from; c < end; c++) {
        const double most = reach[c - from];
        if (signbit(most))
            continue;
        for (size_t i = d->start[c]; i < d->start[c + 1]; i++) {
            const uint32_t r = d->row[i];
            const float x = fabsf(entry(d, i));
            if (x == 0)
                continue;
            width[r] += x;
            way[r] += most > 0 ? x * (float)most : INFINITY;
            if (d->stamp[r] != turn) {
                d->stamp[r] = turn;
                d->touched[n++] = r;
            }
        }
    }
    return n;
}

/* The rows' part of the bounds. */
static void bound_rows(struct window *w, const struct design *d, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t r = d->touched[i];
        double width = 0, way = 0;
        for (size_t k = 0; k < w->blocks; k++) {
            width += (double)w->width[k * w->rows + r];
            way += (double)w->way[k * w->rows + r];
        }
        const double weight = d->weight ? (double)d->weight[r] : 1.0;
        w->bound[r] = weight * coordinate_curvature(d->bend[r], way) * width;
    }
}

void window_gradient(struct window *w, struct design *d, size_t slot, size_t from, size_t end,
                     const double *reach, double *g, double *u)
{
    bound_rows(w, d, enter(w, d, slot, from, end, reach));
    for (size_t c = from; c < end; c++) {
        double slope = 0, bound = 0;
        if (signbit(reach[c - from]))
            continue;
        for (size_t i = d->start[c]; i < d->start[c + 1]; i++) {
            const double x = (double)entry(d, i);
            slope += d->slope[d->row[i]] * x;
            bound += x != 0 ? w->bound[d->row[i]] * fabs(x) : 0;
        }
        g[c - from] += slope;
        u[c - from] += bound;
    }
}
