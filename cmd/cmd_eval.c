/*
 * paramo eval: how good a model is on labelled rows. Tests: test/e2e/train.sh, cli.sh.
 */
#include "cmd/exitcode.h"
#include "cmd/scoring.h"
#include "cmd/verbs.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>

static const char usage[] =
    "usage: paramo eval --model-in DIR --data FILE... [--json]\n"
    "\n"
    "Measures a model on labelled rows: rows, positives, log-loss (natural logarithm), area under the\n"
    "ROC curve, accuracy at 0.5, calibration (mean prediction / mean label).\n";

static const char more[] = CODE_HELP "\n"
                                     "  paramo eval --model-in model --data test.libffm.zst\n";

static paramo_err evaluate(struct scoring *scoring, struct metrics_result *result)
{
    struct metrics *metrics = NULL;
    paramo_err err = scoring_open(scoring);
    if (err == PARAMO_OK)
        err = metrics_new(&metrics);
    if (err == PARAMO_OK)
        err = scoring_run(scoring, score_metrics, metrics);
    if (err == PARAMO_OK)
        err = metrics_finish(metrics, result);
    metrics_free(metrics);
    scoring_close(scoring);
    return err;
}

static json_t *real_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static void print_number(const char *name, double x)
{
    if (isfinite(x))
        (void)printf("%-12s %.6f\n", name, x);
    else
        (void)printf("%-12s -\n", name); /* not defined: only one kind of rows */
}

static int print_result(const struct metrics_result *r, int json)
{
    if (json) {
        json_t *j = json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "rows", (json_int_t)r->rows, "positives",
                              (json_int_t)r->positives, "logloss", real_or_null(r->logloss), "auc",
                              real_or_null(r->auc), "accuracy", real_or_null(r->accuracy), "calibration",
                              real_or_null(r->calibration));
        int bad = !j || json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0;
        json_decref(j);
        if (bad)
            return code_fail("eval", PARAMO_E_IO, "standard output cannot be written");
        (void)putchar('\n');
    } else {
        (void)printf("%-12s %" PRIu64 "\n%-12s %" PRIu64 "\n", "rows", r->rows, "positives", r->positives);
        print_number("logloss", r->logloss);
        print_number("auc", r->auc);
        print_number("accuracy", r->accuracy);
        print_number("calibration", r->calibration);
    }
    if (fflush(stdout) != 0)
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
        paramo_err err = evaluate(&scoring, &result);
        code = err ? code_fail("eval", err, paramo_last_error())
                   : print_result(&result, option_flag(&o, OPT_JSON));
    }
    options_free(&o);
    return code;
}
