/*
 * paramo train: options, signals, and the summary as text or JSON. The job itself is learn/train/train.c. Tests:
 * test/e2e/train.sh, cli.sh.
 */
#include "cmd/darlin_args.h"
#include "cmd/dataargs.h"
#include "cmd/exitcode.h"
#include "cmd/metrics_json.h"
#include "cmd/plots.h"
#include "cmd/train_args.h"
#include "cmd/verbs.h"
#include "learn/data/keep_names.h"
#include "learn/io/progress.h"
#include "learn/train/train.h"
#include "learn/tune/crossval.h"

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
    "Trains a model, by default all in this process. Started by 'paramo run -s S -w W -- paramo\n"
    "train ...', or with DMLC_ROLE and the scheduler's address in the environment, it is one node of a\n"
    "cluster; all nodes get the same options. Workers take the data part by part from the scheduler.\n";

static const char more[] =
    "Gradients are summed over a batch's rows, so --alpha is per row; a larger --batch trains faster, and "
    "the model is slightly worse. Rows that are learned at the\n"
    "same time lack each other's updates, so batches are smaller with more workers.\n"
    "\n"
    "A tenth of the rows, chosen by their place in the files, is held out: no worker learns them, and\n"
    "the model is measured on them after each epoch. The best epoch's model is saved. Training ends\n"
    "after two epochs without a better one, at the latest after 20. If even the best is no better than\n"
    "guessing the mean rate, it is saved, a warning says so, and the exit code is 5 (--any-quality: 0).\n"
    "Few rows (some thousands) are instead cross-validated. That gives the number of epochs\n"
    "for which all of them are then learned, if no option gives it.\n"
    "Progress and summary show the rows, log-loss and bytes of one epoch. Batches are cut within parts\n"
    "of 1 MiB of text. Each batch is scored before it is learned: that is the log-loss shown while\n"
    "training.\n"
    "\n"
    "With one worker (the default) every run gives the same model to the last bit, in one process or on a\n"
    "cluster with any number of servers. Results of several workers differ a little from run to run.\n"
    "Workers do not wait for each other unless --consistency says so.\n"
    "\n"
    "FM (Rendle, ICDM 2010) scores with w and factors v; a feature whose w is 0 has no factors. In FFM\n"
    "(Juan et al., RecSys 2016) a feature has factors for each field, in FwFM (Pan et al., WWW 2018) a\n"
    "pair of fields has a weight. MVM (Cao et al., WSDM 2016) multiplies the sums of all fields, and MF\n"
    "(Koren et al., 2009) the factors of user and item, for ratings. All four need fields, which libsvm\n"
    "data lacks. Feature id 18446744073709551615 is the bias. docs/TRAINING.md describes the models.\n"
    "\n"
    "A table has a header (CSV, TSV) or keys (JSON lines); --columns 'label=click,cat=site;app,num=age' says "
    "what its columns are, and the model keeps it\n"
    "(docs/DATA.md).\n"
    "\n"
    "Ctrl-C finishes the current batches and saves the model; a second one exits at once.\n"
    "\n" CODE_HELP "\n"
    "  paramo train --model lr --data train.ffm.zst --valid test.ffm.zst \\\n"
    "      --model-out model\n"
    "  paramo train --model fm --dim 8 --data 'day*.gz' --epochs 10 --valid v.gz \\\n"
    "      --patience 2 --model-out m\n"
    "  paramo train --model lr --data clicks.csv --columns 'label=click,cat=*' \\\n"
    "      --model-out m\n"
    "  paramo run -s 2 -w 2 -- \\\n"
    "      paramo train --model lr --data train.ffm --model-out model\n";

static void on_signal(int sig)
{
    static volatile sig_atomic_t before;
    (void)sig;
    int ends = train_interrupt(); /* train.h explains the numbers */
    if (ends == 3)
        return;
    if (before++ > 0 || !ends)
        _exit(CODE_INTERRUPTED); /* the second signal, or there is nothing to end cleanly yet */
    if (ends == 2)
        return;
    static const char text[] = "paramo train: ending after the current batches; again to leave at once\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
}

