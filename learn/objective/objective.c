#include "learn/objective/objective.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const struct objective_ops *const objectives[] = {
#define OBJECTIVE_ENTRY(name) &objective_##name,
    OBJECTIVES(OBJECTIVE_ENTRY)
#undef OBJECTIVE_ENTRY
};

static const char *const metric_names[METRICS] = {
    [METRIC_AUC] = "auc",          [METRIC_ACCURACY] = "accuracy", [METRIC_CALIBRATION] = "calibration",
    [METRIC_RMSE] = "rmse",        [METRIC_MAE] = "mae",           [METRIC_R2] = "r2",
    [METRIC_COVERAGE] = "coverage"};

const struct objective_ops *objective_at(size_t i)
{
    return i < sizeof objectives / sizeof *objectives ? objectives[i] : NULL;
}

const struct objective_ops *objective_find(const char *name)
{
    for (size_t i = 0; i < sizeof objectives / sizeof *objectives; i++)
        if (strcmp(objectives[i]->name, name) == 0)
            return objectives[i];
    return NULL;
}

const char *objective_metric_name(enum objective_metric metric)
{
    return metric_names[metric];
}

struct objective objective_of(const struct objective_ops *ops)
{
    return (struct objective){.ops = ops, .quantile = ops->quantile, .label_scale = 1};
}

const char *objective_valid(const struct objective *o)
{
    const int wants_quantile = o->ops->quantile > 0;
    if (o->ops->many && (o->classes < 2 || o->classes > OBJECTIVE_CLASSES_MAX))
        return "needs --classes, at least 2";
    if (!o->ops->many && o->classes != 0)
        return "has no --classes";
    if (wants_quantile ? !(o->quantile > 0 && o->quantile < 1) : o->quantile != 0)
        return wants_quantile ? "needs a --quantile between 0 and 1" : "has no --quantile";
    return o->label_scale > 0 ? NULL : "has a scale of labels that is not positive";
}

uint32_t objective_outputs(const struct objective *o)
{
    return o->ops->many ? o->classes : 1;
}

size_t objective_constants(const struct objective *o)
{
    return o->ops->many ? o->classes : (size_t)o->ops->constants;
}

struct label_rule objective_label_rule(const struct objective *o)
{
    return (struct label_rule){.kind = o->ops->labels, .classes = o->classes};
}

double objective_residuals(const struct objective *o, const float *margin, size_t stride, const float *label,
                           const float *weight, size_t n, double sum, float *residual)
{
    objective_strip_fn *strip = o->ops->strip[vector_level()];
    const uint32_t outputs = objective_outputs(o);
    double loss[OBJECTIVE_STRIP];
    for (size_t at = 0; at < n; at += OBJECTIVE_STRIP) {
        const size_t rows = n - at < OBJECTIVE_STRIP ? n - at : OBJECTIVE_STRIP;
        strip(o, margin + at, stride, label + at, rows, loss, residual + at);
        for (uint32_t c = 0; weight && c < outputs; c++)
            for (size_t i = 0; i < rows; i++)
                residual[c * stride + at + i] *= weight[at + i];
        if (!weight)
            for (size_t i = 0; i < rows; i++)
                sum += loss[i];
        else
            for (size_t i = 0; i < rows; i++)
                sum += (double)weight[at + i] * loss[i];
    }
    return sum;
}

double objective_loss(const struct objective *o, const float *margin, size_t stride, float label)
{
    float one[OBJECTIVE_CLASSES_MAX], residual[OBJECTIVE_CLASSES_MAX];
    const uint32_t outputs = objective_outputs(o);
    double loss;
    assert(outputs <= OBJECTIVE_CLASSES_MAX);
    for (uint32_t c = 0; c < outputs; c++)
        one[c] = margin[c * stride];
    o->ops->strip[VECTOR_BASE](o, one, 1, &label, 1, &loss, residual);
    return loss;
}

void objective_add_labels(struct label_sums *sums, const float *label, const float *weight, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const double y = (double)label[i], w = !weight ? 1.0 : (double)weight[i];
        sums->weight += w;
        sums->label += w * y;
        sums->square += w * y * y;
    }
}

int objective_correct_sign(const struct objective *o, const float *margin, size_t stride, float label)
{
    (void)o;
    (void)stride;
    return (margin[0] >= 0) == (label > 0.5f);
}

int objective_tally_label(const struct objective *o, const float *y, const float *w, size_t n, double *sum)
{
    struct label_sums s = {0};
    (void)o;
    objective_add_labels(&s, y, w, n);
    *sum += s.label;
    return 1;
}

double objective_variance(const struct label_sums *s)
{
    if (!(s->weight > 0))
        return 0;
    const double mean = s->label / s->weight, v = s->square / s->weight - mean * mean;
    return v > 0 ? v : 0;
}

/* Equal labels have no spread: their magnitude is taken instead. A scale is a float, so a manifest keeps it exactly. */
double objective_label_scale(const struct objective *o, const struct label_sums *sums)
{
    if (!o->ops->scaled || !(sums->weight > 0))
        return 1;
    const double mean = fabs(sums->label / sums->weight), sd = sqrt(objective_variance(sums));
    const float scale = (float)(sd > 1e-6 * mean ? sd : mean);
    return scale > 0x1p-60f && scale < 0x1p60f ? (double)scale : 1;
}

double objective_spread(const struct objective *o, const struct label_sums *sums)
{
    return !o->ops->spread || !(sums->weight > 0) ? 0 : o->ops->spread(o, sums);
}

double objective_toss(const struct objective *o)
{
    return !o->ops->toss ? 0 : o->ops->toss(o);
}

double objective_shown(const struct objective *o, double loss)
{
    return !o->ops->shown ? loss : o->ops->shown(loss);
}
