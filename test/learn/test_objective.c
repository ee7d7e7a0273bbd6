/*
 * Every objective of the table: its definition, its loss against a slow reference by libm, its derivative against
 * differences of the loss, the same bits at every vector level, and its guess against guesses beside it.
 */
#include "learn/objective/logistic.h"
#include "learn/objective/objective.h"
#include "learn/support_learn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 300, CLASSES = 5 };

/* With settings other than the initial ones. */
static struct objective made(size_t i)
{
    struct objective o = objective_of(objective_at(i));
    o.classes = o.ops->many ? CLASSES : 0;
    o.quantile = o.ops->quantile > 0 ? 0.8 : 0;
    o.label_scale = o.ops->scaled ? 2.5 : 1;
    return o;
}

/* A label in the range of margins, so that both sides of every corner come. */
static float draw_label(const struct objective *o, uint64_t *s)
{
    switch (o->ops->labels) {
    case LABEL_BINARY:
        return (float)(draw(s) & 1);
    case LABEL_CLASS:
        return (float)(draw(s) % CLASSES);
    case LABEL_COUNT:
        return (float)(draw(s) % 4);
    case LABEL_REAL:
    case LABEL_NONE:
        break;
    }
    return 5 * draw_float(s);
}

static double reference(const struct objective *o, const double *m, double y)
{
    const double s = o->label_scale;
    if (o->ops == &objective_logistic)
        return log1p(exp(-fabs(m[0]))) + (m[0] > 0 ? m[0] : 0) - y * m[0];
    if (o->ops == &objective_hinge)
        return fmax(0, 1 - (2 * y - 1) * m[0]);
    if (o->ops == &objective_squared)
        return (s * m[0] - y) * (s * m[0] - y) / 2;
    if (o->ops == &objective_poisson)
        return exp(m[0]) - y * m[0] - (y > 0 ? y - y * log(y) : 0);
    if (o->ops == &objective_quantile)
        return y > s * m[0] ? o->quantile * (y - s * m[0]) : (1 - o->quantile) * (s * m[0] - y);
    double sum = 0;
    assert_ptr_equal(o->ops, &objective_softmax);
    for (uint32_t c = 0; c < o->classes; c++)
        sum += exp(m[c]);
    return log(sum) - m[(size_t)y];
}

/* What a residual is a derivative in units of. */
static double unit(const struct objective *o)
{
    return o->ops == &objective_squared    ? o->label_scale * o->label_scale
           : o->ops == &objective_quantile ? o->label_scale
                                           : 1;
}

static void test_definitions_are_whole(void **state)
{
    (void)state;
    for (size_t i = 0; objective_at(i) != NULL; i++) {
        const struct objective o = made(i);
        assert_ptr_equal(objective_find(o.ops->name), o.ops);
        assert_true(strlen(o.ops->help) > 0 && strlen(o.ops->loss) > 0 && strlen(o.ops->key) > 0);
        assert_true(o.ops->predict != NULL && o.ops->tally != NULL && o.ops->constant != NULL);
        assert_true((o.ops->correct != NULL) == ((o.ops->metrics & METRIC_BIT(METRIC_ACCURACY)) != 0));
        assert_int_equal(objective_outputs(&o), o.ops->many ? CLASSES : 1);
        assert_true(objective_constants(&o) > 0 && objective_constants(&o) <= OBJECTIVE_CLASSES_MAX);
        assert_null(objective_valid(&o));
        assert_true(objective_shown(&o, 0.5) < objective_shown(&o, 0.6));
        struct objective wrong = o;
        wrong.classes = o.ops->many ? 1 : 3;
        assert_non_null(objective_valid(&wrong));
        wrong = o;
        wrong.quantile = o.ops->quantile > 0 ? 1 : 0.5;
        assert_non_null(objective_valid(&wrong));
    }
    assert_null(objective_find("no such objective"));
    for (unsigned m = 0; m < METRICS; m++)
        assert_non_null(objective_metric_name(m));
}

struct rows {
    float margin[CLASSES * ROWS], label[ROWS], weight[ROWS], residual[CLASSES * ROWS];
};

static void fill(const struct objective *o, uint64_t seed, struct rows *r)
{
    for (size_t i = 0; i < CLASSES * ROWS; i++)
        r->margin[i] = 4 * draw_float(&seed);
    for (size_t i = 0; i < ROWS; i++) {
        r->label[i] = draw_label(o, &seed);
        r->weight[i] = 1 + draw_float(&seed) / 2;
    }
}

