/*
 * Logistic loss, for labels 0 and 1: log(1 + exp(m)) - y m, at most LINK_MAX_LOSS; its derivative is p - y with
 * p = 1 / (1 + exp(-m)), which is the prediction.
 */
#include "learn/objective/logistic.h"
#include "learn/objective/objective.h"
#include "learn/objective/vector_math.h"

/* The loops have no dependence between rows, so compilers make vector code of them. The clamp has a loop of its own:
 * otherwise they keep it as a branch through all that follows. */
VECTOR_INLINE void strip(const float *margin, const float *label, size_t n, double *loss, float *residual)
{
    double x[OBJECTIVE_STRIP];
    for (size_t i = 0; i < n; i++) {
        double m = -fabs((double)margin[i]);
        x[i] = m < EXP_LOWEST ? EXP_LOWEST : m;
    }
    for (size_t i = 0; i < n; i++)
        x[i] = exp_clamped(x[i]);
    for (size_t i = 0; i < n; i++) {
        double m = (double)margin[i], y = (double)label[i], e = x[i];
        double l = 0.5 * (m + fabs(m)) - y * m + log1p_unit(e);
        loss[i] = l < LINK_MAX_LOSS ? l : LINK_MAX_LOSS;
        residual[i] = (float)((m < 0 ? e : 1.0) / (1.0 + e) - y);
    }
}

#define UNUSED(o, stride) ((void)(o), (void)(stride))
VECTOR_LOOP(void, logistic_strip,
            (const struct objective *o, const float *margin, size_t stride, const float *label, size_t n,
             double *loss, float *residual),
            (UNUSED(o, stride), strip(margin, label, n, loss, residual)));

static void logistic_predict(const struct objective *o, const float *margin, size_t stride, double *out)
{
    UNUSED(o, stride);
    out[0] = link_probability(margin[0]);
}

static void logistic_constant(const struct objective *o, double weight, const double *sum, float *margin)
{
    (void)o;
    margin[0] = (float)link_margin(sum[0], weight - sum[0]);
}

static double logistic_spread(const struct objective *o, const struct label_sums *sums)
{
    (void)o;
    const double p = sums->label / sums->weight;
    return p > 0 && p < 1 ? -(p * link_log(p) + (1 - p) * link_log(1 - p)) : 0;
}

static double logistic_toss(const struct objective *o)
{
    (void)o;
    return 0.6931471805599453; /* ln 2 */
}

const struct objective_ops objective_logistic = {
    .name = "logistic",
    .help = "probability of label 1",
    .loss = "log-loss",
    .key = "logloss",
    .labels = LABEL_BINARY,
    .constants = 1,
    .metrics = METRIC_BIT(METRIC_AUC) | METRIC_BIT(METRIC_ACCURACY) | METRIC_BIT(METRIC_CALIBRATION),
    .strip = logistic_strip_at,
    .predict = logistic_predict,
    .correct = objective_correct_sign,
    .tally = objective_tally_label,
    .constant = logistic_constant,
    .spread = logistic_spread,
    .toss = logistic_toss,
};
