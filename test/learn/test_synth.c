/*
 * The click log against what can be counted from it: with few distinct rows, the conditional entropy of the
 * label is the best log-loss that any model can reach, and must be what the generator says. The seeds are
 * fixed, so the counts are the same in every run.
 */
#include "learn/data/reader.h"
#include "learn/data/synth.h"
#include "learn/support_text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_CELLS 64

struct counts {
    uint64_t rows, clicks;
    uint64_t cell_rows[MAX_CELLS],
        cell_clicks[MAX_CELLS]; /* by (rank of field 0) + features * (rank of field 1) */
};

static struct synth_report write_log(const struct synth_options *o, const char *path)
{
    struct synth_report report;
    if (synth_write(o, path, NULL, &report) != PARAMO_OK) {
        fail_msg("%s", paramo_last_error());
    }
    return report;
}

static struct counts count(const char *path, const struct synth_options *o)
{
    struct reader_options ro;
    struct reader *r;
    const struct block *b;
    struct counts c = {0};
    reader_options_init(&ro);
    assert_int_equal(reader_open(&ro, &path, 1, &r), PARAMO_OK);
    for (;;) {
        assert_int_equal(reader_next(r, &b), PARAMO_OK);
        if (b == NULL) {
            break;
        }
        assert_null(b->value);
        for (size_t i = 0; i < b->rows; i++) {
            uint64_t cell = 0, scale = 1;
            assert_int_equal(b->offset[i + 1] - b->offset[i], o->fields);
            for (uint32_t f = 0; f < o->fields; f++, scale *= o->features) {
                uint64_t key = b->key[b->offset[i] + f];
                assert_int_equal(key / o->features, f);
                assert_true(b->field == NULL || b->field[b->offset[i] + f] == f);
                cell += key % o->features * scale;
            }
            c.rows++;
            c.clicks += b->label[i] == 1.0f;
            if (cell < MAX_CELLS) {
                c.cell_rows[cell]++;
                c.cell_clicks[cell] += b->label[i] == 1.0f;
            }
        }
        reader_release(r, b);
    }
    reader_close(r);
    return c;
}

static double entropy(double p)
{
    return p <= 0 || p >= 1 ? 0 : -p * log(p) - (1 - p) * log(1 - p);
}

static double conditional_entropy(const struct counts *c)
{
    double sum = 0;
    for (int i = 0; i < MAX_CELLS; i++) {
        if (c->cell_rows[i] > 0) {
            sum += (double)c->cell_rows[i] * entropy((double)c->cell_clicks[i] / (double)c->cell_rows[i]);
        }
    }
    return sum / (double)c->rows;
}

/* AUC of the cells' own click rates, by comparing each pair of cells. */
static double counted_auc(const struct counts *c)
{
    double won = 0;
    for (int i = 0; i < MAX_CELLS; i++) {
        for (int k = 0; k < MAX_CELLS; k++) {
            double a = (double)c->cell_clicks[i] * (double)c->cell_rows[k];
            double b = (double)c->cell_clicks[k] * (double)c->cell_rows[i];
            double pairs = (double)c->cell_clicks[i] * (double)(c->cell_rows[k] - c->cell_clicks[k]);
            won += pairs * (a > b ? 1 : a < b ? 0 : 0.5);
        }
    }
    return won / ((double)c->clicks * (double)(c->rows - c->clicks));
}

static void check_against_counts(const struct synth_options *o)
{
    const char *path = text_path("log");
    struct synth_report r = write_log(o, path);
    struct counts c = count(path, o);
    assert_int_equal(r.rows, o->rows);
    assert_int_equal(c.rows, o->rows);
    assert_int_equal(c.clicks, r.positives);
    assert_true(fabs(entropy((double)c.clicks / (double)c.rows) - r.base_logloss) < 1e-12);
    double counted = conditional_entropy(&c);
    if (fabs(counted - r.best_logloss) > 0.002 || fabs(r.drawn_logloss - r.best_logloss) > 0.004) {
        fail_msg("best %f, counted %f, drawn %f", r.best_logloss, counted, r.drawn_logloss);
    }
    assert_true(r.best_logloss < r.base_logloss - 0.02); /* there is something to learn */
    if (fabs(counted_auc(&c) - r.best_auc) > 0.004) {
        fail_msg("AUC %f, counted %f", r.best_auc, counted_auc(&c));
    }
}

static void the_best_logloss_is_the_conditional_entropy(void **s)
{
    (void)s;
    struct synth_options o;
    synth_options_init(&o);
    o.rows = 200000;
    o.fields = 2;
    o.features = 6;
    check_against_counts(&o);
    o.format = PARSE_LIBSVM;
    o.zipf = 0;
    o.seed = 7;
    check_against_counts(&o);
    /* only interactions */
    o.format = PARSE_LIBFFM;
    o.spread = 0;
    o.factors = 3;
    o.factor_spread = 1.5;
    check_against_counts(&o);
}

/* With one factor and no weights the logit of cell (i, k) less the bias is v_i * w_k: a matrix of rank 1,
 * whose size the factor spread tells. */
static void interactions_are_a_factorization_machine(void **s)
{
    (void)s;
    struct synth_options o;
    synth_options_init(&o);
    o.rows = 400000;
    o.fields = 2;
    o.features = 2;
    o.zipf = 0;
    o.bias = 0;
    o.spread = 0;
    o.factors = 1;
    double squares = 0;
    for (o.model_seed = 1; o.model_seed <= 8; o.model_seed++) {
        double z[4];
        (void)write_log(&o, text_path("fm"));
        struct counts c = count(text_path("fm"), &o);
        for (int i = 0; i < 4; i++) {
            double p = (double)c.cell_clicks[i] / (double)c.cell_rows[i];
            z[i] = log(p / (1 - p));
            squares += z[i] * z[i] / 32;
        }
        if (fabs(z[0] * z[3] - z[1] * z[2]) > 0.04) {
            fail_msg("%f %f %f %f", z[0], z[1], z[2], z[3]);
        }
    }
    print_message("mean square of the logits %f, expected about 1\n", squares);
    assert_true(squares > 0.4 && squares < 2);
}