static void test_losses_and_derivatives(void **state)
{
    (void)state;
    static struct rows r;
    const double h = 1e-6;
    for (size_t k = 0; objective_at(k) != NULL; k++) {
        const struct objective o = made(k);
        const uint32_t outputs = objective_outputs(&o);
        fill(&o, k + 1, &r);
        double sum = 0;
        const double all = objective_residuals(&o, r.margin, ROWS, r.label, r.weight, ROWS, 0, r.residual);
        for (size_t i = 0; i < ROWS; i++) {
            double m[CLASSES], y = (double)r.label[i];
            for (uint32_t c = 0; c < outputs; c++)
                m[c] = (double)r.margin[c * ROWS + i];
            const double loss = reference(&o, m, y);
            sum += (double)r.weight[i] * loss;
            assert_true(fabs(objective_loss(&o, r.margin + i, ROWS, r.label[i]) - loss) < 1e-11);
            for (uint32_t c = 0; c < outputs; c++) {
                const double keep = m[c];
                m[c] = keep + h;
                const double up = reference(&o, m, y);
                m[c] = keep - h;
                const double slope = (up - reference(&o, m, y)) / (2 * h) / unit(&o);
                m[c] = keep;
                if (fabs(slope * (double)r.weight[i] - (double)r.residual[c * ROWS + i]) > 1e-5)
                    fail_msg("%s, row %zu: residual %g, by differences %g", o.ops->name, i,
                             (double)r.residual[c * ROWS + i], slope * (double)r.weight[i]);
            }
        }
        assert_true(fabs(all - sum) < 1e-9 * sum);
    }
}

/* No byte beyond n is written, and margins of any size give no NaN. */
static void test_the_same_bits_at_every_level(void **state)
{
    (void)state;
    static struct rows r, base;
    for (size_t k = 0; objective_at(k) != NULL; k++) {
        const struct objective o = made(k);
        fill(&o, k + 1, &r);
        r.margin[7] = 1e30f;
        r.margin[8] = -1e30f;
        r.margin[9] = 0.0f;
        r.margin[10] = -0.0f;
        r.margin[11] = -700.5f;
        base = r;
        vector_limit("base");
        const double sum =
            objective_residuals(&o, base.margin, ROWS, base.label, NULL, ROWS, 0, base.residual);
        assert_true(isfinite(sum) || o.ops == &objective_squared || o.ops == &objective_poisson);
        for (size_t level = 1; level < vector_count(); level++) {
            vector_limit(vector_names[level]);
            assert_true(objective_residuals(&o, r.margin, ROWS, r.label, NULL, ROWS, 0, r.residual) == sum);
            assert_memory_equal(r.residual, base.residual, sizeof r.residual);
        }
        vector_limit(NULL);
        for (size_t n = 0; n < 130; n++) {
            memset(r.residual, 0x55, sizeof r.residual);
            (void)objective_residuals(&o, r.margin, ROWS, r.label, NULL, n, 0, r.residual);
            assert_memory_equal(r.residual, base.residual, n * sizeof *r.residual);
            assert_true(((unsigned char *)r.residual)[n * sizeof *r.residual] == 0x55);
        }
    }
}

static double mean_loss(const struct objective *o, const float *margin, const struct rows *r)
{
    double sum = 0, weight = 0;
    for (size_t i = 0; i < ROWS; i++) {
        weight += (double)r->weight[i];
        sum += (double)r->weight[i] * objective_loss(o, margin, 1, r->label[i]);
    }
    return sum / weight;
}

static void test_the_guess_is_the_best_constant(void **state)
{
    (void)state;
    static struct rows r;
    for (size_t k = 0; objective_at(k) != NULL; k++) {
        const struct objective o = made(k);
        fill(&o, k + 11, &r);
        for (size_t i = 0; i < ROWS; i++) /* not in the middle of everything */
            r.label[i] = i % 4 == 0 ? r.label[0] : r.label[i];
        double constants[OBJECTIVE_CLASSES_MAX] = {0};
        float guess[OBJECTIVE_CLASSES_MAX];
        struct label_sums sums = {0};
        objective_add_labels(&sums, r.label, r.weight, ROWS);
        assert_true(o.ops->tally(&o, r.label, r.weight, ROWS, constants));
        o.ops->constant(&o, sums.weight, constants, guess);
        const double best = mean_loss(&o, guess, &r);
        for (uint32_t c = 0; c < objective_outputs(&o); c++) {
            const float keep = guess[c];
            for (int step = -1; step <= 1; step += 2) {
                guess[c] = keep + (float)step * 0.2f;
                if (mean_loss(&o, guess, &r) < best)
                    fail_msg("%s: %g is better than %g", o.ops->name, (double)guess[c], (double)keep);
            }
            guess[c] = keep;
        }
        if (o.ops->spread != NULL && fabs(objective_spread(&o, &sums) - best) > 1e-3)
            fail_msg("%s: %g is not %g", o.ops->name, objective_spread(&o, &sums), best);
        const struct label_sums none = {0};
        assert_true(objective_spread(&o, &none) == 0);
        o.ops->constant(&o, 0, (double[OBJECTIVE_CLASSES_MAX]){0}, guess); /* of no rows: anything finite */
        for (uint32_t c = 0; c < objective_outputs(&o); c++)
            assert_true(isfinite(guess[c]));
    }
}

