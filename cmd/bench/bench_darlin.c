/*
 * bench darlin: time and bytes until the objective of L1 logistic regression is 1 % above the least, for several
 * delays, beside FTRL with the same penalty.
 *
 * A job of two servers and two workers, as processes, trains on a drawn log. The penalty of FTRL's --l1 is one for all
 * epochs together, so E epochs get E times the L1 of the objective; E is the first of 1, 2, 4, 8 and 16 whose model
 * reaches the objective. The time includes reading the data. Tests: test/e2e/bench.sh.
 */
#include "cmd/bench/bench_job.h"
#include "cmd/bench/bench_paths.h"
#include "learn/data/reader.h"
#include "learn/data/synth.h"
#include "learn/eval/score.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define L1       4.0
#define TARGET   1.01 /* times the least objective */
#define EPOCHS   16
#define SETTINGS "--tolerance 1e-4"

static const unsigned delays[] = {0, 1, 2, 4, 8, 16};
enum { DELAYS = sizeof delays / sizeof *delays };

struct race {
    char dir[32], data[48], model[48], self[PATH_MAX];
    const char *van;
    double least;
    unsigned epochs; /* of FTRL */
    int arrives;     /* FTRL reaches the objective */
};

/* What one run needed to reach the objective. */
struct sample {
    double seconds, megabytes;
};

/* The document of a job with these options, which the caller releases; NULL: it failed. */
static json_t *train(const struct race *b, const char *args)
{
    char *command;
    json_t *doc = NULL;
    if (asprintf(&command,
                 "'%s' run --van %s -s 2 -w 2 -- '%s' train --model lr --data '%s' --hold-out 0 "
                 "--any-quality --json "
                 "-q %s 2>/dev/null",
                 b->self, b->van, b->self, b->data, args) < 0)
        return NULL;
    FILE *f = popen(command, "re");
    if (f) {
        doc = json_loadf(f, 0, NULL);
        if (pclose(f) != 0) {
            json_decref(doc);
            doc = NULL;
        }
    }
    free(command);
    if (!doc)
        (void)fprintf(stderr, "paramo bench: a job of 'paramo train %s' has failed\n", args);
    return doc;
}

