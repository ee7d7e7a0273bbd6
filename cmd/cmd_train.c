/*
 * paramo train: options, signals, the summary. The job itself is learn/train/train.c. Tests:
 * test/e2e/train.sh, cli.sh.
 */
#include "cmd/dataargs.h"
#include "cmd/exitcode.h"
#include "cmd/model_args.h"
#include "cmd/verbs.h"
#include "learn/train/train.h"

#include "paramo/paramo.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: paramo train --model MODEL --data FILE... [options]\n"
    "\n"
    "Trains a click model, by default all in this process. Started by 'paramo run -s S -w W -- paramo\n"
    "train ...', or with DMLC_ROLE and the scheduler's address in the environment, it is one node of a\n"
    "cluster; all nodes get the same options. Workers take the data part by part from the scheduler.\n";

static const char more[] =
    "Gradients are summed over a batch's rows, so --alpha is per row; a greater --batch learns faster and\n"
    "reaches a little less. Rows learned at the same time lack each other's updates: more workers get\n"
    "smaller batches. If the log-loss stays above that of guessing the mean rate, a warning says so.\n"
    "Rows, log-loss and bytes are those of an epoch, in progress and summary. Batches are cut within parts\n"
    "of 1 MiB of text. Each batch is scored before it is learned: that is the log-loss shown while\n"
    "training.\n"
    "\n"
    "With one worker (the default) every run gives the same model to the last bit, in one process or on a\n"
    "cluster with any number of servers. Several workers do not wait for each other, so results differ a\n"
    "little from run to run.\n"
    "\n"
    "FM (Rendle, ICDM 2010) scores with w and factors v; a feature whose w is 0 has no factors. Feature id\n"
    "18446744073709551615 is the bias.\n"
    "\n"
    "Ctrl-C finishes the current batches and saves the model; a second one exits at once.\n"
    "\n" CODE_HELP "\n"
    "  paramo train --model lr --data train.ffm.zst --valid test.ffm.zst --model-out model\n"
    "  paramo train --model fm --dim 8 --data 'day*.gz' --epochs 10 --valid v.gz --early-stop 2 --model-out "
    "m\n"
    "  paramo run -s 2 -w 2 -- paramo train --model lr --data train.ffm --model-out model\n";

struct settings {
    struct data_args data;
    struct arg_list valid;
    struct model_args model;
    const char *model_in, *model_out;
    const char *checkpoint_dir, *restore;
    uint64_t checkpoint_every, full_every, keep;
    int has_keep;
    uint64_t epochs, batch, ahead, hash_bits, servers, workers, seed, early_stop;
    int no_state, json, quiet;
    int has_hash_bits, has_seed; /* whether they were given */
};

static void on_signal(int sig)
{
    static volatile sig_atomic_t before;
    (void)sig;
    int ends = before++ > 0 ? 0 : train_interrupt();
    if (!ends)
        _exit(CODE_INTERRUPTED); /* a second time, or before there is anything to end cleanly */
    if (ends == 2)
        return;
    static const char text[] = "paramo train: ending after the current batches; again to leave at once\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
}

/* ---- settings ---- */

/* Continues from a model: what was trained stands, and settings that were not given stay as they were. Returns
 * -1 or the exit code. */
static int continue_from(const struct settings *s, struct model_info *info)
{
    paramo_err err = train_take_settings(s->model_in, info);
    if (err != PARAMO_OK)
        return code_fail("train", err, lerr_text());
    if (s->has_hash_bits && s->hash_bits != info->hash_bits)
        return args_wrong("train", "%s was trained with --hash-bits %u", s->model_in, info->hash_bits);
    if (s->has_seed)
        info->seed = s->seed;
    return model_args_continue(&s->model, s->model_in, info);
}

static int begin(const struct settings *s, struct model_info *info)
{
    int code = model_args_begin(&s->model, info);
    info->hash_bits = (uint32_t)s->hash_bits;
    info->seed = s->seed;
    return code;
}

