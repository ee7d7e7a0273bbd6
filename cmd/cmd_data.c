/*
 * paramo data: works on files of rows without learning. `synth` draws a click log from a known model, and prints the
 * best log-loss that any model can reach on it; the other subcommands describe files, or write their rows to other
 * files (data_files.c). Tests: test/e2e/data.sh, cli.sh, test/learn/test_synth.c, test_raw_rows.c.
 */
#include "cmd/data_files.h"
#include "cmd/exitcode.h"
#include "cmd/options.h"
#include "cmd/verbs.h"
#include "learn/data/synth.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: paramo data stat --data FILE... [--columns C] [--no-labels] [--json]\n"
    "       paramo data head --data FILE... [--rows N] [--out FILE]\n"
    "       paramo data split --data FILE... --share P --out FILE [--rest FILE]\n"
    "       paramo data shuffle --data FILE... --out FILE [--seed N] [--memory MB]\n"
    "       paramo data convert --data FILE... --to libsvm|libffm|vw --out FILE\n"
    "       paramo data synth --rows N --out FILE [options]\n"
    "\n"
    "stat counts rows, labels, values and fields, and estimates how many features differ. head, split and\n"
    "shuffle write rows as they stand, each file with the header if there is one. convert writes rows with\n"
    "their keys, which are hashes where names or columns were. synth writes a click log drawn from a known\n"
    "logistic model (with --factors: a factorization machine), and prints the best log-loss and AUC that\n"
    "any model can reach on it. A training and a test file are drawn with the same --model-seed and another\n"
    "--seed.\n";

static const char more[] =
    "The report goes to standard output, or to standard error if rows go there. A file appears when it is\n"
    "whole, or not at all.\n\n" CODE_HELP "\n"
    "  paramo data stat --data clicks.csv.gz --columns 'label=click,cat=*'\n"
    "  paramo data split --data c.csv --share 0.2 --out test.csv --rest train.csv\n"
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
    int ok = j && json_dumpf(j, to, JSON_INDENT(2)) == 0 && fputc('\n', to) != EOF;
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

static void make_options(const struct options *o, struct synth_options *synth_options)
{
    synth_options_init(synth_options);
    const double click_rate = option_real(o, OPT_CLICK_RATE);
    synth_options->rows = option_number(o, OPT_ROWS);
    if (option_given(o, OPT_DATA_FORMAT))
        synth_options->format = (enum parse_format)parse_format_find(option_text(o, OPT_DATA_FORMAT));
    if (option_given(o, OPT_FIELDS))
        synth_options->fields = (uint32_t)option_number(o, OPT_FIELDS);
    else if (synth_options->format == PARSE_CRITEO)
        synth_options->fields = PARSE_CRITEO_FIELDS;
    synth_options->features = (uint32_t)option_number(o, OPT_FEATURES);
    synth_options->zipf = option_real(o, OPT_ZIPF);
    if (option_given(o, OPT_CLICK_RATE))
        synth_options->bias = log(click_rate / (1 - click_rate));
    synth_options->spread = option_real(o, OPT_SPREAD);
    synth_options->factors = (uint32_t)option_number(o, OPT_FACTORS);
    synth_options->factor_spread = option_real(o, OPT_FACTOR_SPREAD);
    synth_options->seed = option_number(o, OPT_DATA_SEED);
    synth_options->model_seed = option_number(o, OPT_MODEL_SEED);
}

static int synth(const struct options *options, const struct synth_options *o, const char *path)
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
        return options_wrong(options, "%s", paramo_last_error());
    if (err != PARAMO_OK)
        return code_fail("data", err, paramo_last_error());
    FILE *to = strcmp(path, "-") == 0 ? stderr : stdout;
    int ok =
        option_flag(options, OPT_JSON) ? print_json(to, o, path, &report) : print_report(to, path, &report);
    if (!ok || fflush(to) != 0)
        return code_fail("data", PARAMO_E_IO, "cannot write the report");
    return CODE_DONE;
}

