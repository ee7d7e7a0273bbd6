/*
 * Hinge loss, for labels 0 and 1: max(0, 1 - s m) with s = 2 y - 1; its derivative is -s if s m < 1, otherwise 0. It is
 * the loss of linear support vector machines. The prediction is the margin: positive for label 1.
 */
#include "learn/objective/objective.h"

VECTOR_INLINE void strip(const float *margin, const float *label, size_t n, double *loss, float *residual)
{
    for (size_t i = 0; i < n; i++) {
        const double s = 2.0 * (double)label[i] - 1.0, short_of = 1.0 - s * (double)margin[i];
        loss[i] = short_of > 0 ? short_of : short_of == short_of ? 0.0 : short_of; /* NaN stays */
        residual[i] = short_of > 0 ? (float)-s : 0.0f;
    }
}

#define UNUSED(o, stride) ((void)(o), (void)(stride))
VECTOR_LOOP(void, hinge_strip,
            (const struct objective *o, const float *margin, size_t stride, const float *label, size_t n,
             double *loss, float *residual),
            (UNUSED(o, stride), strip(margin, label, n, loss, residual)));

static void hinge_predict(const struct objective *o, const float *margin, size_t stride, double *out)
{
    UNUSED(o, stride);
    out[0] = (double)margin[0];
}

/* For m from -1 to 1, the mean loss with a share p of positives is p (1 - m) + (1 - p) (1 + m): least at an end. */
static void hinge_constant(const struct objective *o, double weight, const double *sum, float *margin)
{
    (void)o;
    margin[0] = 2 * sum[0] > weight ? 1.0f : -1.0f;
}

static double hinge_spread(const struct objective *o, const struct label_sums *sums)
{
    (void)o;
    const double p = sums->label / sums->weight;
    return 2 * (p < 0.5 ? p : 1 - p);
}

static double hinge_toss(const struct objective *o)
{
    (void)o;
    return 1;
}

const struct objective_ops objective_hinge = {
    .name = "hinge",
    .help = "a margin that is positive for label 1",
    .loss = "hinge loss",
    .key = "hinge_loss",
    .labels = LABEL_BINARY,
    .constants = 1,
    .metrics = METRIC_BIT(METRIC_AUC) | METRIC_BIT(METRIC_ACCURACY),
    .nats = 1,
    .strip = hinge_strip_at,
    .predict = hinge_predict,
    .correct = objective_correct_sign,
    .tally = objective_tally_label,
    .constant = hinge_constant,
    .spread = hinge_spread,
    .toss = hinge_toss,
};