static int make_options(const struct settings *s, struct train_options *o)
{
    if (s->data.files.n == 0)
        return args_wrong("train", "--data is missing");
    if (s->model.model == NULL && s->model_in == NULL)
        return args_wrong("train", "--model is missing");
    if (s->early_stop > 0 && s->valid.n == 0)
        return args_wrong("train", "--early-stop needs --valid");
    struct model_info *info = &o->model;
    int code = s->model_in != NULL ? continue_from(s, info) : begin(s, info);
    if (code >= 0)
        return code;
    (void)snprintf(info->data_format, sizeof info->data_format, "%s",
                   s->data.format == NULL ? "auto" : s->data.format);
    data_args_apply(&s->data, &o->reader);
    o->data = s->data.files.item;
    o->data_n = s->data.files.n;
    o->valid = s->valid.item;
    o->valid_n = s->valid.n;
    o->model_in = s->model_in;
    o->model_out = s->model_out;
    o->epochs = s->epochs;
    o->batch = s->batch;
    o->ahead = (uint32_t)s->ahead;
    o->servers = (uint32_t)s->servers;
    o->workers = (uint32_t)s->workers;
    o->early_stop = (uint32_t)s->early_stop;
    o->drop_state = s->no_state;
    o->quiet = s->quiet;
    return -1;
}

/* ---- results ---- */

static json_t *real_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *metrics_json(const struct metrics_result *m)
{
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "rows", (json_int_t)m->rows, "positives",
                     (json_int_t)m->positives, "logloss", real_or_null(m->logloss), "auc",
                     real_or_null(m->auc), "accuracy", real_or_null(m->accuracy), "calibration",
                     real_or_null(m->calibration));
}

static json_t *epoch_json(size_t number, const struct train_epoch *e)
{
    json_t *j = json_pack(
        "{s:I, s:I, s:I, s:o, s:f, s:f, s:f, s:I, s:I, s:I, s:I}", "epoch", (json_int_t)number, "rows",
        (json_int_t)e->rows, "positives", (json_int_t)e->positives, "logloss", real_or_null(e->logloss),
        "mean_logloss", e->mean_logloss, "seconds", e->seconds, "rows_per_second",
        e->seconds > 0 ? (double)e->rows / e->seconds : 0.0, "keys", (json_int_t)e->keys, "nonzero",
        (json_int_t)e->nonzero, "bytes_pushed", (json_int_t)e->sent, "bytes_pulled", (json_int_t)e->received);
    if (j != NULL && e->has_valid)
        (void)json_object_set_new(j, "valid", metrics_json(&e->valid));
    return j;
}

/* "factor_alpha" for the prefix "factor-". */
static void put_alpha(json_t *j, const char *prefix, double alpha)
{
    char key[48];
    (void)snprintf(key, sizeof key, "%salpha", prefix);
    for (char *c = key; *c != '\0'; c++)
        *c = *c == '-' ? '_' : *c;
    (void)json_object_set_new(j, key, json_real(alpha));
}

