#include "learn/eval/metrics.h"
#include "learn/model/logistic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct metrics {
    size_t n, cap;
    uint64_t *score; /* [cap]: the margin as an integer of the same order << 1 | label */
    uint64_t *other; /* [cap]: the sort's other half */
    uint64_t positives, correct;
    double loss, probability; /* sums */
};

paramo_err metrics_new(struct metrics **metrics)
{
    struct metrics *m = calloc(1, sizeof *m);
    if (!m)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory");
    *metrics = m;
    return PARAMO_OK;
}

void metrics_free(struct metrics *m)
{
    if (!m)
        return;
    free(m->score);
    free(m->other);
    free(m);
}

void metrics_reset(struct metrics *m)
{
    m->n = 0;
    m->positives = m->correct = 0;
    m->loss = m->probability = 0;
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

/* Integers in the order of the floats; + 0.0f makes -0 and 0 the same. */
static uint32_t ordered(float x)
{
    uint32_t bits;
    x += 0.0f;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

paramo_err metrics_add(struct metrics *m, const float *margin, const float *label, size_t n)
{
    paramo_err err = reserve(m, m->n + n);
    if (err != PARAMO_OK)
        return err;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(margin[i]))
            return paramo_error_set(PARAMO_E_NUMERIC, "the model's score of a row is not a finite number");
        int positive = label[i] > 0.5f;
        m->score[m->n++] = (uint64_t)ordered(margin[i]) << 1 | (uint64_t)positive;
        m->positives += (uint64_t)positive;
        m->correct += (margin[i] >= 0) == positive;
        m->loss += link_loss(margin[i], label[i]);
        m->probability += link_probability(margin[i]);
    }
    return PARAMO_OK;
}

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
static double area(struct metrics *m)
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
    return twice / 2 / ((double)m->positives * (double)(m->n - m->positives));
}

paramo_err metrics_finish(struct metrics *m, struct metrics_result *result)
{
    if (m->n == 0)
        return paramo_error_set(PARAMO_E_INVALID, "there are no rows to measure");
    double rows = (double)m->n;
    int both = m->positives > 0 && m->positives < m->n;
    *result = (struct metrics_result){
        .rows = m->n,
        .positives = m->positives,
        .logloss = m->loss / rows,
        .auc = both ? area(m) : (double)NAN,
        .accuracy = (double)m->correct / rows,
        .calibration = m->positives > 0 ? m->probability / (double)m->positives : (double)NAN,
    };
    return PARAMO_OK;
}
