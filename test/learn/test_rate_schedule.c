/* Learning-rate schedules: their words, the rates by libm, and jobs beside a reference that computes each step. */
#include "learn/objective/logistic.h"
#include "learn/support_learn.h"
#include "learn/support_text.h"
#include "learn/train/train.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rate_schedule of(const char *text)
{
    struct rate_schedule s = {0};
    if (rate_schedule_parse(text, &s) != 0)
        fail_msg("'%s' is refused", text);
    return s;
}

static void test_words(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",         "Constant",  "constant:1", "invsqrt:",   "invsqrt:0", "invsqrt:1:2",
        "power",    "power:0",   "power:5",    "power:-1",   "power:x",   "power:1:0",
        "linear:2", "linear:-1", "linear:",    "cosine:1.1", "step",      "step:0",
        "step:1.5", "step:0.5:", "step:0.5:0", "cosine:0:1", "step:nan",  "lin"};
    struct rate_schedule s = {.warmup = 3};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (rate_schedule_parse(bad[i], &s) == 0)
            fail_msg("'%s' is taken", bad[i]);
    assert_int_equal(s.kind, RATE_CONSTANT);
    assert_int_equal(rate_schedule_parse("power:0.25:2", &s), 0);
    assert_true(s.kind == RATE_POWER && s.value == 0.25 && s.epochs == 2 && s.warmup == 3);
    s = of("step:0.5");
    assert_true(s.kind == RATE_STEP && s.value == 0.5 && s.epochs == 1);
    s = of("invsqrt:4");
    assert_true(s.kind == RATE_POWER && s.value == 0.5 && s.epochs == 4);
    assert_true(of("cosine").value == 0 && of("linear:0.1").value == 0.1);
    assert_false(rate_schedule_varies(&(struct rate_schedule){0}));
    assert_true(rate_schedule_varies(&(struct rate_schedule){.warmup = 1}));
}

static void is_close(double a, double b)
{
    if (!(fabs(a - b) < 1e-12))
        fail_msg("%.17g is not %.17g", a, b);
}

static void test_rates(void **state)
{
    (void)state;
    const double epochs = 7, warmup = 1.5;
    for (double e = 0; e < epochs; e += 0.01) {
        const double t = e - warmup, all = epochs - warmup, rising = e / warmup;
        const int warm = e < warmup;
        struct rate_schedule s = of("power:0.3:2");
        s.warmup = warmup;
        is_close(rate_schedule_at(&s, e, epochs), warm ? rising : pow(2 / (2 + t), 0.3));
        s = of("invsqrt");
        is_close(rate_schedule_at(&s, e, epochs), sqrt(1 / (1 + e)));
        s = of("linear:0.2");
        s.warmup = warmup;
        is_close(rate_schedule_at(&s, e, epochs), warm ? rising : 1 - 0.8 * t / all);
        s = of("cosine:0.1");
        s.warmup = warmup;
        is_close(rate_schedule_at(&s, e, epochs),
                 warm ? rising : 0.1 + 0.9 * (1 + cos(3.14159265358979323846 * t / all)) / 2);
        s = of("step:0.5:2");
        is_close(rate_schedule_at(&s, e, epochs), pow(0.5, floor(e / 2)));
        s = of("constant");
        assert_true(rate_schedule_at(&s, e, epochs) == 1);
    }
    struct rate_schedule s = of("cosine:0.25");
    is_close(rate_schedule_at(&s, 7, 7), 0.25);
    is_close(rate_schedule_at(&s, 9, 7), 0.25); /* a file that grew */
    s.warmup = 10;
    is_close(rate_schedule_at(&s, 5, 7), 0.5);
}

/* ---- jobs ---- */

enum { ROWS = 60, PART_ROWS = 10, IDS = 30, EPOCHS = 3 };

struct row {
    int label;
    unsigned id[2];
};

static struct row rows[ROWS];

/* Each line has 12 bytes, so a part has PART_ROWS of them. */
static const char *write_rows(void)
{
    char text[ROWS * 12 + 1];
    uint64_t seed = 5;
    for (size_t r = 0; r < ROWS; r++) {
        const unsigned a = (unsigned)(draw(&seed) % 15), b = 15 + (unsigned)(draw(&seed) % 15);
        rows[r] = (struct row){.label = draw(&seed) % 15 < a, .id = {a, b}};
        (void)snprintf(text + 12 * r, 13, "%d %u:1 %u:1\n", rows[r].label, 10 + a, 10 + b);
    }
    const char *path = text_path("rows.svm");
    text_write_file(path, text, ROWS * 12);
    return path;
}