/* ---- results ---- */

/* Adds a mean loss, as it is shown, under the key of its objective after a prefix: "logloss", "mean_logloss". */
static int put_loss(json_t *j, const char *prefix, const struct objective *o, double loss)
{
    char key[64];
    (void)snprintf(key, sizeof key, "%s%s", prefix, o->ops->key);
    return json_object_set_new(j, key, metrics_number(objective_shown(o, loss)));
}

static json_t *epoch_json(const struct objective *o, size_t number, const struct train_epoch *e,
                          const char *measured)
{
    json_t *j = json_pack("{s:I, s:I}", "epoch", (json_int_t)number, "rows", (json_int_t)e->rows);
    json_t *rest = json_pack("{s:f, s:f, s:I, s:I, s:I, s:I}", "seconds", e->seconds, "rows_per_second",
                             e->seconds > 0 ? (double)e->rows / e->seconds : 0.0, "keys", (json_int_t)e->keys,
                             "nonzero", (json_int_t)e->nonzero, "bytes_pushed", (json_int_t)e->sent,
                             "bytes_pulled", (json_int_t)e->received);
    if (j && rest) {
        if (o->ops->labels == LABEL_BINARY)
            (void)json_object_set_new(j, "positives", json_integer((json_int_t)e->positives));
        else if (!o->ops->many)
            (void)json_object_set_new(j, "mean_label", metrics_number(e->mean_label));
        (void)put_loss(j, "", o, e->loss);
        if (o->ops->spread)
            (void)put_loss(j, "mean_", o, e->guess_loss);
        (void)json_object_update(j, rest);
        if (e->objective > 0)
            darlin_args_report(j, e);
        if (e->has_valid)
            (void)json_object_set_new(j, measured, metrics_json(o, &e->valid));
    }
    json_decref(rest);
    return j;
}

/* Adds "factor_alpha" for the prefix "factor-". */
static void put_alpha(json_t *j, const char *prefix, double alpha)
{
    char key[48];
    (void)snprintf(key, sizeof key, "%salpha", prefix);
    for (char *c = key; *c != '\0'; c++)
        *c = *c == '-' ? '_' : *c;
    (void)json_object_set_new(j, key, json_real(alpha));
}

static json_t *filters_json(const struct train_result *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->filters; i++) {
        const paramo_filter_counter *f = &r->filter[i].of;
        json_t *j =
            json_pack("{s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:f}", "filter", r->filter[i].name,
                      "direction", f->direction == PARAMO_FILTER_PUSH ? "push" : "pull", "lossy", f->lossy,
                      "messages", (json_int_t)f->messages, "skipped", (json_int_t)f->skipped, "received",
                      (json_int_t)f->received, "bytes_before", (json_int_t)f->bytes_before, "bytes_after",
                      (json_int_t)f->bytes_after, "seconds", (double)f->time_ns / 1e9);
        (void)json_array_append_new(list, j);
    }
    return list;
}

/* The rank of the worker for which others waited longest; -1: none waited. */
static int most_awaited(const double *pace)
{
    int most = -1;
    for (int i = 0; i < PACE_WORKERS; i++)
        if (pace[PACE_AWAITED + i] > (most < 0 ? 0 : pace[PACE_AWAITED + most]))
            most = i;
    return most;
}

static json_t *calibration_json(const struct train_result *r)
{
    json_t *j = json_pack("{s:s, s:f, s:f}", "method", calibration_name(r->calibration.kind), "before",
                          r->uncalibrated_loss, "after", r->calibrated_loss);
    if (j && r->calibration.kind == CALIBRATION_PLATT)
        (void)json_object_update_new(j,
                                     json_pack("{s:f, s:f}", "a", r->calibration.a, "b", r->calibration.b));
    else if (j)
        (void)json_object_set_new(j, "knots", json_integer(r->calibration.knots));
    return j;
}