static int print_json(const struct settings *s, const struct train_options *o, const struct train_result *r)
{
    json_t *epochs = json_array();
    for (size_t i = r->first_epoch; i < r->epochs; i++)
        if (r->epoch[i].rows > 0)
            (void)json_array_append_new(epochs, epoch_json(i + 1, &r->epoch[i]));
    json_t *j = json_pack(
        "{s:s, s:s, s:i, s:i, s:I, s:i, s:I, s:s?, s:I, s:f, s:b, s:b, s:b, s:I, s:o}", "model",
        o->model.ops->name, "vectors", paramo_cpu(), "servers", (int)r->num_servers, "workers",
        (int)r->num_workers, "batch", (json_int_t)r->batch, "dead_workers", (int)r->dead_workers,
        "parts_dealt_again", (json_int_t)r->dealt_again, "warning", r->warning[0] != '\0' ? r->warning : NULL,
        "rows", (json_int_t)r->rows, "seconds", r->seconds, "interrupted", r->interrupted, "stopped_early",
        r->stopped_early, "saved", r->saved, "bad_lines", (json_int_t)r->bad_lines, "epochs", epochs);
    if (j != NULL && s->model_out != NULL)
        (void)json_object_set_new(j, "model_out", json_string(s->model_out));
    for (size_t t = 1; j != NULL && t < o->model.ops->tables; t++)
        put_alpha(j, o->model.ops->table[t].prefix, r->alpha[t]);
    if (j != NULL && r->best_epoch > 0)
        (void)json_object_set_new(j, "best_epoch", json_integer((json_int_t)r->best_epoch));
    int bad = j == NULL || json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0;
    json_decref(j);
    if (bad || putchar('\n') == EOF || fflush(stdout) != 0)
        return code_fail("train", PARAMO_E_IO, "standard output cannot be written");
    return CODE_DONE;
}

static char *seconds_text(char *out, size_t cap, double seconds)
{
    if (seconds >= 60)
        return progress_time(out, cap, seconds);
    (void)snprintf(out, cap, "%.1f s", seconds);
    return out;
}

static int print_summary(const struct settings *s, const struct train_result *r)
{
    char a[16], b[16], c[16], d[16], rate[16];
    if (r->epochs > r->first_epoch) {
        int valid = r->epoch[r->first_epoch].has_valid;
        (void)printf("epoch       rows  log-loss%s    weights     pushed     pulled     time     rows/s\n",
                     valid ? "   valid    AUC    " : "");
        for (size_t i = r->first_epoch; i < r->epochs; i++) {
            const struct train_epoch *e = &r->epoch[i];
            if (e->rows == 0)
                continue;
            char scores[48] = "", mark = i + 1 == r->best_epoch && r->epochs > r->first_epoch + 1 ? '*' : ' ';
            if (valid)
                (void)snprintf(scores, sizeof scores, "  %.5f %.5f%c", e->valid.logloss, e->valid.auc, mark);
            (void)printf(
                "%5zu %10" PRIu64 "   %.5f%s %10s %10s %10s %8s %10s\n", i + 1, e->rows, e->logloss, scores,
                progress_count(a, sizeof a, (double)e->nonzero), progress_bytes(b, sizeof b, e->sent),
                progress_bytes(c, sizeof c, e->received), seconds_text(d, sizeof d, e->seconds),
                progress_count(rate, sizeof rate, e->seconds > 0 ? (double)e->rows / e->seconds : 0));
        }
    }
    (void)printf("%s%s rows by %u worker%s and %u server%s in %s", r->interrupted ? "interrupted: " : "",
                 progress_count(a, sizeof a, (double)r->rows), r->num_workers, r->num_workers == 1 ? "" : "s",
                 r->num_servers, r->num_servers == 1 ? "" : "s", seconds_text(b, sizeof b, r->seconds));
    if (r->stopped_early)
        (void)printf("; stopped early, epoch %zu was the best", r->best_epoch);
    (void)printf(r->saved ? "; model saved to %s\n" : "\n", s->model_out);
    if (r->dead_workers > 0 || r->dealt_again > 0)
        (void)printf("%u worker%s died; %" PRIu64 " part%s of the data begun and not finished, dealt again\n",
                     r->dead_workers, r->dead_workers == 1 ? "" : "s", r->dealt_again,
                     r->dealt_again == 1 ? "" : "s");
    if (r->warning[0] != '\0')
        (void)printf("warning: %s\n", r->warning);
    if (fflush(stdout) != 0 || ferror(stdout))
        return code_fail("train", PARAMO_E_IO, "standard output cannot be written");
    return CODE_DONE;
}

static void set_number(const char *name, uint64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    (void)setenv(name, text, 1);
}

