#include "learn/eval/curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct row {
    float margin, weight;
    uint8_t positive;
};

struct curves {
    struct objective objective;
    struct row *row; /* [cap] */
    size_t n, cap;
};

paramo_err curves_new(const struct objective *objective, struct curves **curves)
{
    struct curves *c = calloc(1, sizeof *c);
    if (!c)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for curves");
    c->objective = *objective;
    *curves = c;
    return PARAMO_OK;
}

void curves_free(struct curves *c)
{
    if (!c)
        return;
    free(c->row);
    free(c);
}

paramo_err curves_add(struct curves *c, const struct scored_rows *r)
{
    if (c->n + r->n > c->cap) {
        const size_t cap = c->n + r->n + c->n / 2;
        struct row *row = realloc(c->row, cap * sizeof *row);
        if (!row)
            return paramo_error_set(PARAMO_E_MEMORY, "out of memory: scores of %zu rows", cap);
        c->row = row;
        c->cap = cap;
    }
    for (size_t i = 0; i < r->n; i++)
        c->row[c->n++] = (struct row){.margin = r->margin[i],
                                      .weight = r->weight ? r->weight[i] : 1.0f,
                                      .positive = r->label[i] > 0.5f};
    return PARAMO_OK;
}

static int by_margin(const void *a, const void *b)
{
    const float x = ((const struct row *)a)->margin, y = ((const struct row *)b)->margin;
    return x > y ? -1 : x < y;
}

static struct curves_threshold threshold(const struct curves_result *r, uint64_t rows, uint64_t positives)
{
    const double negatives = (double)(r->rows - r->positives), precision = (double)positives / (double)rows;
    return (struct curves_threshold){.share = (double)rows / (double)r->rows,
                                     .recall = (double)positives / (double)r->positives,
                                     .fallout = (double)(rows - positives) / negatives,
                                     .precision = precision,
                                     .lift = precision * (double)r->rows / (double)r->positives};
}

/* Is t at least one step from the last point? Recall and fallout, together, go from 0 to 2 in CURVES_POINTS steps. */
static int is_step(const struct curves_result *r, const struct curves_threshold *t)
{
    const struct curves_threshold *last = &r->at[r->n - 1];
    return t->recall - last->recall + t->fallout - last->fallout >= 2.0 / CURVES_POINTS;
}

static void thresholds(const struct curves *c, struct curves_result *r)
{
    uint64_t positives = 0;
    r->at[0] = (struct curves_threshold){0};
    r->n = 1;
    for (size_t i = 0; i < c->n;) {
        const float margin = c->row[i].margin;
        for (; i < c->n && c->row[i].margin == margin; i++)
            positives += c->row[i].positive;
        const struct curves_threshold t = threshold(r, i, positives);
        if (r->n == 1 || i == c->n || is_step(r, &t))
            r->at[r->n++] = t;
    }
    r->at[0].precision = r->at[1].precision;
    r->at[0].lift = r->at[1].lift;
}

void curves_interval(double p, double n, double *low, double *high)
{
    const double z = 1.959964, middle = p + z * z / (2 * n), by = 1 + z * z / n;
    const double half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n));
    *low = (middle - half) / by;
    *high = (middle + half) / by;
}

static void reliability(const struct curves *c, struct curves_result *r)
{
    for (size_t b = 0, i = 0; b < CURVES_BINS && i < c->n; b++) {
        const size_t end = c->n * (b + 1) / CURVES_BINS;
        double weight = 0, label = 0, predicted = 0;
        struct curves_bin *bin = &r->bin[r->bins];
        *bin = (struct curves_bin){0};
        for (; i < end; i++) {
            double prediction;
            c->objective.ops->predict(&c->objective, &c->row[i].margin, 1, &prediction);
            weight += (double)c->row[i].weight;
            label += (double)c->row[i].weight * c->row[i].positive;
            predicted += (double)c->row[i].weight * prediction;
            bin->rows++;
        }
        if (!(weight > 0))
            continue;
        bin->prediction = predicted / weight;
        bin->label = label / weight;
        curves_interval(bin->label, (double)bin->rows, &bin->low, &bin->high);
        r->bins++;
    }
}

paramo_err curves_finish(struct curves *c, struct curves_result *r)
{
    *r = (struct curves_result){.rows = c->n};
    for (size_t i = 0; i < c->n; i++)
        r->positives += c->row[i].positive;
    if (r->positives == 0 || r->positives == r->rows)
        return paramo_error_set(PARAMO_E_INVALID,
                                "all rows have the same label: there are no curves to draw");
    qsort(c->row, c->n, sizeof *c->row, by_margin);
    thresholds(c, r);
    reliability(c, r);
    return PARAMO_OK;
}