struct reference {
    const char *optimizer;
    double alpha, beta;
    double w[IDS + 1], z[IDS + 1], n[IDS + 1]; /* the last: the bias */
};

static void step(struct reference *o, size_t i, double g)
{
    const double before = sqrt(o->n[i]);
    o->n[i] += g * g;
    if (strcmp(o->optimizer, "sgd") == 0) {
        o->w[i] -= o->alpha * g;
    } else if (strcmp(o->optimizer, "adagrad") == 0) {
        o->w[i] -= o->alpha * g / (o->beta + sqrt(o->n[i]));
    } else {
        o->z[i] += g - (sqrt(o->n[i]) - before) / o->alpha * o->w[i];
        o->w[i] = -o->z[i] / ((o->beta + sqrt(o->n[i])) / o->alpha);
    }
}

/* Rows are learned one by one, each at its place. */
static void learn(struct reference *o, const struct rate_schedule *s, unsigned epochs)
{
    double positives = 0;
    for (size_t r = 0; r < ROWS; r++)
        positives += rows[r].label;
    o->w[IDS] = link_margin(positives, ROWS - positives);
    o->z[IDS] = -o->w[IDS] * o->beta / o->alpha;
    for (unsigned e = 0; e < epochs; e++) {
        for (size_t r = 0; r < ROWS; r++) {
            const double margin = o->w[rows[r].id[0]] + o->w[rows[r].id[1]] + o->w[IDS];
            const double rate = rate_schedule_at(s, e + ((double)r + 0.5) / ROWS, epochs);
            const double g = rate * (1 / (1 + exp(-margin)) - rows[r].label);
            step(o, rows[r].id[0], g);
            step(o, rows[r].id[1], g);
            step(o, IDS, g);
        }
    }
}

static void job(const char *data, const struct reference *o, const struct rate_schedule *s, const char *out)
{
    struct train_options options = {.data = &data,
                                    .data_n = 1,
                                    .model_out = out,
                                    .epochs = EPOCHS,
                                    .batch = 1,
                                    .servers = 2,
                                    .workers = 1,
                                    .schedule = *s,
                                    .quiet = 2};
    struct train_result result;
    reader_options_init(&options.reader);
    options.reader.part_bytes = PART_ROWS * 12;
    model_info_init(&options.model, model_find("lr"));
    (void)strcpy(options.model.data_format, "auto");
    struct model_optimizer *w = &options.model.optimizer[0];
    (void)snprintf(w->name, sizeof w->name, "%s", o->optimizer);
    w->alpha = o->alpha;
    w->beta = o->beta;
    w->l2 = 0;
    if (train_run(&options, &result) != PARAMO_OK)
        fail_msg("%s", paramo_last_error());
    train_result_free(&result);
}

static void compare(const struct reference *o, const char *path)
{
    struct model m;
    assert_int_equal(modelio_open(path, &m), PARAMO_OK);
    assert_in_range(m.table[0].n, IDS / 2, IDS + 1);
    for (size_t i = 0; i < m.table[0].n; i++) {
        const uint64_t key = m.table[0].keys[i];
        const double is = (double)m.table[0].values[i], should = o->w[key == BATCH_BIAS_KEY ? IDS : key - 10];
        if (!(fabs(is - should) < 1e-5))
            fail_msg("%s: weight %zu is %.9g, not %.9g", o->optimizer, i, is, should);
    }
    modelio_close(&m);
}

static void test_jobs(void **state)
{
    (void)state;
    static const char *const kinds[] = {"constant", "invsqrt:0.1", "linear:0.1", "cosine", "step:0.25:0.7"};
    static const struct reference optimizers[] = {{.optimizer = "sgd", .alpha = 0.2},
                                                  {.optimizer = "adagrad", .alpha = 0.5, .beta = 1},
                                                  {.optimizer = "ftrl", .alpha = 0.5, .beta = 1}};
    const char *data = write_rows();
    char *out = new_dir();
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
            struct reference o = optimizers[i];
            struct rate_schedule s = of(kinds[k]);
            s.warmup = k % 2 ? 0.4 : 0;
            learn(&o, &s, EPOCHS);
            job(data, &o, &s, out);
            compare(&o, out);
        }
    }
    remove_dir(out);
    text_cleanup();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words), cmocka_unit_test(test_rates),
                                       cmocka_unit_test(test_jobs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
