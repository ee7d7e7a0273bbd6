#include "learn/eval/metric_sums.h"

#include <math.h>

static int all_finite(const struct objective *o, const float *margin, size_t stride, size_t n)
{
    int all = 1;
    for (uint32_t c = 0; c < objective_outputs(o); c++)
        for (size_t i = 0; i < n; i++)
            all &= isfinite(margin[c * stride + i]) != 0;
    return all;
}

paramo_err metric_sums_add(const struct objective *o, double sums[MSUMS], const float *margin, size_t stride,
                           const float *label, const float *weight, const float *base, size_t n,
                           float *residual)
{
    double prediction[OBJECTIVE_CLASSES_MAX];
    struct label_sums labels = {sums[MSUM_WEIGHT], sums[MSUM_LABEL], sums[MSUM_SQUARE]};
    if (!all_finite(o, margin, stride, n))
        return paramo_error_set(
            PARAMO_E_NUMERIC,
            "the model's score of a row is not a finite number: the model has diverged; train it again "
            "with a lower --alpha");
    sums[MSUM_LOSS] = objective_residuals(o, margin, stride, label, weight, n, sums[MSUM_LOSS], residual);
    objective_add_labels(&labels, label, weight, n);
    sums[MSUM_ROWS] += (double)n;
    sums[MSUM_WEIGHT] = labels.weight;
    sums[MSUM_LABEL] = labels.label;
    sums[MSUM_SQUARE] = labels.square;
    for (size_t i = 0; i < n; i++) {
        const double w = !weight ? 1 : (double)weight[i], y = (double)label[i];
        sums[MSUM_POSITIVES] += label[i] > 0.5f;
        if (o->ops->correct)
            sums[MSUM_CORRECT] += w * o->ops->correct(o, margin + i, stride, label[i]);
        if (base)
            sums[MSUM_BASE] += w * objective_loss(o, base, 1, label[i]);
        if (o->ops->many)
            continue;
        o->ops->predict(o, margin + i, stride, prediction);
        const double error = prediction[0] - y;
        sums[MSUM_PREDICTED] += w * prediction[0];
        sums[MSUM_ERROR] += w * fabs(error);
        sums[MSUM_ERROR2] += w * error * error;
        sums[MSUM_COVERED] += error >= 0 ? w : 0;
    }
    return PARAMO_OK;
}

void metric_sums_finish(const struct objective *o, const double s[MSUMS], struct metrics_result *result)
{
    const double weight = s[MSUM_WEIGHT];
    const struct label_sums labels = {weight, s[MSUM_LABEL], s[MSUM_SQUARE]};
    const double variance = objective_variance(&labels), mse = s[MSUM_ERROR2] / weight;
    const double all[METRICS] = {[METRIC_AUC] = (double)NAN,
                                 [METRIC_ACCURACY] = s[MSUM_CORRECT] / weight,
                                 [METRIC_CALIBRATION] =
                                     s[MSUM_LABEL] > 0 ? s[MSUM_PREDICTED] / s[MSUM_LABEL] : (double)NAN,
                                 [METRIC_RMSE] = sqrt(mse),
                                 [METRIC_MAE] = s[MSUM_ERROR] / weight,
                                 [METRIC_R2] = variance > 0 ? 1 - mse / variance : (double)NAN,
                                 [METRIC_COVERAGE] = s[MSUM_COVERED] / weight};
    *result = (struct metrics_result){.rows = (uint64_t)s[MSUM_ROWS],
                                      .positives = (uint64_t)s[MSUM_POSITIVES],
                                      .mean_label = s[MSUM_LABEL] / weight,
                                      .loss = s[MSUM_LOSS] / weight,
                                      .base = s[MSUM_BASE] / weight};
    for (unsigned m = 0; m < METRICS; m++)
        result->value[m] = o->ops->metrics & METRIC_BIT(m) ? all[m] : (double)NAN;
}

int metric_sums_measure(const struct objective *o, const double s[MSUMS])
{
    if (!(s[MSUM_WEIGHT] > 0))
        return 0;
    if (o->ops->labels == LABEL_BINARY)
        return s[MSUM_POSITIVES] > 0 && s[MSUM_POSITIVES] < s[MSUM_ROWS];
    return s[MSUM_ROWS] > 1;
}