/* For the node that has the scheduler. */
static void set_checkpoints(const struct settings *s)
{
    if (s->checkpoint_dir)
        (void)setenv("PARAMO_CHECKPOINT_DIR", s->checkpoint_dir, 1);
    if (s->checkpoint_every)
        set_number("PARAMO_CHECKPOINT_EVERY", s->checkpoint_every);
    if (s->full_every)
        set_number("PARAMO_CHECKPOINT_FULL_EVERY", s->full_every);
    if (s->has_keep)
        set_number("PARAMO_CHECKPOINT_KEEP", s->keep);
    if (s->restore)
        (void)setenv("PARAMO_RESTORE", s->restore, 1);
}

#define ARGS_MAX 96

static size_t append(struct arg *args, size_t n, const struct arg *more_args, size_t count)
{
    for (size_t i = 0; i < count && n < ARGS_MAX; i++)
        args[n++] = more_args[i];
    return n;
}

#define APPEND(list) n = append(args, n, list, sizeof(list) / sizeof *(list))

/* All options; returns how many. */
static size_t list_args(struct settings *s, struct arg args[ARGS_MAX])
{
    /* clang-format off */
    const struct arg data[] = {
        {.name = "What to learn from", .kind = ARG_SECTION},
        DATA_ARGS(s->data),
        {.name = "valid", .kind = ARG_LIST, .out = &s->valid, .meta = "FILE...",
         .help = "measure the model on these after each epoch"},
        {.name = "hash-bits", .kind = ARG_INT, .out = &s->hash_bits, .meta = "N", .max = 63, .given = &s->has_hash_bits,
         .help = "hash feature ids to N bits; 0 keeps them (0)"},
        {.name = "epochs", .kind = ARG_INT, .out = &s->epochs, .meta = "N", .min = 1, .max = TRAIN_EPOCHS_MAX,
         .help = "passes over the data (1)"},
        {.name = "early-stop", .kind = ARG_INT, .out = &s->early_stop, .meta = "N", .max = TRAIN_EPOCHS_MAX,
         .help = "stop after N epochs without a better log-loss on --valid, and keep\nthe best epoch's model; 0: never (0)"},
    };
    const struct arg model[] = {
        {.name = "The model", .kind = ARG_SECTION},
        model_args_model(&s->model),
        {.name = "model-out", .kind = ARG_STRING, .out = &s->model_out, .meta = "DIR",
         .help = "save it there (the directory is made)"},
        {.name = "model-in", .kind = ARG_STRING, .out = &s->model_in, .meta = "DIR",
         .help = "continue from this model, with its settings unless given"},
        {.name = "no-state", .kind = ARG_FLAG, .out = &s->no_state,
         .help = "save without the optimizers' state: smaller, but training cannot\ncontinue from it"},
        {.name = "seed", .kind = ARG_INT, .out = &s->seed, .meta = "N", .max = UINT64_MAX, .given = &s->has_seed,
         .help = "of the first values that are drawn (1)"},
    };
    const struct arg how[] = {
        {.name = "How to learn", .kind = ARG_SECTION},
        {.name = "batch", .kind = ARG_INT, .out = &s->batch, .meta = "N", .min = 1, .max = 1 << 20,
         .help = "rows learned at once (512 / workers / (ahead + 1), at least 16: 256\nwith one worker)"},
    };
    const struct arg rest[] = {
        {.name = "Where", .kind = ARG_SECTION},
        {.name = "servers", .kind = ARG_INT, .out = &s->servers, .meta = "S", .min = 1, .max = 256,
         .help = "in one process: server shards, a thread each (1)"},
        {.name = "workers", .kind = ARG_INT, .out = &s->workers, .meta = "W", .min = 1, .max = 256,
         .help = "in one process: learners, a thread each (1); in a cluster both\nnumbers are the cluster's"},
        {.name = "ahead", .kind = ARG_INT, .out = &s->ahead, .meta = "N", .max = 64,
         .help = "parameters are pulled N batches ahead (1)"},
        {.name = "checkpoint-dir", .kind = ARG_STRING, .out = &s->checkpoint_dir, .meta = "DIR",
         .help = "folder for checkpoints, which all servers see"},
        {.name = "checkpoint-every", .kind = ARG_INT, .out = &s->checkpoint_every, .meta = "SECONDS", .min = 1, .max = 604800,
         .help = "time between checkpoints"},
        {.name = "checkpoint-full-every", .kind = ARG_INT, .out = &s->full_every, .meta = "N", .min = 1, .max = 1024,
         .help = "every N-th checkpoint is full, the others are incremental (10)"},
        {.name = "checkpoint-keep", .kind = ARG_INT, .out = &s->keep, .meta = "N", .max = INT32_MAX, .given = &s->has_keep,
         .help = "keep the last N checkpoints and their bases; 0: all (3)"},
        {.name = "restore", .kind = ARG_STRING, .out = &s->restore, .meta = "DIR",
         .help = "begin with the last whole checkpoint of DIR"},
        {.name = "Output", .kind = ARG_SECTION},
        {.name = "json", .kind = ARG_FLAG, .out = &s->json, .help = "the summary as one JSON document on standard output"},
        {.name = "quiet", .kind = ARG_FLAG, .out = &s->quiet, .letter = 'q', .help = "print no progress, only warnings and the summary"},
    };
    /* clang-format on */
    struct arg settings[MODEL_ARGS_SETTINGS], optimizers[MODEL_ARGS_OPTIMIZERS * OPTIMIZER_ARGS];
    size_t n = 0;
    APPEND(data);
    APPEND(model);
    n = append(args, n, settings, model_args_settings(&s->model, settings));
    APPEND(how);
    n = append(args, n, optimizers, model_args_optimizers(&s->model, optimizers));
    APPEND(rest);
    return n;
}

