/*
 * paramo explain: why a model scores a row as it does. Tests: test/e2e/explain.sh, test/learn/test_explain.c.
 */
#include "cmd/exitcode.h"
#include "cmd/metrics_json.h"
#include "cmd/model_names.h"
#include "cmd/scoring.h"
#include "cmd/verbs.h"
#include "learn/eval/prediction.h"
#include "learn/explain/explain.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: paramo explain --model-in DIR --data FILE... [--row N] [options]\n"
    "\n"
    "Shows what each feature of a row adds to the margin, from which the prediction follows: 'weight' by its "
    "own weight, 'products' by its products with other features, in models with\n"
    "factors. A product is divided "
    "evenly\n"
    "among its features (Shapley values). The shares and the bias, which is the margin of a row without\n"
    "features, add up to the margin. Rows need no label. Features have names if the model was trained with\n"
    "--keep-names; otherwise a feature is shown as its number, after its field if it has one.\n";

static const char more[] = CODE_HELP "\n"
                                     "  paramo explain --model-in model --data rows.csv --row 17\n";

/* An explanation, and what is printed beside it. */
struct shown {
    struct explanation e;
    size_t *order; /* [e.n]: indices of the terms, the greatest share first */
    char *prediction;
    float calibrated[OBJECTIVE_CLASSES_MAX]; /* e.margin after the model's calibration */
};

/* The terms that by_share compares: qsort has no argument for them. */
static _Thread_local const struct explain_term *sorting;

static int by_share(const void *a, const void *b)
{
    const size_t i = *(const size_t *)a, j = *(const size_t *)b;
    const double x = fabs(sorting[i].share), y = fabs(sorting[j].share);
    return x != y ? (x > y ? -1 : 1) : i < j ? -1 : i > j;
}

static paramo_err sort_terms(struct shown *s)
{
    s->order = malloc((s->e.n + 1) * sizeof *s->order);
    if (!s->order)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for %zu features", s->e.n);
    for (size_t i = 0; i < s->e.n; i++)
        s->order[i] = i;
    sorting = s->e.term;
    qsort(s->order, s->e.n, sizeof *s->order, by_share);
    return PARAMO_OK;
}

static void shown_free(struct shown *s)
{
    explain_free(&s->e);
    free(s->order);
    free(s->prediction);
}

/* ---- text ---- */

static void print_text(const struct scoring *s, const struct names *names, uint64_t row,
                       const struct shown *x)
{
    const struct objective *o = &s->model.info.objective;
    const struct explanation *e = &x->e;
    const size_t top = (size_t)option_number(s->options, OPT_TOP);
    const int pairs = s->model.info.ops->order != 1, field = s->model.info.ops->fields == MODEL_NEEDS_FIELDS;
    double rest = 0, unknown = 0;
    (void)printf("row         %" PRIu64 ", %zu features\n", row, e->n);
    if (o->ops->many)
        (void)printf("class       %" PRIu32 "\n", e->output);
    else
        (void)printf("prediction  %s\n", x->prediction);
    (void)printf("margin      %.6g", (double)e->margin[e->output]);
    if (s->model.info.calibration.kind != CALIBRATION_NONE)
        (void)printf("; calibrated (%s): %.6g", calibration_name(s->model.info.calibration.kind),
                     (double)x->calibrated[0]);
    (void)printf("\n\n");
    (void)printf("     share%s      value  feature\n", pairs ? "     weight   products" : "");
    (void)printf("%+10.5f%s             (bias)\n", e->base, pairs ? "                      " : "");
    for (size_t i = 0; i < e->n; i++) {
        const struct explain_term *t = &e->term[x->order[i]];
        char name[80];
        unknown += !t->known;
        if (i >= top) {
            rest += t->share;
            continue;
        }
        (void)printf("%+10.5f", t->share);
        if (pairs)
            (void)printf(" %+10.5f %+10.5f", t->weight, t->share - t->weight);
        (void)printf(" %10.4g  %s%s\n", (double)t->value,
                     model_names_text(names, t->key, field ? t->field : -1, name, pairs ? 35 : 57),
                     t->known ? "" : " (unknown)");
    }
    if (e->n > top)
        (void)printf("%+10.5f%s             %zu more features\n", rest, pairs ? "                      " : "",
                     e->n - top);
    if (unknown > 0)
        (void)printf("\nThe model has not learned %.0f of the features.\n", unknown);
}

/* ---- JSON ---- */

static json_t *term_json(const struct explain_term *t, const struct names *names, int fields)
{
    char key[24], name[4096];
    (void)snprintf(key, sizeof key, "%" PRIu64, t->key);
    json_t *j = json_pack(
        "{s:s, s:s?, s:f, s:f, s:f, s:f, s:f, s:b}", "key", key, "name",
        names && names_find(names, t->key) ? model_names_text(names, t->key, -1, name, sizeof name) : NULL,
        "value", (double)t->value, "scaled_value", (double)t->scaled, "weight", t->weight, "products",
        t->share - t->weight, "share", t->share, "known", t->known);
    if (fields)
        (void)json_object_set_new(j, "field", json_integer(t->field));
    return j;
}

