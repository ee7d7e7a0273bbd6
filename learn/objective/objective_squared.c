/*
 * Squared loss, for labels of any size: (s m - y)^2 / 2 with s the label_scale. The residual is m - y / s, the
 * derivative of the loss in units of s^2. The prediction is s m, the mean of y. The root of the mean squared error
 * (RMSE) is shown.
 */
#include "learn/objective/objective.h"

#include <math.h>

VECTOR_INLINE void strip(const struct objective *o, const float *margin, const float *label, size_t n,
                         double *loss, float *residual)
{
    const double s = o->label_scale, half = 0.5 * s * s;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)margin[i] - (double)label[i] / s;
        loss[i] = half * (d * d);
        residual[i] = (float)d;
    }
}

#define UNUSED(stride) ((void)(stride))
VECTOR_LOOP(void, squared_strip,
            (const struct objective *o, const float *margin, size_t stride, const float *label, size_t n,
             double *loss, float *residual),
            (UNUSED(stride), strip(o, margin, label, n, loss, residual)));

static void squared_predict(const struct objective *o, const float *margin, size_t stride, double *out)
{
    UNUSED(stride);
    out[0] = o->label_scale * (double)margin[0];
}

static void squared_constant(const struct objective *o, double weight, const double *sum, float *margin)
{
    margin[0] = weight > 0 ? (float)(sum[0] / weight / o->label_scale) : 0.0f;
}

static double squared_spread(const struct objective *o, const struct label_sums *sums)
{
    (void)o;
    return objective_variance(sums) / 2;
}

static double squared_shown(double loss)
{
    return sqrt(2 * loss);
}

const struct objective_ops objective_squared = {
    .name = "squared",
    .help = "mean of the labels",
    .loss = "RMSE",
    .key = "rmse",
    .labels = LABEL_REAL,
    .scaled = 1,
    .constants = 1,
    .metrics = METRIC_BIT(METRIC_MAE) | METRIC_BIT(METRIC_R2),
    .nats = 0.5,
    .strip = squared_strip_at,
    .predict = squared_predict,
    .tally = objective_tally_label,
    .constant = squared_constant,
    .spread = squared_spread,
    .shown = squared_shown,
};
