/*
 * bench filters: how many bytes of a training job each filter saves, alone and with others, and how it changes log-loss
 * and speed (as in Li et al., OSDI'14, Figure 11 and Table 4). A job of one server and one worker on loopback ('paramo
 * run -- paramo train') trains logistic regression with L1, with each chain, and once without filters. The last epoch
 * is measured: its key lists have come before, because rows are not shuffled. Tests: test/e2e/bench.sh.
 */
#include "cmd/bench/bench_job.h"
#include "cmd/bench/bench_paths.h"
#include "cmd/exitcode.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The figures of the last epoch. */
struct outcome {
    double pushed, pulled; /* bytes a row, with frame headers */
    double rows_per_s;
    double logloss, held_out; /* log-loss of the learned rows, and of the tenth that is held out */
};

static const struct {
    const char *push, *pull;
} chains[] = {
    {"lz4", "lz4"},          {"keycache", "keycache"},
    {"zstd:1", "zstd:1"},    {"fixed:1", "fixed:1"},
    {"fixed:2", "fixed:2"},  {"bf16", "bf16"},
    {"fp16", "fp16"},        {"topk:0.1", "none"},
    {"threshold:1", "none"}, {"significant:1", "none"},
    {"skip:0.5", "none"},    {"fixed:2,keycache,zstd:1", "fixed:2,keycache,zstd:1"},
};
enum { CHAINS = sizeof chains / sizeof *chains, LZ4 = 0, KEYCACHE = 1, ALL = CHAINS - 1 };

struct filters {
    const struct bench_settings *settings;
    char data[200]; /* the file with drawn rows; "": --data has the rows */
    char epochs[8], batch[8], l1[8];
};

/* ---- one run ---- */

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static int outcome_read(FILE *f, struct outcome *o)
{
    json_error_t error;
    rewind(f);
    json_t *doc = json_loadf(f, 0, &error), *epochs = json_object_get(doc, "epochs");
    const json_t *last = json_array_get(epochs, json_array_size(epochs) - 1);
    double rows = number_of(last, "rows");
    *o = (struct outcome){.pushed = number_of(last, "bytes_pushed") / rows,
                          .pulled = number_of(last, "bytes_pulled") / rows,
                          .rows_per_s = number_of(last, "rows_per_second"),
                          .logloss = number_of(last, "logloss"),
                          .held_out = number_of(json_object_get(last, "held_out"), "logloss")};
    json_decref(doc);
    int whole = rows > 0 && o->pushed > 0 && o->pulled > 0 && o->logloss > 0 && o->held_out > 0;
    return whole ? 0
                 : code_fail("bench", PARAMO_E_FORMAT, "a training run printed no complete JSON document");
}

/* push NULL: without filters. */
static int train(const struct filters *m, const char *push, const char *pull, struct outcome *o)
{
    enum { FIXED = 32, DATA_MAX = 64 };
    const char *argv[FIXED + DATA_MAX] = {
        "paramo",       "run",       "-s",      "1",       "-w",     "1",    "--",
        "paramo",       "train",     "--model", "lr",      "--json", "-q",   "--epochs",
        m->epochs,      "--shuffle", "0",       "--batch", m->batch, "--l1", m->l1,
        "--any-quality"};
    char filter[2][80];
    size_t n = 22;
    if (push) {
        (void)snprintf(filter[0], sizeof filter[0], "push=%s", push);
        (void)snprintf(filter[1], sizeof filter[1], "pull=%s", pull);
        for (int i = 0; i < 2; i++) {
            argv[n++] = "--filter";
            argv[n++] = filter[i];
        }
    }
    argv[n++] = "--data";
    if (m->data[0])
        argv[n++] = m->data;
    for (size_t i = 0; i < m->settings->data_count && n < FIXED + DATA_MAX - 1; i++)
        argv[n++] = m->settings->data[i];
    FILE *f = tmpfile();
    if (!f)
        return bench_system("a temporary file");
    int code = job_command_read((char *const *)(uintptr_t)argv, f);
    if (code == 0)
        code = outcome_read(f, o);
    (void)fclose(f);
    return code;
}

/* ---- lines ---- */

enum { PUSHED, PULLED, SPEED, LOGLOSS, HELD_OUT, FIGURES };

static double figure(const struct outcome *o, int which)
{
    const double all[FIGURES] = {o->pushed, o->pulled, o->rows_per_s, o->logloss, o->held_out};
    return all[which];
}