static json_t *explanation_json(const struct scoring *s, const struct names *names, uint64_t row,
                                const struct shown *x)
{
    const struct explanation *e = &x->e;
    const struct objective *o = &s->model.info.objective;
    double prediction[OBJECTIVE_CLASSES_MAX];
    json_t *list = json_array();
    for (size_t i = 0; i < e->n; i++)
        (void)json_array_append_new(
            list, term_json(&e->term[x->order[i]], names, s->model.info.ops->fields == MODEL_NEEDS_FIELDS));
    o->ops->predict(o, x->calibrated, 1, prediction);
    json_t *j =
        json_pack("{s:i, s:s, s:s, s:I, s:f, s:f, s:f, s:o}", "version", 1, "model", s->model.info.ops->name,
                  "objective", o->ops->name, "row", (json_int_t)row, "prediction", prediction[e->output],
                  "margin", (double)e->margin[e->output], "bias", e->base, "features", list);
    if (s->model.info.calibration.kind != CALIBRATION_NONE)
        (void)json_object_set_new(j, "calibrated_margin", json_real((double)x->calibrated[0]));
    if (o->ops->many)
        (void)json_object_set_new(j, "class", json_integer((json_int_t)e->output));
    return j;
}

/* ---- the verb ---- */

static paramo_err print(const struct scoring *s, const struct names *names, uint64_t row,
                        const struct shown *x)
{
    int bad = 0;
    if (option_flag(s->options, OPT_JSON)) {
        json_t *j = explanation_json(s, names, row, x);
        bad = !j || json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0;
        json_decref(j);
        (void)putchar('\n');
    } else {
        print_text(s, names, row, x);
    }
    return bad || fflush(stdout) != 0 || ferror(stdout)
               ? paramo_error_set(PARAMO_E_IO, "standard output cannot be written")
               : PARAMO_OK;
}

/* Finds the block of a row, which the caller releases, and the row's index in it. */
static paramo_err find_row(struct scoring *s, uint64_t row, const struct block **block, size_t *at)
{
    uint64_t before = 0;
    paramo_err err;
    while ((err = reader_next(s->reader, block)) == PARAMO_OK && *block) {
        if (row - before <= (*block)->rows) {
            *at = (size_t)(row - before - 1);
            return PARAMO_OK;
        }
        before += (*block)->rows;
        reader_release(s->reader, *block);
    }
    if (err != PARAMO_OK)
        return err;
    return paramo_error_set(PARAMO_E_NOT_FOUND, "%s: has no row %" PRIu64 ": there %s %" PRIu64,
                            option_list(s->options, OPT_DATA)->item[0], row, before == 1 ? "is" : "are",
                            before);
}

static paramo_err explain(struct scoring *s)
{
    const uint64_t row = option_number(s->options, OPT_ROW);
    const int output =
        option_given(s->options, OPT_CLASS) ? (int)option_number(s->options, OPT_CLASS) : EXPLAIN_BEST;
    struct names *names = NULL;
    const struct block *block = NULL;
    struct shown x = {0};
    size_t at = 0;
    paramo_err err = scoring_open(s);
    const struct objective *o = &s->model.info.objective;
    if (err == PARAMO_OK && output != EXPLAIN_BEST && (uint32_t)output >= model_outputs(&s->model.info))
        err = paramo_error_set(PARAMO_E_INVALID, "--class %d: the model has %s", output,
                               o->ops->many ? "fewer classes" : "no classes");
    if (err == PARAMO_OK)
        err = model_names_try(option_text(s->options, OPT_MODEL_IN), &names);
    if (err == PARAMO_OK)
        err = find_row(s, row, &block, &at);
    if (err == PARAMO_OK)
        err = explain_row(&s->model, block, at, output, &x.e);
    if (err == PARAMO_OK)
        err = sort_terms(&x);
    if (err == PARAMO_OK && !(x.prediction = malloc(prediction_max(o) + 1)))
        err = paramo_error_set(PARAMO_E_MEMORY, "out of memory for a prediction");
    if (err == PARAMO_OK) {
        memcpy(x.calibrated, x.e.margin, x.e.outputs * sizeof *x.calibrated);
        calibration_apply(&s->model.info.calibration, x.calibrated, 1);
        x.prediction[prediction_text(o, x.calibrated, 1, 0, 0, x.prediction)] = '\0';
        err = print(s, names, row, &x);
    }
    shown_free(&x);
    names_free(names);
    if (s->reader)
        reader_release(s->reader, block);
    scoring_close(s);
    return err;
}

int cmd_explain(int argc, char **argv)
{
    struct options o;
    struct scoring scoring = {.options = &o};
    int code = options_parse(&o, VERB_EXPLAIN, argc, argv, usage, more);
    if (code < 0)
        code = scoring_check(&scoring);
    if (code < 0) {
        paramo_err err = explain(&scoring);
        code = err ? code_fail("explain", err, paramo_last_error()) : CODE_DONE;
    }
    options_free(&o);
    return code;
}
