/*
 * paramo predict: one prediction a line, in the order of the rows. Tests: test/e2e/train.sh, cli.sh.
 */
#include "cmd/exitcode.h"
#include "cmd/scoring.h"
#include "cmd/verbs.h"
#include "learn/eval/prediction.h"
#include "learn/io/input.h"
#include "learn/io/output.h"
#include "learn/store/modelio.h"

#include <stdlib.h>

static const char usage[] =
    "usage: paramo predict --model-in DIR --data FILE... --out FILE\n"
    "\n"
    "Writes the model's prediction for each row, one a line, in the order of the rows: by the objective it\n"
    "was trained with, the probability that the label is 1 (logistic), a margin that is positive for label\n"
    "1 (hinge), the mean label (squared, poisson), a quantile of the label (quantile), or the probability\n"
    "of each class, with tabs between them (softmax). Rows need no label; labels are ignored.\n";

static const char more[] = "The output appears under its name when it is whole.\n"
                           "\n" CODE_HELP "\n"
                           "  paramo predict --model-in model --data rows.libsvm.gz --out probabilities.txt\n"
                           "  zcat rows.gz | paramo predict --model-in model --data - --out - | head\n";

/* What write_rows needs. */
struct writer {
    const struct objective *objective;
    struct output *out;
};

static paramo_err write_rows(void *arg, const struct scored_rows *rows)
{
    const struct writer *w = arg;
    char *line = malloc(prediction_max(w->objective) + 1);
    paramo_err err =
        !line ? paramo_error_set(PARAMO_E_MEMORY, "out of memory for a line of the output") : PARAMO_OK;
    for (size_t i = 0; err == PARAMO_OK && i < rows->n; i++) {
        size_t len = prediction_text(w->objective, rows->margin, rows->stride, i, 0, line);
        line[len++] = '\n';
        err = output_write(w->out, line, len);
    }
    free(line);
    return err;
}

static paramo_err predict(struct scoring *scoring, const char *path)
{
    struct output *out = NULL;
    struct writer writer = {.objective = &scoring->model.info.objective};
    const struct option_list *files = option_list(scoring->options, OPT_DATA);
    paramo_err err = input_refuse_output(files->item, files->n, path);
    if (err == PARAMO_OK)
        err = modelio_refuse_output(option_text(scoring->options, OPT_MODEL_IN), path);
    if (err == PARAMO_OK)
        err = scoring_open(scoring);
    if (err == PARAMO_OK)
        err = output_open(path, &out);
    writer.out = out;
    if (err == PARAMO_OK)
        err = scoring_run(scoring, write_rows, &writer);
    if (err == PARAMO_OK) {
        err = output_commit(out);
        out = NULL;
    }
    output_abort(out);
    scoring_close(scoring);
    return err;
}

int cmd_predict(int argc, char **argv)
{
    struct options o;
    struct scoring scoring = {.options = &o};
    int code = options_parse(&o, VERB_PREDICT, argc, argv, usage, more);
    if (code < 0)
        code = scoring_check(&scoring);
    if (code < 0 && !option_text(&o, OPT_PREDICT_OUT))
        code = options_wrong(&o, "--out is missing");
    if (code < 0) {
        paramo_err err = predict(&scoring, option_text(&o, OPT_PREDICT_OUT));
        code = err ? code_fail("predict", err, paramo_last_error()) : CODE_DONE;
    }
    options_free(&o);
    return code;
}
