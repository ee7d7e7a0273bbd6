#include "table/aggregate.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "table/table_options.h"

enum {
    BLOCK = 64, /* columns whose parameters are computed at a time */
    SUM_BYTES = 16
};

/* The 16 bytes before the sums. */
struct pending {
    uint64_t clock;
    uint32_t workers; /* the greatest number of any push; 0: there was no push */
    uint32_t zero;
};
_Static_assert(sizeof(struct pending) == SUM_BYTES && sizeof(struct aggregate_sum) == SUM_BYTES,
               "the size of a sum");

static char *pending_of(const struct rowspec *spec, const void *row)
{
    return (char *)row + spec->param_bytes + spec->state_bytes - table_aggregate_bytes(spec->dim);
}

static struct pending pending_get(const struct rowspec *spec, const void *row)
{
    struct pending p;
    memcpy(&p, pending_of(spec, row), sizeof p);
    return p;
}

static double value_at(const struct rowspec *spec, const void *vals, size_t i)
{
    return spec->value_bytes == 8 ? ((const double *)vals)[i] : (double)((const float *)vals)[i];
}

paramo_err aggregate_check(const struct rowspec *spec, const void *vals, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double x = value_at(spec, vals, i);
        if (!(fabs(x) <= AGGREGATE_VALUE_MAX))
            return err_set(PARAMO_E_NUMERIC, "pushed value %zu of %zu is %g: %s", i, n, x,
                           isfinite(x) ? "an aggregated table takes values up to 2^40"
                                       : "not a finite number");
    }
    return PARAMO_OK;
}

void aggregate_start(const struct rowspec *spec, void *row)
{
    memset(pending_of(spec, row), 0, table_aggregate_bytes(spec->dim));
}

bool aggregate_is_later(const struct rowspec *spec, const void *row, uint64_t clock)
{
    struct pending p = pending_get(spec, row);
    return p.workers && p.clock > clock;
}

static struct aggregate_sum negated(struct aggregate_sum s)
{
    return (struct aggregate_sum){.lo = -s.lo, .hi = ~s.hi + (s.lo == 0)};
}

/* Units below 2^-64 are cut off. */
static struct aggregate_sum sum_of(double x)
{
    double size = fabs(x);
    assert(size <= AGGREGATE_VALUE_MAX);
    uint64_t whole = (uint64_t)size;
    struct aggregate_sum s = {.lo = (uint64_t)((size - (double)whole) * 0x1p64), .hi = whole};
    return x < 0 ? negated(s) : s;
}

static struct aggregate_sum sum_plus(struct aggregate_sum s, struct aggregate_sum add)
{
    s.lo += add.lo;
    s.hi += add.hi + (s.lo < add.lo);
    return s;
}

/* at: of any alignment. */
static void sum_add(char *at, struct aggregate_sum add)
{
    struct aggregate_sum s;
    memcpy(&s, at, sizeof s);
    s = sum_plus(s, add);
    memcpy(at, &s, sizeof s);
}

static double sum_get(const char *at)
{
    struct aggregate_sum s;
    memcpy(&s, at, sizeof s);
    bool is_negative = s.hi >> 63;
    s = is_negative ? negated(s) : s;
    double size = (double)s.hi + (double)s.lo * 0x1p-64;
    return is_negative ? -size : size;
}

/* Makes the row ready for pushes of this clock: the sum of an earlier clock is applied. Returns the row's sums. */
static char *row_begin(const struct rowspec *spec, void *row, const struct aggregate_now *now)
{
    struct pending p = pending_get(spec, row);
    assert(now->workers && !(p.workers && p.clock > now->clock));
    if (p.workers && p.clock < now->clock) {
        aggregate_apply_sum(spec, row);
        p.workers = 0;
    }
    char *at = pending_of(spec, row);
    p.clock = now->clock;
    p.workers = p.workers > now->workers ? p.workers : now->workers;
    memcpy(at, &p, sizeof p);
    return at + SUM_BYTES;
}

void aggregate_add(const struct rowspec *spec, void *row, const struct aggregate_now *now, const void *vals)
{
    char *at = row_begin(spec, row, now);
    for (uint32_t i = 0; i < spec->dim; i++)
        sum_add(at + SUM_BYTES * (size_t)i, sum_of(value_at(spec, vals, i)));
}

void aggregate_collect(const struct rowspec *spec, struct aggregate_sum *sums, const void *vals)
{
    for (uint32_t i = 0; i < spec->dim; i++)
        sums[i] = sum_plus(sums[i], sum_of(value_at(spec, vals, i)));
}

void aggregate_add_sums(const struct rowspec *spec, void *row, const struct aggregate_now *now,
                        const struct aggregate_sum *sums)
{
    char *at = row_begin(spec, row, now);
    for (uint32_t i = 0; i < spec->dim; i++)
        sum_add(at + SUM_BYTES * (size_t)i, sums[i]);
}

