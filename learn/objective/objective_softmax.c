/*
 * Multinomial logistic loss, for labels 0 .. C - 1: log(sum_c exp(m_c)) - m_y, at most LINK_MAX_LOSS. Its derivative by
 * m_c is p_c - [c = y] with p_c = exp(m_c) / sum_k exp(m_k), and these are the predictions.
 */
#include "learn/objective/logistic.h"
#include "learn/objective/objective.h"
#include "learn/objective/vector_math.h"

/* Rows are the lanes; classes are summed in their order. exp(m_c - greatest m) is at least exp(EXP_LOWEST). */
VECTOR_INLINE void strip(const struct objective *o, const float *margin, size_t stride, const float *label,
                         size_t n, double *loss, float *residual)
{
    float most[OBJECTIVE_STRIP];
    double sum[OBJECTIVE_STRIP], own[OBJECTIVE_STRIP], x[OBJECTIVE_STRIP];
    for (size_t i = 0; i < n; i++) {
        most[i] = margin[i];
        sum[i] = own[i] = 0;
    }
    for (uint32_t c = 1; c < o->classes; c++)
        for (size_t i = 0; i < n; i++)
            most[i] = margin[c * stride + i] > most[i] ? margin[c * stride + i] : most[i];
    for (uint32_t c = 0; c < o->classes; c++) {
        for (size_t i = 0; i < n; i++) {
            const double below = (double)margin[c * stride + i] - (double)most[i];
            x[i] = below < EXP_LOWEST ? EXP_LOWEST : below;
            own[i] = label[i] == (float)c ? below : own[i];
        }
        for (size_t i = 0; i < n; i++)
            sum[i] += exp_clamped(x[i]);
    }
    for (uint32_t c = 0; c < o->classes; c++) {
        for (size_t i = 0; i < n; i++) {
            const double below = (double)margin[c * stride + i] - (double)most[i];
            x[i] = below < EXP_LOWEST ? EXP_LOWEST : below;
        }
        for (size_t i = 0; i < n; i++)
            residual[c * stride + i] =
                (float)(exp_clamped(x[i]) / sum[i] - (label[i] == (float)c ? 1.0 : 0.0));
    }
    for (size_t i = 0; i < n; i++) {
        const double l = link_log(sum[i]) - own[i];
        loss[i] = l < LINK_MAX_LOSS ? l : l == l ? LINK_MAX_LOSS : l; /* NaN stays */
    }
}

VECTOR_LOOP(void, softmax_strip,
            (const struct objective *o, const float *margin, size_t stride, const float *label, size_t n,
             double *loss, float *residual),
            strip(o, margin, stride, label, n, loss, residual));

static void softmax_predict(const struct objective *o, const float *margin, size_t stride, double *out)
{
    float most = margin[0];
    double sum = 0;
    for (uint32_t c = 1; c < o->classes; c++)
        most = margin[c * stride] > most ? margin[c * stride] : most;
    for (uint32_t c = 0; c < o->classes; c++)
        sum += out[c] = link_exp((double)margin[c * stride] - (double)most);
    for (uint32_t c = 0; c < o->classes; c++)
        out[c] /= sum;
}

/* The class with the greatest margin is predicted; of equals, the first. */
static int softmax_correct(const struct objective *o, const float *margin, size_t stride, float label)
{
    uint32_t best = 0;
    for (uint32_t c = 1; c < o->classes; c++)
        if (margin[c * stride] > margin[best * stride])
            best = c;
    return label == (float)best;
}

static int softmax_tally(const struct objective *o, const float *y, const float *w, size_t n, double *sum)
{
    for (size_t i = 0; i < n; i++)
        if (y[i] >= 0 && y[i] < (float)o->classes)
            sum[(uint32_t)y[i]] += !w ? 1.0 : (double)w[i];
    return 1;
}

/* Adds a row of each class, because a rate of 0 has no logarithm. The margins sum to about 0, so that weights stay
 * small. */
static void softmax_constant(const struct objective *o, double weight, const double *sum, float *margin)
{
    double mean = 0;
    (void)weight;
    for (uint32_t c = 0; c < o->classes; c++)
        mean += link_log(sum[c] + 1.0) / o->classes;
    for (uint32_t c = 0; c < o->classes; c++)
        margin[c] = (float)(link_log(sum[c] + 1.0) - mean);
}

static double softmax_toss(const struct objective *o)
{
    return link_log(o->classes);
}

const struct objective_ops objective_softmax = {
    .name = "softmax",
    .help = "probabilities of the labels 0 .. C - 1 (--classes C)",
    .loss = "log-loss",
    .key = "logloss",
    .labels = LABEL_CLASS,
    .many = 1,
    .metrics = METRIC_BIT(METRIC_ACCURACY),
    .strip = softmax_strip_at,
    .predict = softmax_predict,
    .correct = softmax_correct,
    .tally = softmax_tally,
    .constant = softmax_constant,
    .toss = softmax_toss,
};
