/*
 * Pinball loss, for labels of any size: q (y - s m) if y > s m, otherwise (1 - q) (s m - y), with q the wanted quantile
 * and s the label_scale. The residual, the derivative in units of s, is -q, 1 - q, or 0 if y = s m. The prediction is
 * s m, the q-quantile of y (Koenker and Bassett, Econometrica 46, 1978).
 */
#include "learn/objective/objective.h"

#include <stdlib.h>

VECTOR_INLINE void strip(const struct objective *o, const float *margin, const float *label, size_t n,
                         double *loss, float *residual)
{
    const double s = o->label_scale, q = o->quantile;
    for (size_t i = 0; i < n; i++) {
        const double above = (double)label[i] / s - (double)margin[i];
        loss[i] = s * (above > 0 ? q * above : (q - 1) * above);
        residual[i] = (float)(above > 0 ? -q : above < 0 ? 1 - q : 0.0);
    }
}

#define UNUSED(stride) ((void)(stride))
VECTOR_LOOP(void, quantile_strip,
            (const struct objective *o, const float *margin, size_t stride, const float *label, size_t n,
             double *loss, float *residual),
            (UNUSED(stride), strip(o, margin, label, n, loss, residual)));

static void quantile_predict(const struct objective *o, const float *margin, size_t stride, double *out)
{
    UNUSED(stride);
    out[0] = o->label_scale * (double)margin[0];
}

struct weighed {
    float y, w;
};

static int by_label(const void *a, const void *b)
{
    const float x = ((const struct weighed *)a)->y, y = ((const struct weighed *)b)->y;
    return (x > y) - (x < y);
}

/* Adds the quantile of these rows, times their weight. The quantile of all rows does not follow from those of parts, so
 * `constant` is the mean of these. */
static int quantile_tally(const struct objective *o, const float *y, const float *w, size_t n, double *sum)
{
    struct weighed *row = malloc((n + 1) * sizeof *row);
    double all = 0, below = 0;
    if (!row)
        return 0;
    for (size_t i = 0; i < n; i++) {
        row[i] = (struct weighed){.y = y[i], .w = !w ? 1.0f : w[i]};
        all += (double)row[i].w;
    }
    qsort(row, n, sizeof *row, by_label);
    size_t at = 0;
    while (at + 1 < n && below + (double)row[at].w < o->quantile * all)
        below += (double)row[at++].w;
    if (n > 0)
        *sum += (double)row[at].y * all;
    free(row);
    return 1;
}

static void quantile_constant(const struct objective *o, double weight, const double *sum, float *margin)
{
    margin[0] = weight > 0 ? (float)(sum[0] / weight / o->label_scale) : 0.0f;
}

const struct objective_ops objective_quantile = {
    .name = "quantile",
    .help = "quantile of the labels (--quantile)",
    .loss = "pinball loss",
    .key = "pinball_loss",
    .labels = LABEL_REAL,
    .quantile = 0.5,
    .scaled = 1,
    .constants = 1,
    .metrics = METRIC_BIT(METRIC_MAE) | METRIC_BIT(METRIC_COVERAGE),
    .nats = 1,
    .strip = quantile_strip_at,
    .predict = quantile_predict,
    .tally = quantile_tally,
    .constant = quantile_constant,
};
