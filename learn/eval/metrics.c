#include "learn/eval/metrics.h"

#include <stdlib.h>
#include <string.h>

struct metrics {
    struct objective objective;
    double sums[MSUMS];
    int has_base, ranks; /* ranks: the objective has an AUC, so margins are kept */
    float base[OBJECTIVE_CLASSES_MAX];
    size_t n, cap;
    uint64_t *score; /* [cap]: the margin as an integer of the same order << 1 | label */
    uint64_t *other; /* [cap]: the target of each pass of the sort */
    size_t residuals;
    float *residual; /* [residuals], scratch */
};

paramo_err metrics_new(const struct objective *objective, struct metrics **metrics)
{
    struct metrics *m = calloc(1, sizeof *m);
    if (!m)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for metrics");
    m->objective = *objective;
    m->ranks = (objective->ops->metrics & METRIC_BIT(METRIC_AUC)) != 0;
    *metrics = m;
    return PARAMO_OK;
}

void metrics_free(struct metrics *m)
{
    if (!m)
        return;
    free(m->score);
    free(m->other);
    free(m->residual);
    free(m);
}

void metrics_reset(struct metrics *m, const struct objective *objective, const float *base)
{
    m->objective = *objective;
    m->n = 0;
    memset(m->sums, 0, sizeof m->sums);
    m->has_base = base != NULL;
    if (base)
        memcpy(m->base, base, objective_outputs(&m->objective) * sizeof *base);
}

static paramo_err reserve(struct metrics *m, size_t n)
{
    if (n <= m->cap)
        return PARAMO_OK;
    size_t cap = n + n / 2;
    uint64_t *score = realloc(m->score, cap * sizeof *score);
    if (score)
        m->score = score;
    uint64_t *other = score ? realloc(m->other, cap * sizeof *other) : NULL;
    if (!other)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory: scores of %zu rows", n);
    m->other = other;
    m->cap = cap;
    return PARAMO_OK;
}

static paramo_err reserve_residuals(struct metrics *m, size_t n)
{
    if (n <= m->residuals)
        return PARAMO_OK;
    free(m->residual);
    m->residual = malloc(n * sizeof *m->residual);
    m->residuals = m->residual ? n : 0;
    return m->residual ? PARAMO_OK
                       : paramo_error_set(PARAMO_E_MEMORY, "out of memory: scores of %zu rows", n);
}

/* An integer for x, in the order of the floats; + 0.0f makes -0 and 0 the same. */
static uint32_t ordered(float x)
{
    uint32_t bits;
    x += 0.0f;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

paramo_err metrics_add(struct metrics *m, const float *margin, size_t stride, const float *label,
                       const float *weight, size_t n)
{
    const struct objective *o = &m->objective;
    paramo_err err = m->ranks ? reserve(m, m->n + n) : PARAMO_OK;
    if (err == PARAMO_OK)
        err = reserve_residuals(m, objective_outputs(o) * stride);
    if (err == PARAMO_OK)
        err = metric_sums_add(o, m->sums, margin, stride, label, weight, m->has_base ? m->base : NULL, n,
                              m->residual);
    if (err != PARAMO_OK)
        return err;
    for (size_t i = 0; m->ranks && i < n; i++)
        m->score[m->n++] = (uint64_t)ordered(margin[i]) << 1 | (uint64_t)(label[i] > 0.5f);
    return PARAMO_OK;
}

/* A radix sort: three passes of 11 bits for the 33 bits of a score. */
static void sort_scores(struct metrics *m)
{
    for (unsigned shift = 0; shift < 33; shift += 11) {
        size_t at[2048] = {0};
        for (size_t i = 0; i < m->n; i++)
            at[m->score[i] >> shift & 2047]++;
        for (size_t i = 0, sum = 0; i < 2048; i++) {
            size_t count = at[i];
            at[i] = sum;
            sum += count;
        }
        for (size_t i = 0; i < m->n; i++)
            m->other[at[m->score[i] >> shift & 2047]++] = m->score[i];
        uint64_t *swap = m->score;
        m->score = m->other;
        m->other = swap;
    }
}

/* The Mann-Whitney statistic: for each group of equal scores, its positives beat every lower negative, and
 * tie with the group's own. Twice the count, so that it stays whole. */
static double area(struct metrics *m, uint64_t positives)
{
    sort_scores(m);
    double twice = 0;
    uint64_t lower = 0;
    for (size_t i = 0; i < m->n;) {
        uint64_t positive = 0, negative = 0, score = m->score[i] >> 1;
        for (; i < m->n && m->score[i] >> 1 == score; i++) {
            positive += m->score[i] & 1;
            negative += !(m->score[i] & 1);
        }
        twice += (double)positive * (double)(2 * lower + negative);
        lower += negative;
    }
    return twice / 2 / ((double)positives * (double)(m->n - positives));
}

paramo_err metrics_finish(struct metrics *m, struct metrics_result *result)
{
    if (!(m->sums[MSUM_WEIGHT] > 0))
        return paramo_error_set(PARAMO_E_INVALID, "there are no rows to measure");
    metric_sums_finish(&m->objective, m->sums, result);
    if (m->ranks && result->positives > 0 && result->positives < m->n)
        result->value[METRIC_AUC] = area(m, result->positives);
    return PARAMO_OK;
}