static void test_predictions(void **state)
{
    (void)state;
    const float m[] = {0.5f, -1, 0.25f, 2, 1.9f};
    double p[CLASSES], of_class[CLASSES] = {0}, sum = 0;
    for (size_t k = 0; objective_at(k) != NULL; k++) {
        const struct objective o = made(k);
        o.ops->predict(&o, m, 1, p);
        if (o.ops == &objective_logistic)
            assert_true(p[0] == link_probability(m[0]));
        else if (o.ops == &objective_hinge)
            assert_true(p[0] == 0.5);
        else if (o.ops == &objective_poisson)
            assert_true(fabs(p[0] - exp(0.5)) < 1e-14);
        else if (o.ops->scaled)
            assert_true(p[0] == 1.25);
        for (uint32_t c = 0; o.ops->many && c < CLASSES; c++)
            sum += of_class[c] = p[c];
        if (o.ops->labels == LABEL_BINARY)
            assert_true(o.ops->correct(&o, m, 1, 1) && !o.ops->correct(&o, m, 1, 0));
        if (o.ops->many)
            assert_true(o.ops->correct(&o, m, 1, 3) && !o.ops->correct(&o, m, 1, 4));
    }
    assert_true(fabs(sum - 1) < 1e-14 && of_class[3] > of_class[4] && of_class[4] > of_class[0]);
    assert_true(fabs(of_class[3] / of_class[1] - exp(3)) < 1e-12);
}

static void test_the_scale_of_labels(void **state)
{
    (void)state;
    const struct objective squared = objective_of(&objective_squared),
                           logistic = objective_of(&objective_logistic);
    struct label_sums s = {0}, same = {0}, zeros = {0}, none = {0};
    objective_add_labels(&s, (const float[]){100, 300}, NULL, 2);
    assert_true(objective_label_scale(&squared, &s) == 100 && objective_label_scale(&logistic, &s) == 1);
    objective_add_labels(&s, (const float[]){100, 300}, (const float[]){3, 0},
                         2); /* 100 four times, 300 once */
    assert_true(fabs(objective_label_scale(&squared, &s) - 80) < 1e-4);
    objective_add_labels(&same, (const float[]){-7, -7, -7}, NULL, 3);
    assert_true(objective_label_scale(&squared, &same) == 7);
    objective_add_labels(&zeros, (const float[]){0, 0}, NULL, 2);
    assert_true(objective_label_scale(&squared, &zeros) == 1 && objective_label_scale(&squared, &none) == 1);
}

static void test_labels_that_are_taken(void **state)
{
    (void)state;
    for (size_t k = 0; objective_at(k) != NULL; k++) {
        const struct objective o = made(k);
        const struct label_rule rule = objective_label_rule(&o);
        const enum label_kind kind = o.ops->labels;
        const int number = kind == LABEL_REAL || kind == LABEL_COUNT;
        const struct {
            const char *text;
            int taken;
        } labels[] = {{"0", 1},
                      {"1", 1},
                      {"0.5", number},
                      {"-1", kind == LABEL_REAL || kind == LABEL_BINARY},
                      {"-2", kind == LABEL_REAL},
                      {"4", number || kind == LABEL_CLASS},
                      {"5", number},
                      {"nan", 0},
                      {"inf", 0},
                      {"x", 0}};
        for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
            char text[32] = "";
            float y;
            (void)snprintf(text, sizeof text, "%s\n", labels[i].text);
            if ((label_read(&rule, text, strlen(labels[i].text), &y) == NULL) != labels[i].taken)
                fail_msg("%s: %s", o.ops->name, labels[i].text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definitions_are_whole),
        cmocka_unit_test(test_losses_and_derivatives),
        cmocka_unit_test(test_the_same_bits_at_every_level),
        cmocka_unit_test(test_the_guess_is_the_best_constant),
        cmocka_unit_test(test_predictions),
        cmocka_unit_test(test_the_scale_of_labels),
        cmocka_unit_test(test_labels_that_are_taken),
    };
    return cmocka_run_group_tests_name("objective", tests, NULL, NULL);
}
