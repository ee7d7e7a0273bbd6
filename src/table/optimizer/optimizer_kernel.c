#include "table/optimizer/optimizer_kernel.h"

/*
 * Rows of at least GATHER_BELOW columns are spans. Shorter ones (linear models have rows of one) are gathered
 * into spans of up to GATHER values and put back, which costs less than a square root one at a time.
 */
enum { GATHER = 64, GATHER_BELOW = 8 };

struct gathered {
    float w[GATHER], s0[GATHER], s1[GATHER];
};

static inline __attribute__((always_inline)) void copy_values(float *restrict to, const float *restrict from,
                                                              size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
}

static inline __attribute__((always_inline)) void gather(struct gathered *to, void *const *rows, size_t count,
                                                         size_t dim, unsigned planes)
{
    for (size_t i = 0; i < count; i++) {
        const float *row = rows[i];
        copy_values(to->w + i * dim, row, dim);
        if (planes > 0)
            copy_values(to->s0 + i * dim, row + dim, dim);
        if (planes > 1)
            copy_values(to->s1 + i * dim, row + 2 * dim, dim);
    }
}

static inline __attribute__((always_inline)) void scatter(const struct gathered *from, void *const *rows,
                                                          size_t count, size_t dim, unsigned planes)
{
    for (size_t i = 0; i < count; i++) {
        float *row = rows[i];
        copy_values(row, from->w + i * dim, dim);
        if (planes > 0)
            copy_values(row + dim, from->s0 + i * dim, dim);
        if (planes > 1)
            copy_values(row + 2 * dim, from->s1 + i * dim, dim);
    }
}

/* dim is a constant for the usual rows, so that their copies are moves. */
static inline __attribute__((always_inline)) void rows_by_span(const struct optimizer *o, void *const *rows,
                                                               size_t count, size_t dim, unsigned planes,
                                                               const float *values)
{
    const size_t batch = GATHER / dim;
    struct gathered span;
    for (size_t done = 0, m; done < count; done += m) {
        m = count - done < batch ? count - done : batch;
        gather(&span, rows + done, m, dim, planes);
        o->span(o, span.w, span.s0, span.s1, 0, values + done * dim, m * dim);
        scatter(&span, rows + done, m, dim, planes);
    }
}

void optimizer_rows_by_span(const struct optimizer *o, void *const *rows, size_t count, size_t dim,
                            const void *g)
{
    const float *values = g;
    if (dim >= GATHER_BELOW) {
        for (size_t i = 0; i < count; i++) {
            float *w = rows[i];
            o->span(o, w, w + dim, w + 2 * dim, 0, values + i * dim, dim);
        }
        return;
    }
    const unsigned planes = optimizer_def(o->kind)->planes;
    if (dim == 1 && planes == 2)
        rows_by_span(o, rows, count, 1, 2, values);
    else if (dim == 4 && planes == 1)
        rows_by_span(o, rows, count, 4, 1, values);
    else
        rows_by_span(o, rows, count, dim, planes, values);
}

void optimizer_rows_counted(const struct optimizer *o, void *const *rows, size_t count, size_t dim,
                            const void *g)
{
    const float *values = g;
    for (size_t i = 0; i < count; i++) {
        float *w = rows[i];
        float t = optimizer_next_step(w[3 * dim]);
        w[3 * dim] = t;
        o->span(o, w, w + dim, w + 2 * dim, t, values + i * dim, dim);
    }
}