int cmd_train(int argc, char **argv)
{
    struct settings s = {.epochs = 1, .ahead = 1, .servers = 1, .workers = 1, .seed = 1};
    struct arg args[ARGS_MAX];
    model_args_init(&s.model);
    const size_t n = list_args(&s, args);
    struct train_options options = {0};
    struct train_result result;
    int code = args_parse("train", argc, argv, args, n, usage, more);
    if (code < 0)
        code = make_options(&s, &options);
    if (code < 0 && s.checkpoint_every && !s.checkpoint_dir)
        code = args_wrong("train", "--checkpoint-every needs --checkpoint-dir");
    if (code < 0) {
        set_checkpoints(&s);
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
        (void)sigaction(SIGINT, &action, NULL);
        (void)sigaction(SIGTERM, &action, NULL);
        paramo_err err = train_run(&options, &result);
        code = CODE_DONE;
        if (err == PARAMO_E_INTERRUPTED)
            code = CODE_INTERRUPTED;
        else if (err == PARAMO_E_NUMERIC)
            code = code_fail("train", err,
                             "the model has diverged (its numbers are no longer finite); a lower --alpha or "
                             "--factor-alpha helps");
        else if (err != PARAMO_OK)
            code = code_fail("train", err, lerr_text());
        if (result.leader && (code == CODE_DONE || code == CODE_INTERRUPTED) &&
            (s.json ? print_json(&s, &options, &result) : print_summary(&s, &result)) != CODE_DONE)
            code = CODE_DATA;
        if (code == CODE_DONE && result.leader && result.dead_workers > 0 && result.saved)
            (void)fprintf(
                stderr,
                "paramo train: %u worker%s died; the others have learned their parts, and the model is "
                "saved to %s\n",
                result.dead_workers, result.dead_workers == 1 ? "" : "s", options.model_out);
        data_args_report("train", result.bad_lines, result.first_bad);
        train_result_free(&result);
    }
    args_free(args, n);
    return code;
}