static struct bench_line *add_line(const struct filters *m, struct bench_report *r, size_t chain, int which)
{
    static const char *const what[FIGURES] = {"pushed", "pulled", "rows", "log-loss", "held-out log-loss"};
    static const char *const unit[FIGURES] = {"bytes/row", "bytes/row", "1/s", "", ""};
    char settings[160];
    int drawn = m->data[0] != 0;
    const char *name = drawn ? "drawn click log" : m->settings->data[0], *slash = strrchr(name, '/');
    (void)snprintf(settings, sizeof settings, "%s, lr, --l1 %s --batch %s, epoch %s, 1 server, 1 worker, TCP",
                   slash ? slash + 1 : name, m->l1, m->batch, m->epochs);
    return report_line(r, "filters", unit[which][0] ? unit[which] : "nats",
                       which == SPEED ? BENCH_HIGHER : BENCH_LOWER, "no filters", settings, "%s: %s",
                       chains[chain].push, what[which]);
}

/* How many times fewer bytes there are than without filters. */
static double fewer(const struct bench_line *const line)
{
    return 1 / line_ratio(line);
}

static void judge(struct bench_report *r, struct bench_line *const line[CHAINS][FIGURES])
{
    const struct bench_line *push = line[KEYCACHE][PUSHED], *pull = line[KEYCACHE][PULLED];
    double before = push->raw[0] + pull->raw[0], after = push->value[0] + pull->value[0];
    report_bar(r, "filters", "keycache saves of all bytes, when lists repeat", 1 - after / before, 0.45,
               BENCH_HIGHER);
    report_bar(r, "filters", "lz4 costs of the rows/s", 1 - line_ratio(line[LZ4][SPEED]), 0.1, BENCH_LOWER);
    report_bar(r, "filters", "all together push fewer bytes, times", fewer(line[ALL][PUSHED]), 10,
               BENCH_HIGHER);
    report_bar(r, "filters", "all together pull fewer bytes, times", fewer(line[ALL][PULLED]), 10,
               BENCH_HIGHER);
    report_bar(r, "filters", "all together move the log-loss by a share of",
               fabs(line_ratio(line[ALL][LOGLOSS]) - 1), 1e-4, BENCH_LOWER);
}

static int measure(struct filters *m, struct bench_report *r)
{
    struct bench_line *line[CHAINS][FIGURES];
    int code = 0;
    for (size_t chain = 0; chain < CHAINS; chain++)
        for (int i = 0; i < FIGURES; i++)
            line[chain][i] = add_line(m, r, chain, i);
    for (uint64_t pair = 0; pair < m->settings->pairs; pair++) {
        struct outcome plain, filtered; /* plain comes right before lz4, whose speed is judged against it */
        code = train(m, NULL, NULL, &plain);
        for (size_t chain = 0; chain < CHAINS && code == 0; chain++) {
            code = train(m, chains[chain].push, chains[chain].pull, &filtered);
            for (int i = 0; i < FIGURES && code == 0; i++)
                line_pair(line[chain][i], figure(&filtered, i), figure(&plain, i));
        }
        if (code != 0)
            return code;
    }
    judge(r, line);
    return 0;
}

/* Draws a click log, if --data is not given. */
static int draw(struct filters *m)
{
    const char *dir = getenv("TMPDIR");
    (void)snprintf(m->data, sizeof m->data, "%s/paramo-bench-XXXXXX", dir ? dir : "/tmp");
    int fd = mkstemp(m->data);
    if (fd < 0) {
        m->data[0] = '\0';
        return bench_system("a temporary file");
    }
    (void)close(fd);
    const char *rows = m->settings->quick ? "4000" : "100000";
    const char *argv[] = {"paramo", "data", "synth", "--rows", rows, "--out", m->data, NULL};
    return job_command_run((char *const *)(uintptr_t)argv);
}

int bench_filters(const struct bench_settings *s, struct bench_report *r)
{
    struct filters m = {.settings = s};
    (void)snprintf(m.epochs, sizeof m.epochs, "%s", s->quick ? "2" : "6");
    (void)snprintf(m.batch, sizeof m.batch, "%s", s->quick ? "500" : "4000");
    (void)snprintf(m.l1, sizeof m.l1, "%s", s->quick ? "1" : "30");
    int code = s->data_count ? 0 : draw(&m);
    if (code == 0)
        code = measure(&m, r);
    if (m.data[0])
        (void)unlink(m.data);
    return code;
}
