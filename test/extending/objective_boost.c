/*
 * Exponential loss, for labels 0 and 1, as an example for docs/EXTENDING.md: exp(-s m) with s = 2 y - 1, that of
 * AdaBoost (Friedman, Hastie and Tibshirani, Annals of Statistics 28, 2000); its derivative is -s exp(-s m). The
 * prediction is the margin, half the log-odds of label 1.
 */
#include "learn/objective/logistic.h"
#include "learn/objective/objective.h"

static void boost_strip(const struct objective *o, const float *margin, size_t stride, const float *label,
                        size_t n, double *loss, float *residual)
{
    (void)o;
    (void)stride;
    for (size_t i = 0; i < n; i++) {
        const double s = 2.0 * (double)label[i] - 1.0;
        loss[i] = link_exp(-s * (double)margin[i]);
        residual[i] = (float)(-s * loss[i]);
    }
}

/* Rows one by one: no level of vectors has a loop of its own. */
static objective_strip_fn *const strips[VECTOR_LEVELS] = {boost_strip, boost_strip, boost_strip};

static void boost_predict(const struct objective *o, const float *margin, size_t stride, double *out)
{
    (void)o;
    (void)stride;
    out[0] = (double)margin[0];
}

/* One row of each kind more: a rate of 0 has no logarithm. */
static void boost_constant(const struct objective *o, double weight, const double *sum, float *margin)
{
    (void)o;
    margin[0] = (float)(link_margin(sum[0], weight - sum[0]) / 2);
}

static double boost_toss(const struct objective *o)
{
    (void)o;
    return 1;
}

const struct objective_ops objective_boost = {
    .name = "boost",
    .help = "half the log-odds of label 1",
    .loss = "exponential loss",
    .key = "exponential_loss",
    .labels = LABEL_BINARY,
    .constants = 1,
    .metrics = METRIC_BIT(METRIC_AUC) | METRIC_BIT(METRIC_ACCURACY),
    .nats = 1,
    .strip = strips,
    .predict = boost_predict,
    .correct = objective_correct_sign,
    .tally = objective_tally_label,
    .constant = boost_constant,
    .toss = boost_toss,
};
