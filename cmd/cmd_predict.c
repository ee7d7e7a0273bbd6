/*
 * paramo predict: one probability a line, in the order of the rows. Tests: test/e2e/train.sh, cli.sh.
 */
#include "cmd/exitcode.h"
#include "cmd/scoring.h"
#include "cmd/verbs.h"
#include "learn/io/output.h"
#include "learn/model/logistic.h"

#include <stdio.h>
#include <sys/stat.h>

static const char usage[] =
    "usage: paramo predict --model-in DIR --data FILE... --out FILE\n"
    "\n"
    "Writes the probability that the label is 1 for each row, one a line, in the order of the rows.\n"
    "Rows need no label. Labels in the data are ignored.\n";

static const char more[] = "The output appears under its name when it is whole.\n"
                           "\n" CODE_HELP "\n"
                           "  paramo predict --model-in model --data rows.libsvm.gz --out probabilities.txt\n"
                           "  zcat rows.gz | paramo predict --model-in model --data - --out - | head\n";

static paramo_err write_rows(void *arg, const float *margin, const float *label, size_t n)
{
    struct output *out = arg;
    (void)label;
    for (size_t i = 0; i < n; i++) {
        char line[32];
        int len = snprintf(line, sizeof line, "%.9g\n", link_probability(margin[i]));
        paramo_err err = output_write(out, line, (size_t)len);
        if (err != PARAMO_OK)
            return err;
    }
    return PARAMO_OK;
}

/* Writing over the data would be a slip of the hand. */
static paramo_err check_out(const struct option_list *files, const char *path)
{
    struct stat out, in;
    if (stat(path, &out) != 0 || !S_ISREG(out.st_mode))
        return PARAMO_OK;
    for (size_t i = 0; i < files->n; i++)
        if (stat(files->item[i], &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return paramo_error_set(PARAMO_E_INVALID, "--out %s is one of the data files", path);
    return PARAMO_OK;
}

static paramo_err predict(struct scoring *scoring, const char *path)
{
    struct output *out = NULL;
    paramo_err err = check_out(option_list(scoring->options, OPT_DATA), path);
    if (err == PARAMO_OK)
        err = scoring_open(scoring);
    if (err == PARAMO_OK)
        err = output_open(path, &out);
    if (err == PARAMO_OK)
        err = scoring_run(scoring, write_rows, out);
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