static void print_calibration(const struct train_result *r)
{
    const struct calibration *c = &r->calibration;
    if (c->kind == CALIBRATION_NONE) {
        (void)printf("not calibrated: no rows with both labels were measured\n");
        return;
    }
    (void)printf("calibrated (%s): log-loss of the rows that measure %.5f -> %.5f", calibration_name(c->kind),
                 r->uncalibrated_loss, r->calibrated_loss);
    if (c->kind == CALIBRATION_PLATT)
        (void)printf("; margin x %.4g %c %.4g\n", c->a, c->b < 0 ? '-' : '+', c->b < 0 ? -c->b : c->b);
    else
        (void)printf("; %u steps\n", c->knots);
}

/* The pulls of each table by the age of their values, in clocks. */
static json_t *ages_json(const struct train_options *o, const double *pace)
{
    json_t *tables = json_object();
    for (size_t t = 0; t < o->model.ops->tables && t < PACE_TABLES; t++) {
        json_t *ages = json_array();
        for (int i = 0; i < PARAMO_CLOCK_AGES; i++)
            (void)json_array_append_new(
                ages, json_integer((json_int_t)pace[PACE_AGES + t * PARAMO_CLOCK_AGES + (size_t)i]));
        (void)json_object_set_new(tables, o->model.ops->table[t].name, ages);
    }
    return tables;
}

static json_t *pace_json(const struct options *s, const struct train_options *o, const double *pace)
{
    json_t *awaited = json_array(), *stale = json_array();
    for (int i = 0; i < PACE_WORKERS; i++)
        if (pace[PACE_AWAITED + i] > 0)
            (void)json_array_append_new(
                awaited, json_pack("{s:i, s:f}", "worker", i, "seconds", pace[PACE_AWAITED + i]));
    for (int i = 0; i < PACE_STALENESS; i++)
        (void)json_array_append_new(stale, json_integer((json_int_t)pace[PACE_STALE + i]));
    return json_pack("{s:s, s:I, s:f, s:o, s:o, s:o}", "model", option_text(s, OPT_CONSISTENCY), "waits",
                     (json_int_t)pace[PACE_WAITS], "wait_seconds", pace[PACE_SECONDS], "awaited", awaited,
                     "staleness", stale, "table_staleness", ages_json(o, pace));
}

static json_t *admission_json(const struct options *s, const struct admission_rule *rule)
{
    json_t *j = json_pack("{s:s}", "rule", option_text(s, OPT_ADMIT));
    if (j && rule->kind == ADMIT_COUNT)
        (void)json_object_set_new(j, "memory_mb", json_integer((json_int_t)(rule->bytes >> 20)));
    if (j && rule->most > 0)
        (void)json_object_set_new(j, "max_features", json_integer((json_int_t)rule->most));
    return j;
}