static void nothing_to_learn(void **s)
{
    (void)s;
    struct synth_options o;
    synth_options_init(&o);
    o.rows = 1000;
    o.spread = 0;
    struct synth_report r = write_log(&o, text_path("flat"));
    assert_true(fabs(r.best_logloss - entropy(1 / (1 + exp(1)))) < 1e-9);
    assert_true(fabs(r.best_auc - 0.5) < 1e-9);
}

static size_t slurp(const char *path, char *out, size_t cap)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(out, 1, cap, f);
    (void)fclose(f);
    return n;
}

static void the_seed_decides_everything(void **s)
{
    (void)s;
    static char a[1 << 20], b[1 << 20];
    struct synth_options o;
    synth_options_init(&o);
    o.rows = 5000;
    (void)write_log(&o, text_path("a"));
    struct synth_report again = write_log(&o, text_path("b"));
    size_t n = slurp(text_path("a"), a, sizeof a);
    assert_true(n > 100000);
    assert_int_equal(slurp(text_path("b"), b, sizeof b), n);
    assert_memory_equal(a, b, n);
    o.model_seed = 2;
    assert_true(write_log(&o, text_path("b")).best_logloss != again.best_logloss);
    o.model_seed = 1;
    o.seed = 2;
    (void)write_log(&o, text_path("b"));
    (void)slurp(text_path("b"), b, sizeof b);
    assert_true(memcmp(a, b, 1000) != 0);
}

/* Two logs of one model and different rows agree on what each feature is worth. */
static void train_and_test_share_a_model(void **s)
{
    (void)s;
    struct synth_options o;
    synth_options_init(&o);
    o.rows = 100000;
    o.fields = 1;
    o.features = 4;
    o.zipf = 0;
    (void)write_log(&o, text_path("train"));
    struct counts train = count(text_path("train"), &o);
    o.seed = 99;
    (void)write_log(&o, text_path("test"));
    struct counts test = count(text_path("test"), &o);
    for (int i = 0; i < 4; i++) {
        double p = (double)train.cell_clicks[i] / (double)train.cell_rows[i];
        double q = (double)test.cell_clicks[i] / (double)test.cell_rows[i];
        assert_true(fabs(p - q) < 0.01);
    }
}

static void criteo_rows_parse(void **s)
{
    (void)s;
    struct synth_options o;
    struct reader_options ro;
    struct reader *r;
    const struct block *b;
    synth_options_init(&o);
    o.rows = 3000;
    o.format = PARSE_CRITEO;
    o.features = 50;
    o.zipf = 0;
    struct synth_report report;
    assert_int_equal(synth_write(&o, text_path("x"), NULL, &report), PARAMO_E_INVALID);
    o.fields = PARSE_CRITEO_FIELDS;
    (void)write_log(&o, text_path("log.zst"));
    reader_options_init(&ro);
    const char *path = text_path("log.zst");
    assert_int_equal(reader_open(&ro, &path, 1, &r), PARAMO_OK);
    assert_int_equal(reader_next(r, &b), PARAMO_OK);
    assert_int_equal(b->rows, 3000);
    /* all 50 values of each field were drawn, and each has a key of its own */
    for (uint32_t f = 0; f < PARSE_CRITEO_FIELDS; f++) {
        uint64_t seen[64];
        int n = 0;
        for (size_t i = 0; i < b->rows; i++) {
            uint64_t key = b->key[b->offset[i] + f];
            int k = 0;
            while (k < n && seen[k] != key) {
                k++;
            }
            if (k == n) {
                assert_true(n < 50);
                seen[n++] = key;
            }
        }
        assert_int_equal(n, 50);
    }
    reader_release(r, b);
    reader_close(r);
}

static void what_cannot_be_done(void **s)
{
    (void)s;
    struct synth_options o;
    struct synth_report r;
    const int stop = 1;
    synth_options_init(&o);
    assert_int_equal(synth_write(&o, text_path("stopped"), &stop, &r), PARAMO_E_INTERRUPTED);
    assert_int_not_equal(access(text_path("stopped"), F_OK), 0);
    o.rows = 0;
    assert_int_equal(synth_write(&o, text_path("none"), NULL, &r), PARAMO_E_INVALID);
    synth_options_init(&o);
    o.zipf = NAN;
    assert_int_equal(synth_write(&o, text_path("none"), NULL, &r), PARAMO_E_INVALID);
    assert_non_null(strstr(paramo_last_error(), "zipf"));
    synth_options_init(&o);
    o.features = 1u << 24;
    o.fields = 100;
    assert_int_equal(synth_write(&o, text_path("none"), NULL, &r), PARAMO_E_INVALID);
    assert_int_not_equal(access(text_path("none"), F_OK), 0);
}

static int done(void **s)
{
    (void)s;
    text_cleanup();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_logloss_is_the_conditional_entropy),
        cmocka_unit_test(interactions_are_a_factorization_machine),
        cmocka_unit_test(nothing_to_learn),
        cmocka_unit_test(the_seed_decides_everything),
        cmocka_unit_test(train_and_test_share_a_model),
        cmocka_unit_test(criteo_rows_parse),
        cmocka_unit_test(what_cannot_be_done),
    };
    return cmocka_run_group_tests(tests, NULL, done);
}