/* The gradient that the optimizer gets for n <= BLOCK columns from col on. */
static void gradient_get(const struct rowspec *spec, const void *row, uint32_t col, uint32_t n, void *out)
{
    const char *at = pending_of(spec, row) + SUM_BYTES * ((size_t)col + 1);
    double divisor = spec->aggregate == PARAMO_AGGREGATE_MEAN ? pending_get(spec, row).workers : 1;
    for (uint32_t i = 0; i < n; i++) {
        double x = sum_get(at + SUM_BYTES * (size_t)i) / divisor;
        if (spec->value_bytes == 8)
            ((double *)out)[i] = x;
        else
            ((float *)out)[i] =
                (float)fmin(fmax(x, -(double)OPTIMIZER_GRADIENT_MAX), (double)OPTIMIZER_GRADIENT_MAX);
    }
}

static float *state_of(const struct rowspec *spec, void *row, unsigned plane)
{
    return (float *)((char *)row + spec->param_bytes) + (size_t)plane * spec->dim;
}

void aggregate_apply_sum(const struct rowspec *spec, void *row)
{
    const struct optimizer *o = &spec->optimizer;
    double gradient[BLOCK];
    if (!pending_get(spec, row).workers)
        return;
    float t = spec->counts ? optimizer_next_step(*state_of(spec, row, 2)) : 0;
    for (uint32_t col = 0, n; col < spec->dim; col += n) {
        n = spec->dim - col < BLOCK ? spec->dim - col : BLOCK;
        gradient_get(spec, row, col, n, gradient);
        o->span(o, (char *)row + col * spec->value_bytes, state_of(spec, row, 0) + col,
                state_of(spec, row, 1) + col, t, gradient, n);
    }
    if (spec->counts)
        *state_of(spec, row, 2) = t;
    aggregate_start(spec, row);
}

void aggregate_read(const struct rowspec *spec, const void *row, uint64_t clock, uint32_t col, uint32_t ncols,
                    void *out)
{
    const struct optimizer *o = &spec->optimizer;
    const struct pending p = pending_get(spec, row);
    const float *state = (const float *)(const void *)((const char *)row + spec->param_bytes);
    double w[BLOCK], gradient[BLOCK];
    float s0[BLOCK], s1[BLOCK];
    char *to = out;
    memcpy(to, (const char *)row + col * spec->value_bytes, ncols * spec->value_bytes);
    if (!p.workers || p.clock > clock)
        return;
    float t = spec->counts ? optimizer_next_step(state[2 * (size_t)spec->dim]) : 0;
    for (uint32_t end = col + ncols, n; col < end; col += n, to += n * spec->value_bytes) {
        n = end - col < BLOCK ? end - col : BLOCK;
        memcpy(w, to, n * spec->value_bytes);
        if (spec->planes > 0)
            memcpy(s0, state + col, n * sizeof *s0);
        if (spec->planes > 1)
            memcpy(s1, state + spec->dim + col, n * sizeof *s1);
        gradient_get(spec, row, col, n, gradient);
        o->span(o, w, s0, s1, t, gradient, n);
        memcpy(to, w, n * spec->value_bytes);
    }
}

/* In blocks of columns, since the caller's memory need not be aligned and a row may be long. */
void aggregate_copy(const struct rowspec *spec, const void *row, void *out)
{
    const struct optimizer *o = &spec->optimizer;
    const float *state = (const float *)(const void *)((const char *)row + spec->param_bytes);
    double w[BLOCK], gradient[BLOCK];
    float s[2][BLOCK];
    char *to = out, *to_state = to + spec->param_bytes;
    memcpy(to, row, spec->param_bytes + spec->state_values * sizeof(float));
    if (!pending_get(spec, row).workers)
        return;
    float t = spec->counts ? optimizer_next_step(state[2 * (size_t)spec->dim]) : 0;
    for (uint32_t col = 0, n; col < spec->dim; col += n) {
        n = spec->dim - col < BLOCK ? spec->dim - col : BLOCK;
        memcpy(w, to + col * spec->value_bytes, n * spec->value_bytes);
        for (unsigned p = 0; p < spec->planes; p++)
            memcpy(s[p], state + p * (size_t)spec->dim + col, n * sizeof(float));
        gradient_get(spec, row, col, n, gradient);
        o->span(o, w, s[0], s[1], t, gradient, n);
        memcpy(to + col * spec->value_bytes, w, n * spec->value_bytes);
        for (unsigned p = 0; p < spec->planes; p++)
            memcpy(to_state + (p * (size_t)spec->dim + col) * sizeof(float), s[p], n * sizeof(float));
    }
    if (spec->counts)
        memcpy(to_state + 2 * (size_t)spec->dim * sizeof(float), &t, sizeof t);
}

uint64_t aggregate_count_nonzero(const struct rowspec *spec, const void *row)
{
    double w[BLOCK];
    uint64_t count = 0;
    for (uint32_t col = 0, n; col < spec->dim; col += n) {
        n = spec->dim - col < BLOCK ? spec->dim - col : BLOCK;
        aggregate_read(spec, row, UINT64_MAX, col, n, w);
        count += rowspec_count_nonzero(spec, w, n);
    }
    return count;
}
