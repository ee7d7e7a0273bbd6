/*
 * paramo eval: how good a model is on labelled rows. Tests: test/e2e/train.sh, cli.sh.
 */
#include "cmd/dataargs.h"
#include "cmd/exitcode.h"
#include "cmd/metrics_json.h"
#include "cmd/plots.h"
#include "cmd/scoring.h"
#include "cmd/verbs.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: paramo eval --model-in DIR --data FILE... [--plot FILE.svg] [--json]\n"
    "\n"
    "Measures a model on labelled rows, by the objective that it was trained with. logistic: rows,\n"
    "positives, log-loss (natural logarithm), area under the ROC curve (AUC), accuracy at 0.5, calibration\n"
    "(mean prediction / mean label). hinge: hinge loss, AUC, accuracy. squared: root of the mean squared\n"
    "error, mean absolute error, R2. poisson: half the mean deviance, calibration, RMSE, MAE. quantile:\n"
    "pinball loss, MAE, share of the labels that are at most the prediction. softmax: log-loss, accuracy.\n"
    "--plot draws one SVG. Labels 0 and 1: the ROC curve, precision against recall, reliability (mean label\n"
    "against mean prediction) and lift. Numbers: labels and residuals against predictions, and how "
    "residuals\n"
    "are distributed. Classes: the confusion matrix, reliability, recall and precision of each class.\n";

static const char more[] = CODE_HELP "\n"
                                     "  paramo eval --model-in model --data test.libffm.zst\n";

struct measuring {
    struct metrics *metrics;
    struct curves *curves; /* for a plot, of labels 0 and 1 */
    struct fits *fits;     /* for a plot, of other labels */
};

static paramo_err measure(void *arg, const struct scored_rows *rows)
{
    const struct measuring *m = arg;
    paramo_err err = score_metrics(m->metrics, rows);
    if (err == PARAMO_OK && m->curves)
        err = curves_add(m->curves, rows);
    return err == PARAMO_OK && m->fits ? fits_add(m->fits, rows) : err;
}

/* Draws the curves of the measured rows. */
static paramo_err plot_curves(const struct scoring *scoring, struct curves *curves,
                              const struct metrics_result *result)
{
    struct curves_result *r = malloc(sizeof *r);
    if (!r)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for curves");
    paramo_err err = curves_finish(curves, r);
    if (err == PARAMO_OK)
        err = plots_eval(option_text(scoring->options, OPT_PLOT), option_text(scoring->options, OPT_MODEL_IN),
                         option_list(scoring->options, OPT_DATA)->item[0], &scoring->model.info.objective,
                         result, r);
    free(r);
    return err;
}

static paramo_err plot_fits(const struct scoring *scoring, struct fits *fits,
                            const struct metrics_result *result)
{
    struct fits_result r;
    paramo_err err = fits_finish(fits, &r);
    return err == PARAMO_OK ? plots_fits(option_text(scoring->options, OPT_PLOT),
                                         option_text(scoring->options, OPT_MODEL_IN),
                                         option_list(scoring->options, OPT_DATA)->item[0],
                                         &scoring->model.info.objective, result, &r)
                            : err;
}

/* *objective: the objective of the model. */
static paramo_err evaluate(struct scoring *scoring, struct metrics_result *result,
                           struct objective *objective)
{
    const char *path = option_text(scoring->options, OPT_PLOT);
    struct measuring m = {0};
    paramo_err err = data_args_check_plot(scoring->options);
    if (err == PARAMO_OK)
        err = scoring_open(scoring);
    *objective = scoring->model.info.objective;
    if (err == PARAMO_OK)
        err = metrics_new(objective, &m.metrics);
    if (err == PARAMO_OK && path)
        err = objective->ops->labels == LABEL_BINARY ? curves_new(objective, &m.curves)
                                                     : fits_new(objective, &m.fits);
    if (err == PARAMO_OK)
        err = scoring_run(scoring, measure, &m);
    if (err == PARAMO_OK)
        err = metrics_finish(m.metrics, result);
    if (err == PARAMO_OK && path)
        err = m.curves ? plot_curves(scoring, m.curves, result) : plot_fits(scoring, m.fits, result);
    metrics_free(m.metrics);
    curves_free(m.curves);
    fits_free(m.fits);
    scoring_close(scoring);
    return err;
}

static void print_number(const char *name, double x)
{
    if (isfinite(x))
        (void)printf("%-12s %.6f\n", name, x);
    else
        (void)printf("%-12s -\n", name); /* not defined for these rows */
}

static void print_text(const struct objective *o, const struct metrics_result *r)
{
    (void)printf("%-12s %" PRIu64 "\n", "rows", r->rows);
    if (o->ops->labels == LABEL_BINARY)
        (void)printf("%-12s %" PRIu64 "\n", "positives", r->positives);
    else if (!o->ops->many)
        print_number("mean_label", r->mean_label);
    print_number(o->ops->key, objective_shown(o, r->loss));
    for (unsigned m = 0; m < METRICS; m++)
        if (o->ops->metrics & METRIC_BIT(m))
            print_number(objective_metric_name(m), r->value[m]);
}

static int print_result(const struct objective *o, const struct metrics_result *r, int json)
{
    int bad = 0;
    if (json) {
        json_t *j = metrics_json(o, r);
        bad = !j || json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0;
        json_decref(j);
        (void)putchar('\n');
    } else {
        print_text(o, r);
    }
    if (bad || fflush(stdout) != 0)
        return code_fail("eval", PARAMO_E_IO, "standard output cannot be written");
    return CODE_DONE;
}

int cmd_eval(int argc, char **argv)
{
    struct options o;
    struct scoring scoring = {.options = &o};
    int code = options_parse(&o, VERB_EVAL, argc, argv, usage, more);
    if (code < 0)
        code = scoring_check(&scoring);
    if (code < 0) {
        struct metrics_result result = {0};
        struct objective objective;
        paramo_err err = evaluate(&scoring, &result, &objective);
        code = err ? code_fail("eval", err, paramo_last_error())
                   : print_result(&objective, &result, option_flag(&o, OPT_JSON));
    }
    options_free(&o);
    return code;
}