static int run_synth(const struct options *o)
{
    struct synth_options synth_options;
    const char *out = option_text(o, OPT_DATA_OUT);
    if (!option_given(o, OPT_ROWS))
        return options_wrong(o, "--rows N is missing");
    if (!out)
        return options_wrong(o, "--out FILE is missing");
    if (option_real(o, OPT_CLICK_RATE) >= 1)
        return options_wrong(o, "--click-rate %g: must be below 1", option_real(o, OPT_CLICK_RATE));
    make_options(o, &synth_options);
    if (synth_options.format != PARSE_LIBFFM && synth_options.format != PARSE_LIBSVM &&
        synth_options.format != PARSE_CRITEO)
        return options_wrong(o, "--format %s: synth writes libffm, libsvm or criteo",
                             option_text(o, OPT_DATA_FORMAT));
    return synth(o, &synth_options, out);
}

enum { STAT = 1, HEAD = 2, SPLIT = 4, SHUFFLE = 8, CONVERT = 16, SYNTH = 32 };

static const struct subcommand {
    const char *name;
    int (*run)(const struct options *o);
    unsigned bit;
} subcommands[] = {
    {"stat", data_stat, STAT},          {"head", data_head, HEAD},          {"split", data_split, SPLIT},
    {"shuffle", data_shuffle, SHUFFLE}, {"convert", data_convert, CONVERT}, {"synth", run_synth, SYNTH},
};

#define SUBCOMMANDS "'stat', 'head', 'split', 'shuffle', 'convert' or 'synth'"

/* The options that only some subcommands have; `of`: the bits of these. */
static const struct {
    enum option_id id;
    unsigned of;
} partial[] = {
    {OPT_DATA, ~(unsigned)SYNTH},
    {OPT_COLUMNS, STAT | CONVERT},
    {OPT_SKIP_BAD, STAT | CONVERT},
    {OPT_ROWS, HEAD | SYNTH},
    {OPT_DATA_OUT, ~(unsigned)STAT},
    {OPT_NO_LABELS, STAT | CONVERT},
    {OPT_SHARE, SPLIT},
    {OPT_REST, SPLIT},
    {OPT_TO, CONVERT},
    {OPT_MEMORY, SHUFFLE},
    {OPT_FIELDS, SYNTH},
    {OPT_FEATURES, SYNTH},
    {OPT_ZIPF, SYNTH},
    {OPT_CLICK_RATE, SYNTH},
    {OPT_SPREAD, SYNTH},
    {OPT_FACTORS, SYNTH},
    {OPT_FACTOR_SPREAD, SYNTH},
    {OPT_DATA_SEED, SPLIT | SHUFFLE | SYNTH},
    {OPT_MODEL_SEED, SYNTH},
};

/* Refuses options of other subcommands, which would have no effect. Returns -1, or the exit code. */
static int check_options(const struct options *o, const struct subcommand *subcommand)
{
    const char *heading;
    char letter;
    for (size_t i = 0; i < sizeof partial / sizeof *partial; i++)
        if (option_given(o, partial[i].id) && !(partial[i].of & subcommand->bit))
            return options_wrong(o, "'%s' has no option --%s", subcommand->name,
                                 option_line(VERB_DATA, partial[i].id, &heading, &letter)->name);
    return -1;
}

int cmd_data(int argc, char **argv)
{
    struct options o;
    int code = options_parse(&o, VERB_DATA, argc, argv, usage, more);
    const struct subcommand *found = NULL;
    for (size_t i = 0; code < 0 && o.words && i < sizeof subcommands / sizeof *subcommands; i++)
        if (strcmp(o.word[0], subcommands[i].name) == 0)
            found = &subcommands[i];
    if (code < 0 && !o.words)
        code = options_wrong(&o, "a subcommand is missing: " SUBCOMMANDS);
    if (code < 0 && !found)
        code = options_wrong(&o, "unknown subcommand '%s': use " SUBCOMMANDS, o.word[0]);
    if (code < 0)
        code = check_options(&o, found);
    if (code < 0)
        code = found->run(&o);
    options_free(&o);
    return code;
}