static int print_json(const struct options *s, const struct train_options *o, const struct train_result *r)
{
    const char *measured = o->measured ? "cross_validated" : r->hold_out > 0 ? "held_out" : "valid";
    json_t *epochs = json_array();
    for (size_t i = r->first_epoch; i < r->epochs; i++)
        if (r->epoch[i].rows > 0)
            (void)json_array_append_new(epochs, epoch_json(&r->objective, i + 1, &r->epoch[i], measured));
    json_t *j = json_pack(
        "{s:s, s:s, s:s, s:i, s:i, s:I, s:i, s:b, s:i, s:I, s:s?, s:I, s:f, s:b, s:b, s:b, s:I, s:o}",
        "model", o->model.ops->name, "objective", o->model.objective.ops->name, "vectors", paramo_cpu(),
        "servers", (int)r->num_servers, "workers", (int)r->num_workers, "batch", (json_int_t)r->batch,
        "hold_out", (int)r->hold_out, "sorted_labels", r->sorted, "dead_workers", (int)r->dead_workers,
        "parts_dealt_again", (json_int_t)r->dealt_again, "warning", r->warning[0] != '\0' ? r->warning : NULL,
        "rows", (json_int_t)r->rows, "seconds", r->seconds, "interrupted", r->interrupted, "stopped_early",
        r->stopped_early, "saved", r->saved, "bad_lines", (json_int_t)r->read.bad_lines, "epochs", epochs);
    if (j && o->reader.disk_cache)
        (void)json_object_set_new(
            j, "cache",
            json_pack("{s:I, s:I, s:I, s:s}", "parts_parsed", (json_int_t)r->read.parts_parsed, "parts_read",
                      (json_int_t)r->read.parts_kept, "bytes", (json_int_t)r->read.disk_cache_bytes, "note",
                      r->read.disk_cache_note));
    if (j && o->measured)
        (void)json_object_set_new(j, "folds", json_integer((json_int_t)o->folds));
    if (j && option_text(s, OPT_MODEL_OUT) != NULL)
        (void)json_object_set_new(j, "model_out", json_string(option_text(s, OPT_MODEL_OUT)));
    for (size_t t = 1; j && t < o->model.ops->tables; t++)
        put_alpha(j, o->model.ops->table[t].prefix, r->alpha[t]);
    if (j && o->darlin.on)
        darlin_args_settings(j, o, r);
    if (j && r->best_epoch > 0)
        (void)json_object_set_new(j, "best_epoch", json_integer((json_int_t)r->best_epoch));
    if (j && rate_schedule_varies(&o->schedule))
        (void)json_object_set_new(j, "schedule",
                                  json_pack("{s:s, s:f, s:b}", "kind", option_text(s, OPT_SCHEDULE), "warmup",
                                            o->schedule.warmup, "within_epochs", !r->by_epoch));
    if (j && o->admission.kind != ADMIT_ALL)
        (void)json_object_set_new(j, "admit", admission_json(s, &o->admission));
    if (j && o->expire > 0)
        (void)json_object_set_new(j, "expire", json_integer((json_int_t)o->expire));
    if (j && o->model.factor_after > 0)
        (void)json_object_set_new(j, "factor_after", json_integer((json_int_t)o->model.factor_after));
    if (j && r->filters > 0)
        (void)json_object_set_new(j, "filters", filters_json(r));
    if (j && o->bound != PACE_FREE)
        (void)json_object_set_new(j, "consistency", pace_json(s, o, r->pace));
    if (j && r->calibration.kind != CALIBRATION_NONE)
        (void)json_object_set_new(j, "calibration", calibration_json(r));
    if (j && r->base_loss > 0)
        (void)put_loss(j, "base_", &r->objective, r->base_loss);
    int bad = !j || json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0;
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

static void print_filter(const struct filter_sum *sum)
{
    const paramo_filter_counter *f = &sum->of;
    char a[16], b[16], c[16];
    (void)printf("filter %s of %s: %s became %s in %s; %" PRIu64 " messages, %" PRIu64 " left as they were\n",
                 sum->name, f->direction == PARAMO_FILTER_PUSH ? "pushes" : "pulls",
                 progress_bytes(a, sizeof a, (double)f->bytes_before),
                 progress_bytes(b, sizeof b, (double)f->bytes_after),
                 seconds_text(c, sizeof c, (double)f->time_ns / 1e9), f->messages + f->received, f->skipped);
}

static void print_pace(const struct options *s, const double *pace)
{
    char a[16];
    double batches = 0, clocks = 0;
    const int most = most_awaited(pace);
    for (int i = 0; i < PACE_STALENESS; i++) {
        batches += pace[PACE_STALE + i];
        clocks += i * pace[PACE_STALE + i];
    }
    (void)printf("consistency %s: %.0f waits of %s in all", option_text(s, OPT_CONSISTENCY), pace[PACE_WAITS],
                 seconds_text(a, sizeof a, pace[PACE_SECONDS]));
    if (most >= 0)
        (void)printf(", the longest for worker %d", most);
    (void)printf("; batches %.2f clocks ahead of the last worker on average\n",
                 batches > 0 ? clocks / batches : 0.0);
}

static int print_summary(const struct options *s, const struct train_options *options,
                         const struct train_result *r)
{
    char a[16], b[16], c[16], d[16], rate[16];
    const struct objective *o = &r->objective;
    if (options->darlin.on) {
        darlin_args_table(r);
    } else if (r->epochs > r->first_epoch) {
        const int valid = r->epoch[r->first_epoch].has_valid;
        const int ranks =
            valid && r->hold_out == 0 && !options->measured && (o->ops->metrics & METRIC_BIT(METRIC_AUC));
        (void)printf("epoch       rows  %8s%s    weights     pushed     pulled     time     rows/s\n",
                     o->ops->loss,
                     !valid              ? ""
                     : options->measured ? "  cross-v. "
                     : r->hold_out > 0   ? "  held-out "
                     : ranks             ? "   valid    AUC    "
                                         : "    valid  ");
        for (size_t i = r->first_epoch; i < r->epochs; i++) {
            const struct train_epoch *e = &r->epoch[i];
            if (e->rows == 0)
                continue;
            char scores[48] = "", mark = i + 1 == r->best_epoch && r->epochs > r->first_epoch + 1 ? '*' : ' ';
            const double shown = objective_shown(o, e->valid.loss);
            if (ranks)
                (void)snprintf(scores, sizeof scores, "  %.5f %.5f%c", shown, e->valid.value[METRIC_AUC],
                               mark);
            else if (valid)
                (void)snprintf(scores, sizeof scores, "  %.5f%c ", shown, mark);
            (void)printf(
                "%5zu %10" PRIu64 "   %.5f%s %10s %10s %10s %8s %10s\n", i + 1, e->rows,
                objective_shown(o, e->loss), scores, progress_count(a, sizeof a, (double)e->nonzero),
                progress_bytes(b, sizeof b, e->sent), progress_bytes(c, sizeof c, e->received),
                seconds_text(d, sizeof d, e->seconds),
                progress_count(rate, sizeof rate, e->seconds > 0 ? (double)e->rows / e->seconds : 0));
        }
    }
    (void)printf("%s%s rows by %u worker%s and %u server%s in %s", r->interrupted ? "interrupted: " : "",
                 progress_count(a, sizeof a, (double)r->rows), r->num_workers, r->num_workers == 1 ? "" : "s",
                 r->num_servers, r->num_servers == 1 ? "" : "s", seconds_text(b, sizeof b, r->seconds));
    if (r->stopped_early)
        (void)printf("; stopped early");
    if (options->darlin.on)
        (void)printf(r->converged ? "; converged in %zu passes" : "; not converged in %zu passes", r->epochs);
    else if (r->best_epoch > 0 && r->epochs > 1)
        (void)printf("; epoch %zu was the best", r->best_epoch);
    if (r->saved)
        (void)printf("; model saved to %s\n", option_text(s, OPT_MODEL_OUT));
    else
        (void)printf(options->model_out ? "\n" : "; model not saved (no --model-out)\n");
    if (options->calibrate != CALIBRATION_NONE)
        print_calibration(r);
    if (options->bound != PACE_FREE)
        print_pace(s, r->pace);
    for (size_t i = 0; i < r->filters; i++)
        print_filter(&r->filter[i]);
    if (r->dead_workers > 0 || r->dealt_again > 0)
        (void)printf("%u worker%s died; %" PRIu64 " part%s of the data begun and not finished, dealt again\n",
                     r->dead_workers, r->dead_workers == 1 ? "" : "s", r->dealt_again,
                     r->dealt_again == 1 ? "" : "s");
    /* if both streams are a terminal, it shows the warning already */
    if (r->warning[0] != '\0' && !(isatty(STDOUT_FILENO) && isatty(STDERR_FILENO)))
        (void)printf("warning: %s\n", r->warning);
    if (fflush(stdout) != 0 || ferror(stdout))
        return code_fail("train", PARAMO_E_IO, "standard output cannot be written");
    return CODE_DONE;
}

/* Draws the losses for --plot, if there is an epoch. Returns the exit code. */
static int plot(const struct options *s, const struct train_options *o, const struct train_result *r)
{
    const char *path = option_text(s, OPT_PLOT);
    if (!path || r->epochs == r->first_epoch)
        return CODE_DONE;
    paramo_err err = plots_train(path, o->model.ops->name, o->data[0], r);
    return err == PARAMO_OK ? CODE_DONE : code_fail("train", err, paramo_last_error());
}

/* Can the file of --plot be written? Returns -1, or the exit code. */
static int check_plot(const struct options *s)
{
    paramo_err err = data_args_check_plot(s);
    return err == PARAMO_OK ? -1 : code_fail("train", err, paramo_last_error());
}

/* For --keep-names the data must have names, and must be files that can be read twice. Returns -1, or the exit code. */
static int check_names(const struct options *s, const struct train_options *o)
{
    const struct option_list *files = option_list(s, OPT_DATA);
    if (!option_flag(s, OPT_KEEP_NAMES))
        return -1;
    if (!option_text(s, OPT_MODEL_OUT))
        return options_wrong(s, "--keep-names needs --model-out");
    for (size_t i = 0; i < files->n; i++)
        if (strcmp(files->item[i], "-") == 0)
            return options_wrong(s, "--keep-names reads the data twice, and standard input can be read once");
    if (keep_names_check(&o->reader, o->data, o->data_n) != PARAMO_OK)
        return options_wrong(s, "--keep-names: %s", paramo_last_error());
    return -1;
}

/* Saves the names of the features of the saved model. Returns the exit code. */
static int save_names(const struct train_options *o)
{
    struct reader_options reader = o->reader;
    size_t n = 0;
    reader.hash_bits = o->model.hash_bits;
    reader.label = objective_label_rule(&o->model.objective);
    paramo_err err = keep_names(&reader, o->data, o->data_n, o->model_out, &n);
    if (err != PARAMO_OK)
        return code_fail("train", err, paramo_last_error());
    if (n == 0)
        (void)fprintf(stderr, "paramo train: no names are kept: the rows have no features\n");
    return CODE_DONE;
}

/* Sets the variables of the options that the scheduler's node reads. */
static void export_checkpoints(const struct options *s)
{
    static const enum option_id settings[] = {
        OPT_CHECKPOINT_DIR,  OPT_CHECKPOINT_EVERY, OPT_CHECKPOINT_FULL_EVERY,
        OPT_CHECKPOINT_KEEP, OPT_RESTORE,          OPT_PLUGIN};
    options_export(s, settings, sizeof settings / sizeof *settings);
}

/* Puts all chains into one environment variable, which workers read. Returns -1 or the exit code. */
static int export_filters(const struct options *s, struct train_options *o)
{
    const struct option_list *list = option_list(s, OPT_FILTER);
    char text[1024];
    size_t at = 0;
    for (size_t i = 0; i < list->n; i++) {
        int n = snprintf(text + at, sizeof text - at, "%s%s", i ? ";" : "", list->item[i]);
        if (n < 0 || (size_t)n >= sizeof text - at)
            return options_wrong(s, "--filter: the chains are too long");
        at += (size_t)n;
        if (strncmp(list->item[i], "push=", 5) == 0)
            o->push_filter = list->item[i] + 5;
    }
    if (list->n)
        (void)setenv("PARAMO_FILTER", text, 1);
    return -1;
}

/* Settings that a node refuses, such as wrong chains of filters or plugins, are refused before a cross-validation. */
static paramo_err settings_check(const paramo_config *config)
{
    paramo_node *node;
    paramo_err err = paramo_create(config, &node);
    return err == PARAMO_OK ? paramo_stop(node) : err;
}

/* Cross-validates few rows, in a worker or a job in one process, if no option decides how long to train. */
static paramo_err cross_validate(const struct options *s, struct train_options *o, struct crossval *cv)
{
    struct progress progress;
    paramo_config config;
    paramo_config_init(&config);
    config.roles = PARAMO_ROLE_ALL;
    *cv = (struct crossval){0};
    if (!train_args_left_open(s, o) || paramo_config_from_env(&config) != PARAMO_OK ||
        config.roles == PARAMO_ROLE_SCHEDULER || config.roles == PARAMO_ROLE_SERVER)
        return PARAMO_OK;
    paramo_err err = settings_check(&config);
    if (err != PARAMO_OK)
        return err;
    train_prepares(1);
    err = crossval_run(o, cv);
    train_prepares(0);
    if (err == PARAMO_OK && train_interrupted())
        err = paramo_error_set(PARAMO_E_INTERRUPTED, "interrupted: the training has not begun");
    if (err != PARAMO_OK || cv->epochs == 0)
        return err;
    crossval_apply(cv, o);
    progress_init(&progress, o->quiet || config.roles != PARAMO_ROLE_ALL);
    progress_line(
        &progress,
        "few rows (%" PRIu64 "): %u-fold cross-validation finds %s %.5f after %" PRIu64 " epochs, in %.1f s",
        cv->rows, cv->folds, o->model.objective.ops->loss,
        objective_shown(&o->model.objective, cv->epoch[cv->epochs - 1].loss), cv->epochs, cv->seconds);
    return PARAMO_OK;
}

int cmd_train(int argc, char **argv)
{
    struct options s;
    struct train_options options = {0};
    struct train_result result;
    int code = options_parse(&s, VERB_TRAIN, argc, argv, usage, more);
    if (code < 0)
        code = train_args_read(&s, &options);
    if (code < 0 && option_given(&s, OPT_CHECKPOINT_EVERY) && !option_text(&s, OPT_CHECKPOINT_DIR))
        code = options_wrong(&s, "--checkpoint-every needs --checkpoint-dir");
    if (code < 0)
        code = export_filters(&s, &options);
    if (code < 0)
        code = check_names(&s, &options);
    if (code < 0)
        code = check_plot(&s);
    if (code < 0) {
        export_checkpoints(&s);
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
        (void)sigaction(SIGINT, &action, NULL);
        (void)sigaction(SIGTERM, &action, NULL);
        struct crossval cv;
        paramo_err err = cross_validate(&s, &options, &cv);
        if (err == PARAMO_OK)
            err = train_run(&options, &result);
        else
            result = (struct train_result){0};
        code = CODE_DONE;
        if (err == PARAMO_E_INTERRUPTED)
            code = CODE_INTERRUPTED;
        else if (err == PARAMO_E_NUMERIC)
            code = code_fail("train", err,
                             "the model has diverged (its numbers are no longer finite); a lower --alpha or "
                             "--factor-alpha helps");
        else if (err != PARAMO_OK)
            code = train_args_failed(&s, &options, err);
        if (result.leader && (code == CODE_DONE || code == CODE_INTERRUPTED) &&
            (option_flag(&s, OPT_JSON) ? print_json(&s, &options, &result)
                                       : print_summary(&s, &options, &result)) != CODE_DONE)
            code = CODE_DATA;
        if (result.leader && (code == CODE_DONE || code == CODE_INTERRUPTED) &&
            plot(&s, &options, &result) != CODE_DONE)
            code = CODE_DATA;
        if (code == CODE_DONE && result.leader && result.dead_workers > 0 && result.saved)
            (void)fprintf(
                stderr,
                "paramo train: %u worker%s died; the others have learned their parts, and the model is "
                "saved to %s\n",
                result.dead_workers, result.dead_workers == 1 ? "" : "s", options.model_out);
        if (code == CODE_DONE && result.leader && train_nothing_learned(&result) &&
            !option_flag(&s, OPT_ANY_QUALITY))
            code = CODE_QUALITY;
        if (option_flag(&s, OPT_KEEP_NAMES) && result.leader && result.saved &&
            (code == CODE_DONE || code == CODE_QUALITY)) {
            const int kept = save_names(&options);
            code = kept != CODE_DONE ? kept : code;
        }
        data_args_report("train", &result.read);
        train_result_free(&result);
        crossval_free(&cv);
    }
    columns_release(options.model.columns);
    options_free(&s);
    return code;
}
