/*
 * paramo data: click logs for trying things out. Its one subject, `synth`, writes a log drawn from a known
 * model and says what log-loss is the best that any model can reach on it. Tests: test/e2e/cli.sh,
 * test/learn/test_synth.c.
 */
#include "cmd/args.h"
#include "cmd/exitcode.h"
#include "cmd/verbs.h"
#include "learn/data/synth.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: paramo data synth --rows N --out FILE [options]\n"
    "\n"
    "Writes a click log drawn from a known logistic model (with --factors: a factorization machine), and\n"
    "prints the best log-loss and AUC that any model can reach on it. A training and a test file are drawn\n"
    "with the same --model-seed and another --seed.\n";

static const char more[] = "The report goes to standard output, or to standard error if the log goes there.\n"
                           "If the log cannot be written whole, no file is left.\n" CODE_HELP "\n"
                           "  paramo data synth --rows 1000000 --seed 1 --out train.ffm.zst\n"
                           "  paramo data synth --rows 100000 --seed 2 --out test.ffm.zst\n";

static volatile int stopped;

static void on_signal(int sig)
{
    (void)sig;
    stopped = 1;
}

static int print_json(FILE *to, const struct synth_options *o, const char *path, const struct synth_report *r)
{
    json_t *j = json_pack("{s:s, s:s, s:I, s:I, s:f, s:f, s:f, s:f}", "out", path, "format",
                          parse_format_name(o->format), "rows", (json_int_t)r->rows, "positives",
                          (json_int_t)r->positives, "best_logloss", r->best_logloss, "drawn_logloss",
                          r->drawn_logloss, "best_auc", r->best_auc, "base_logloss", r->base_logloss);
    int ok = j != NULL && json_dumpf(j, to, JSON_INDENT(2)) == 0 && fputc('\n', to) != EOF;
    json_decref(j);
    return ok;
}

static int print_report(FILE *to, const char *path, const struct synth_report *r)
{
    return fprintf(to,
                   "%s: %" PRIu64 " rows, %" PRIu64 " clicks (%.2f %%)\n"
                   "best reachable log-loss %.5f, AUC %.4f (the true model on these labels: log-loss %.5f)\n"
                   "log-loss of the mean click rate %.5f\n",
                   path, r->rows, r->positives, 100.0 * (double)r->positives / (double)r->rows,
                   r->best_logloss, r->best_auc, r->drawn_logloss, r->base_logloss) > 0;
}

static int synth(const struct synth_options *o, const char *path, int json)
{
    struct sigaction act = {.sa_handler = on_signal}, old_int, old_term;
    struct synth_report report;
    (void)sigemptyset(&act.sa_mask);
    (void)sigaction(SIGINT, &act, &old_int);
    (void)sigaction(SIGTERM, &act, &old_term);
    paramo_err err = synth_write(o, path, &stopped, &report);
    (void)sigaction(SIGINT, &old_int, NULL);
    (void)sigaction(SIGTERM, &old_term, NULL);
    if (err == PARAMO_E_INVALID)
        return args_wrong("data", "%s", lerr_text());
    if (err != PARAMO_OK)
        return code_fail("data", err, lerr_text());
    FILE *to = strcmp(path, "-") == 0 ? stderr : stdout;
    int ok = json ? print_json(to, o, path, &report) : print_report(to, path, &report);
    if (!ok || fflush(to) != 0)
        return code_fail("data", PARAMO_E_IO, "cannot write the report");
    return CODE_DONE;
}

int cmd_data(int argc, char **argv)
{
    struct synth_options o;
    synth_options_init(&o);
    const char *out = NULL, *format = parse_format_name(o.format);
    uint64_t fields = o.fields, features = o.features, factors = o.factors;
    double click_rate = 1 / (1 + exp(-o.bias));
    int rows_given = 0, fields_given = 0, json = 0;
    const struct arg args[] = {
        {.name = "rows",
         .kind = ARG_INT,
         .out = &o.rows,
         .meta = "N",
         .help = "rows to write",
         .min = 1,
         .max = UINT64_MAX,
         .given = &rows_given},
        {.name = "out",
         .kind = ARG_STRING,
         .out = &out,
         .meta = "FILE",
         .help = "output file; .gz and .zst are compressed; - is standard output"},
        {.name = "format",
         .kind = ARG_CHOICE,
         .out = &format,
         .meta = "libffm|libsvm|criteo",
         .help = "libffm 'label field:id:1', libsvm 'label id:1', or Criteo TSV\n(libffm)"},
        {.name = "fields",
         .kind = ARG_INT,
         .out = &fields,
         .meta = "N",
         .help = "values in a row (10; criteo: 39)",
         .min = 1,
         .max = UINT32_MAX,
         .given = &fields_given},
        {.name = "features",
         .kind = ARG_INT,
         .out = &features,
         .meta = "N",
         .help = "different values of each field (1000)",
         .min = 1,
         .max = UINT32_MAX},
        {.name = "zipf",
         .kind = ARG_NATURAL,
         .out = &o.zipf,
         .meta = "X",
         .help = "exponent of the Zipf law of their frequencies; 0: uniform (1.1)"},
        {.name = "click-rate",
         .kind = ARG_POSITIVE,
         .out = &click_rate,
         .meta = "P",
         .help = "of a row whose weights sum to 0 (0.27)"},
        {.name = "spread",
         .kind = ARG_NATURAL,
         .out = &o.spread,
         .meta = "X",
         .help = "standard deviation of that sum (1.2)"},
        {.name = "factors",
         .kind = ARG_INT,
         .out = &factors,
         .meta = "K",
         .help = "dimension of pairwise interactions; 0: none (0)",
         .max = UINT32_MAX},
        {.name = "factor-spread",
         .kind = ARG_NATURAL,
         .out = &o.factor_spread,
         .meta = "X",
         .help = "standard deviation of their sum (1)"},
        {.name = "seed",
         .kind = ARG_INT,
         .out = &o.seed,
         .meta = "N",
         .help = "draws the rows (1)",
         .max = UINT64_MAX},
        {.name = "model-seed",
         .kind = ARG_INT,
         .out = &o.model_seed,
         .meta = "N",
         .help = "draws the model (1)",
         .max = UINT64_MAX},
        {.name = "json", .kind = ARG_FLAG, .out = &json, .help = "print JSON"},
    };
    if (argc > 1 && argv[1][0] != '-' && strcmp(argv[1], "synth") != 0)
        return args_wrong("data", "unknown subject '%s': there is 'synth'", argv[1]);
    const int named = argc > 1 && argv[1][0] != '-';
    int code = args_parse("data", argc - named, argv + named, args, sizeof args / sizeof *args, usage, more);
    if (code >= 0)
        return code;
    if (!named)
        return args_wrong("data", "a subject is missing. There is 'synth'");
    if (!rows_given)
        return args_wrong("data", "--rows N is needed");
    if (out == NULL || *out == '\0')
        return args_wrong("data", "--out FILE is needed");
    if (click_rate >= 1)
        return args_wrong("data", "--click-rate %g: must be below 1", click_rate);
    o.format = (enum parse_format)parse_format_find(format);
    o.fields = o.format == PARSE_CRITEO && !fields_given ? PARSE_CRITEO_FIELDS : (uint32_t)fields;
    o.features = (uint32_t)features;
    o.factors = (uint32_t)factors;
    o.bias = log(click_rate / (1 - click_rate));
    return synth(&o, out, json);
}
