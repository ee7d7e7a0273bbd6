/*
 * paramo predict: one probability a line, in the order of the rows. Tests: test/e2e/train.sh, cli.sh.
 */
#include "cmd/dataargs.h"
#include "cmd/exitcode.h"
#include "cmd/verbs.h"
#include "learn/logistic.h"
#include "learn/output.h"
#include "learn/score.h"

#include <stdio.h>

static const char usage[] =
    "usage: paramo predict --model-in DIR --data FILE... --out FILE\n"
    "\n"
    "Writes the probability that the label is 1 for each row, one a line, in the order of the rows.\n"
    "Labels in the data are read and not used.\n";

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

static paramo_err predict(const char *dir, const struct data_args *data, const char *path)
{
    struct model model;
    struct reader_options options;
    struct reader *reader = NULL;
    struct output *out = NULL;
    paramo_err err = modelio_open(dir, &model);
    if (err != PARAMO_OK)
        return err;
    data_args_apply(data, &options);
    options.hash_bits = model.info.hash_bits;
    err = reader_open(&options, data->files.item, data->files.n, &reader);
    if (err == PARAMO_OK)
        err = output_open(path, &out);
    if (err == PARAMO_OK) {
        struct score_source source = score_model(&model);
        err = score_reader(&source, reader, write_rows, out);
    }
    if (err == PARAMO_OK) {
        err = output_commit(out);
        out = NULL;
    }
    if (err == PARAMO_OK) {
        struct reader_stats stats;
        reader_get_stats(reader, &stats);
        data_args_report("predict", stats.bad_lines, stats.first_bad);
    }
    output_abort(out);
    reader_close(reader);
    modelio_close(&model);
    return err;
}

int cmd_predict(int argc, char **argv)
{
    struct data_args data = {0};
    const char *model = NULL, *out = NULL;
    /* clang-format off */
    const struct arg args[] = {
        {.name = "Options", .kind = ARG_SECTION},
        {.name = "model-in", .kind = ARG_STRING, .out = &model, .meta = "DIR", .help = "a model that 'paramo train' saved"},
        DATA_ARGS(data),
        {.name = "out", .kind = ARG_STRING, .out = &out, .meta = "FILE",
         .help = "where to; - is standard output, .gz and .zst are compressed"},
    };
    /* clang-format on */
    const size_t n = sizeof args / sizeof *args;
    int code = args_parse("predict", argc, argv, args, n, usage, more);
    if (code < 0 && model == NULL)
        code = args_wrong("predict", "--model-in is missing");
    if (code < 0 && data.files.n == 0)
        code = args_wrong("predict", "--data is missing");
    if (code < 0 && out == NULL)
        code = args_wrong("predict", "--out is missing");
    if (code < 0) {
        paramo_err err = predict(model, &data, out);
        code = err == PARAMO_OK ? CODE_DONE : code_fail("predict", err, lerr_text());
    }
    args_free(args, n);
    return code;
}