static double real(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

/* Seconds and megabytes of a job up to the end of epoch `upto`, with the time before the first epoch. */
static struct sample cost(const json_t *doc, size_t upto)
{
    const json_t *epochs = json_object_get(doc, "epochs");
    struct sample s = {.seconds = real(doc, "seconds")};
    for (size_t i = 0; i < json_array_size(epochs); i++) {
        const json_t *e = json_array_get(epochs, i);
        if (i < upto)
            s.megabytes += (real(e, "bytes_pushed") + real(e, "bytes_pulled")) / 1e6;
        else
            s.seconds -= real(e, "seconds");
    }
    return s;
}

/* The number of passes until the objective is reached; 0: it is not. */
static size_t passes_to(const json_t *doc, double target)
{
    const json_t *epochs = json_object_get(doc, "epochs");
    for (size_t i = 0; i < json_array_size(epochs); i++)
        if (real(json_array_get(epochs, i), "objective") <= target)
            return i + 1;
    return 0;
}

static int run_darlin(const struct race *b, unsigned delay, struct sample *s)
{
    char args[96];
    (void)snprintf(args, sizeof args, "--solver darlin --l1 %g " SETTINGS " --tau %u", L1, delay);
    json_t *doc = train(b, args);
    const size_t passes = doc ? passes_to(doc, b->least * TARGET) : 0;
    if (doc && passes == 0)
        (void)fprintf(stderr, "paramo bench: darlin with --tau %u has not reached the objective\n", delay);
    if (passes > 0)
        *s = cost(doc, passes);
    json_decref(doc);
    return passes > 0 ? 0 : 1;
}

/* The objective of the model that is saved; below 0: an error, which is reported. */
static double objective_of_model(const struct race *b)
{
    struct model model;
    struct reader_options options;
    struct reader *reader = NULL;
    struct metrics *metrics = NULL;
    struct metrics_result result;
    const char *const files[] = {b->data};
    double penalty = 0;
    reader_options_init(&options);
    paramo_err err = modelio_open(b->model, &model);
    if (err != PARAMO_OK) {
        (void)bench_failed(err, "cannot read FTRL's model");
        return -1;
    }
    err = reader_open(&options, files, 1, &reader);
    if (err == PARAMO_OK)
        err = metrics_new(&model.info.objective, &metrics);
    if (err == PARAMO_OK) {
        struct score_lookup lookup = {.model = &model};
        struct score_source source = score_model(&lookup);
        err = score_reader(&source, reader, score_metrics, metrics);
    }
    if (err == PARAMO_OK)
        err = metrics_finish(metrics, &result);
    for (uint64_t i = 0; i < model.table[0].n; i++)
        penalty += L1 * fabs((double)model.table[0].values[i]);
    metrics_free(metrics);
    reader_close(reader);
    modelio_close(&model);
    if (err != PARAMO_OK)
        (void)bench_failed(err, "cannot score FTRL's model");
    return err == PARAMO_OK ? result.loss * (double)result.rows + penalty : -1;
}

static int run_ftrl(const struct race *b, unsigned epochs, int save, struct sample *s)
{
    char args[160];
    (void)snprintf(args, sizeof args, "--l1 %g --epochs %u%s%s", L1 * epochs, epochs,
                   save ? " --model-out " : "", save ? b->model : "");
    json_t *doc = train(b, args);
    if (!doc)
        return 1;
    *s = cost(doc, epochs);
    json_decref(doc);
    return 0;
}

/* Finds the least objective, and how many epochs FTRL needs. */
static int prepare(struct race *b)
{
    char args[96];
    struct sample ignored;
    (void)snprintf(args, sizeof args, "--solver darlin --l1 %g --tolerance 1e-6 --epochs 1000", L1);
    json_t *doc = train(b, args);
    if (!doc)
        return 1;
    b->least = real(json_object_get(doc, "darlin"), "objective_value");
    json_decref(doc);
    for (b->epochs = 1; !b->arrives; b->epochs *= 2) {
        const int code = run_ftrl(b, b->epochs, 1, &ignored);
        const double objective = code == 0 ? objective_of_model(b) : -1;
        if (objective < 0)
            return 1;
        b->arrives = objective <= b->least * TARGET;
        if (b->arrives || b->epochs == EPOCHS)
            break;
    }
    return 0;
}

static int race(struct race *b, const struct bench_settings *s, const char *settings, struct bench_report *r)
{
    const char *raw = b->arrives ? "FTRL, the same L1" : "FTRL, 16 epochs, not there";
    struct bench_line *seconds[DELAYS], *bytes[DELAYS];
    for (int i = 0; i < DELAYS; i++)
        seconds[i] = report_line(r, "darlin", "s", BENCH_LOWER, raw, settings, "time, tau %u", delays[i]);
    for (int i = 0; i < DELAYS; i++)
        bytes[i] = report_line(r, "darlin", "MB", BENCH_LOWER, raw, settings, "bytes, tau %u", delays[i]);
    for (uint64_t pair = 0; pair < s->pairs; pair++) {
        struct sample ftrl, mine;
        int code = run_ftrl(b, b->epochs, 0, &ftrl);
        for (int i = 0; code == 0 && i < DELAYS; i++) {
            code = run_darlin(b, delays[i], &mine);
            if (code != 0)
                break;
            line_pair(seconds[i], mine.seconds, ftrl.seconds);
            line_pair(bytes[i], mine.megabytes, ftrl.megabytes);
        }
        if (code != 0)
            return code;
    }
    return 0;
}

int bench_darlin(const struct bench_settings *s, struct bench_report *r)
{
    struct race b = {.dir = "/tmp/paramo-bench-XXXXXX", .van = s->van};
    struct synth_options log;
    struct synth_report drawn;
    char settings[160];
    const ssize_t n = readlink("/proc/self/exe", b.self, sizeof b.self - 1);
    if (n < 0 || !mkdtemp(b.dir))
        return bench_system("a folder for the rows");
    (void)snprintf(b.data, sizeof b.data, "%s/rows", b.dir);
    (void)snprintf(b.model, sizeof b.model, "%s/model", b.dir);
    synth_options_init(&log);
    log.rows = s->quick ? 4000 : 100000;
    log.fields = 20;
    log.features = s->quick ? 50 : 500;
    (void)snprintf(
        settings, sizeof settings,
        "%llu rows of %u features, --l1 %g, to 1 %% above the least objective; 2 servers, 2 workers, van %s",
        (unsigned long long)log.rows, log.fields, L1, s->van);
    paramo_err err = synth_write(&log, b.data, NULL, &drawn);
    int code = err == PARAMO_OK ? prepare(&b) : bench_failed(err, "cannot write the rows");
    if (code == 0)
        code = race(&b, s, settings, r);
    bench_remove_folder(b.dir);
    return code;
}
