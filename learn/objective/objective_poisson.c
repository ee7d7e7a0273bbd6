/*
 * Poisson loss, for counts: exp(m) - y m, minus its least value for this y, y - y log y. So it is never negative, and
 * is half the deviance. Its derivative is exp(m) - y. The prediction is exp(m), the mean of y.
 *
 * In the exponent, margins are limited to MOST: no sensible model predicts a count of 1e13.
 */
#include "learn/objective/logistic.h"
#include "learn/objective/objective.h"

#define MOST 30.0

static double mean_of(float margin)
{
    return link_exp((double)margin < MOST ? (double)margin : MOST);
}

static double least(double y)
{
    return y > 0 ? y - y * link_log(y) : 0;
}

/* One row at a time: link_log has no vector form. */
static void strip(const float *margin, const float *label, size_t n, double *loss, float *residual)
{
    for (size_t i = 0; i < n; i++) {
        const double y = (double)label[i], mean = mean_of(margin[i]),
                     l = mean - y * (double)margin[i] - least(y);
        loss[i] = l < 0 ? 0 : l; /* below 0 by rounding, or above MOST */
        residual[i] = (float)(mean - y);
    }
}

#define UNUSED(o, stride) ((void)(o), (void)(stride))
static void poisson_strip(const struct objective *o, const float *margin, size_t stride, const float *label,
                          size_t n, double *loss, float *residual)
{
    UNUSED(o, stride);
    strip(margin, label, n, loss, residual);
}

static objective_strip_fn *const strips[VECTOR_LEVELS] = {poisson_strip, poisson_strip, poisson_strip};

static void poisson_predict(const struct objective *o, const float *margin, size_t stride, double *out)
{
    UNUSED(o, stride);
    out[0] = mean_of(margin[0]);
}

/* Adds half a count, because a mean of 0 has no logarithm. */
static void poisson_constant(const struct objective *o, double weight, const double *sum, float *margin)
{
    (void)o;
    margin[0] = (float)(link_log(sum[0] + 0.5) - link_log(weight + 0.5));
}

const struct objective_ops objective_poisson = {
    .name = "poisson",
    .help = "mean of counts",
    .loss = "Poisson loss",
    .key = "poisson_loss",
    .labels = LABEL_COUNT,
    .constants = 1,
    .metrics = METRIC_BIT(METRIC_CALIBRATION) | METRIC_BIT(METRIC_RMSE) | METRIC_BIT(METRIC_MAE),
    .strip = strips,
    .predict = poisson_predict,
    .tally = objective_tally_label,
    .constant = poisson_constant,
};
