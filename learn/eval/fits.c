#include "learn/eval/fits.h"
#include "learn/eval/curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of classes: the probability of the predicted one, and 1 if it is right. */
struct row {
    float prediction, label;
};

struct fits {
    struct objective objective;
    struct row *row; /* [cap] */
    size_t n, cap;
    uint64_t *confusion; /* [classes * classes], or NULL: numbers */
    uint64_t rank[FITS_RANKS];
};

paramo_err fits_new(const struct objective *objective, struct fits **fits)
{
    struct fits *f = calloc(1, sizeof *f);
    const size_t classes = objective->ops->many ? objective->classes : 0;
    if (f && classes > 0)
        f->confusion = calloc(classes * classes, sizeof *f->confusion);
    if (!f || (classes > 0 && !f->confusion)) {
        free(f);
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a plot of %zu classes", classes);
    }
    f->objective = *objective;
    *fits = f;
    return PARAMO_OK;
}

void fits_free(struct fits *f)
{
    if (!f)
        return;
    free(f->row);
    free(f->confusion);
    free(f);
}

static struct row add_class(struct fits *f, const float *margin, size_t stride, uint32_t label)
{
    double probability[OBJECTIVE_CLASSES_MAX];
    const uint32_t classes = f->objective.classes;
    uint32_t best = 0, above = 0;
    f->objective.ops->predict(&f->objective, margin, stride, probability);
    for (uint32_t c = 1; c < classes; c++)
        best = margin[c * stride] > margin[best * stride] ? c : best;
    for (uint32_t c = 0; c < classes; c++)
        above += margin[c * stride] > margin[label * stride] ||
                 (c < label && margin[c * stride] == margin[label * stride]);
    f->confusion[(size_t)label * classes + best]++;
    if (above < FITS_RANKS)
        f->rank[above]++;
    return (struct row){.prediction = (float)probability[best], .label = best == label};
}

static struct row add_number(const struct fits *f, float margin, float label)
{
    double prediction;
    f->objective.ops->predict(&f->objective, &margin, 1, &prediction);
    return (struct row){.prediction = (float)prediction, .label = label};
}

paramo_err fits_add(struct fits *f, const struct scored_rows *r)
{
    if (f->n + r->n > f->cap) {
        const size_t cap = f->n + r->n + f->n / 2;
        struct row *row = realloc(f->row, cap * sizeof *row);
        if (!row)
            return paramo_error_set(PARAMO_E_MEMORY, "out of memory: predictions of %zu rows", cap);
        f->row = row;
        f->cap = cap;
    }
    for (size_t i = 0; i < r->n; i++)
        f->row[f->n++] = f->confusion ? add_class(f, r->margin + i, r->stride, (uint32_t)r->label[i])
                                      : add_number(f, r->margin[i], r->label[i]);
    return PARAMO_OK;
}

static int by_prediction(const void *a, const void *b)
{
    const float x = ((const struct row *)a)->prediction, y = ((const struct row *)b)->prediction;
    return x < y ? -1 : x > y;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The value of n sorted ones that has about `share` of them below. */
static double quantile(const double *sorted, size_t n, double share)
{
    return sorted[(size_t)(share * (double)(n - 1) + 0.5)];
}

/* Sorts n values. A tenth of them is below *low, and a tenth above *high. */
static void tenths(double *value, size_t n, double *low, double *high)
{
    qsort(value, n, sizeof *value, by_value);
    *low = quantile(value, n, 0.1);
    *high = quantile(value, n, 0.9);
}

/* Of n > 0 rows; memory has room for n values. */
static struct fits_bin bin_of(const struct row *row, size_t n, int classes, double *memory)
{
    struct fits_bin bin = {.rows = n};
    for (size_t i = 0; i < n; i++) {
        bin.prediction += (double)row[i].prediction / (double)n;
        bin.label += (double)row[i].label / (double)n;
        memory[i] = (double)row[i].label;
    }
    if (classes) {
        curves_interval(bin.label, (double)n, &bin.low, &bin.high);
        return bin;
    }
    tenths(memory, n, &bin.low, &bin.high);
    for (size_t i = 0; i < n; i++)
        memory[i] = (double)row[i].label - (double)row[i].prediction;
    tenths(memory, n, &bin.under, &bin.over);
    return bin;
}

/* The rows are sorted by prediction; memory has room for a value of each row. */
static void make_bins(const struct fits *f, double *memory, struct fits_result *r)
{
    for (size_t b = 0; b < FITS_BINS; b++) {
        const size_t from = f->n * b / FITS_BINS, end = f->n * (b + 1) / FITS_BINS;
        if (end > from)
            r->bin[r->bins++] = bin_of(f->row + from, end - from, f->confusion != NULL, memory);
    }
}

static void residuals(const struct fits *f, double *memory, struct fits_result *r)
{
    for (size_t i = 0; i < f->n; i++)
        memory[i] = (double)f->row[i].label - (double)f->row[i].prediction;
    qsort(memory, f->n, sizeof *memory, by_value);
    const double low = quantile(memory, f->n, 0.005), high = quantile(memory, f->n, 0.995);
    r->step_from = low;
    r->step_width = high > low ? (high - low) / FITS_STEPS : 1;
    for (size_t i = 0; i < f->n; i++) {
        const double at = (memory[i] - low) / r->step_width;
        const size_t step = at < 0 ? 0 : at < FITS_STEPS ? (size_t)at : FITS_STEPS - 1;
        r->step[step] += 1 / (double)f->n;
    }
    for (size_t i = 0; i < f->n; i++)
        memory[i] = fabs(memory[i]);
    qsort(memory, f->n, sizeof *memory, by_value);
    for (size_t i = 0; i <= 100; i++)
        r->error[i] = quantile(memory, f->n, (double)i / 100);
}

paramo_err fits_finish(struct fits *f, struct fits_result *r)
{
    *r = (struct fits_result){
        .rows = f->n, .classes = f->confusion ? f->objective.classes : 0, .confusion = f->confusion};
    if (f->n == 0)
        return paramo_error_set(PARAMO_E_INVALID, "there are no rows to plot");
    double *memory = malloc(f->n * sizeof *memory);
    if (!memory)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a plot of %zu rows", f->n);
    qsort(f->row, f->n, sizeof *f->row, by_prediction);
    make_bins(f, memory, r);
    if (!f->confusion)
        residuals(f, memory, r);
    free(memory);
    uint64_t rows = 0;
    for (size_t k = 0; f->confusion && k < FITS_RANKS; k++) {
        rows += f->rank[k];
        r->among[k] = (double)rows / (double)f->n;
    }
    return PARAMO_OK;
}
