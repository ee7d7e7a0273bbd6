/*
 * bench checkpoint, bench migrate: what other work of a job costs its pushes. Measures pushes while a checkpoint is
 * taken (`checkpoint`), and while a server joins and another one is drained (`migrate`), beside the same pushes of the
 * undisturbed job, and the slowest push of both, because no push may wait long. A server remembers the rows of key
 * lists that come again, so `checkpoint` also pushes lists of which it remembers none. It also measures the bytes of an
 * incremental checkpoint beside a full one. Tests: test/e2e/bench.sh.
 */
#include "cmd/bench/bench_job.h"
#include "cmd/bench/bench_load.h"
#include "cmd/bench/bench_paths.h"
#include "cmd/bench/bench_raw.h"
#include "cmd/exitcode.h"

#include "paramo/paramo.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BATCH = 10000,
    AGAIN = 64,
    REFILL_ROWS = 1024 /* batches */,
    WINDOW = 4,
    LEAST = 40 /* pushes of a sample */
};
enum { KEYS_MOST = 1000000 /* that take seconds to move, not minutes */ };

static const char bare[] = "the same undisturbed";

struct disturbed {
    struct bench_job job;
    paramo_table *table;
    uint64_t n_keys;
    uint64_t *keys;
    float *ones;
    size_t drawn, at, batches; /* drawn: batches in keys, of which the first `batches` are pushed in turn */
};

/* The lines to which a pair is added. */
struct lines {
    struct bench_line *speed, *slowest;
};

/* The pushes of one sample. */
struct sample {
    size_t pushes;
    double seconds, slowest;
};

static int push_once(struct disturbed *m, struct load_window *w, struct sample *s)
{
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = m->keys + m->at++ % m->batches * BATCH;
    kv.vals = m->ones;
    kv.n = kv.vals_len = BATCH;
    uint64_t start = raw_now_ns();
    int code = load_issue(w, LOAD_PUSH, &kv); /* waits for the push that is WINDOW pushes older */
    double taken = raw_seconds_since(start);
    s->slowest = taken > s->slowest ? taken : s->slowest;
    s->pushes++;
    return code;
}

/* Takes a sample of the undisturbed job, of as many pushes as the other sample of the pair. */
static int undisturbed(struct disturbed *m, size_t pushes, struct sample *s)
{
    struct load_window w = {.worker = m->job.worker, .table = m->table, .size = WINDOW};
    int code = 0;
    *s = (struct sample){0};
    uint64_t start = raw_now_ns();
    while (s->pushes < pushes && code == 0)
        code = push_once(m, &w, s);
    int end = load_drain(&w);
    s->seconds = raw_seconds_since(start);
    return code != 0 ? code : end;
}

/* Takes a sample until the command has ended, of LEAST pushes at least. */
static int during(struct disturbed *m, char *const argv[], struct sample *s)
{
    struct load_window w = {.worker = m->job.worker, .table = m->table, .size = WINDOW};
    pid_t command = 0;
    int ended = 0;
    *s = (struct sample){0};
    uint64_t start = raw_now_ns();
    int code = job_command(&command, argv);
    while (code == 0 && (ended == 0 || s->pushes < LEAST)) {
        code = push_once(m, &w, s);
        if (command != 0 && (ended = job_command_ended(&command)) < 0)
            code = CODE_FAILED;
    }
    int end = load_drain(&w);
    s->seconds = raw_seconds_since(start);
    job_command_stop(&command);
    return code != 0 ? code : end;
}

static int pair(struct disturbed *m, const struct lines *l, char *const argv[])
{
    struct sample with, without;
    int code = during(m, argv, &with);
    if (code == 0)
        code = undisturbed(m, with.pushes, &without);
    if (code != 0)
        return code;
    double keys = 1e-6 * (double)(with.pushes * BATCH);
    line_pair(l->speed, keys / with.seconds, keys / without.seconds);
    line_pair(l->slowest, 1e3 * with.slowest, 1e3 * without.slowest);
    return 0;
}

/* Inserts all keys, and draws the batches. */
static int fill(struct disturbed *m)
{
    struct load_window w = {.worker = m->job.worker, .table = m->table, .size = 1};
    int code = 0;
    for (uint64_t from = 0; from < m->n_keys && code == 0; from += BATCH) {
        paramo_kv kv;
        paramo_kv_init(&kv);
        load_range(from, m->keys, BATCH);
        kv.keys = m->keys;
        kv.vals = m->ones;
        kv.n = kv.vals_len = BATCH;
        code = load_issue(&w, LOAD_PUSH, &kv);
        int end = load_drain(&w);
        code = code != 0 ? code : end;
    }
    uint64_t seed = 1;
    for (size_t i = 0; i < m->drawn; i++)
        load_draw(&seed, m->n_keys, m->keys + i * BATCH, BATCH);
    return code;
}

static struct lines two_lines(const struct disturbed *m, struct bench_report *r, const char *path,
                              unsigned servers, const char *what)
{
    char where[120], name[72];
    struct lines l;
    (void)snprintf(where, sizeof where,
                   "%s, %u server%s, %.3g M keys of one float, batches of %d, %d in flight", job_van(),
                   servers, servers > 1 ? "s" : "", 1e-6 * (double)m->n_keys, (int)BATCH, (int)WINDOW);
    (void)snprintf(name, sizeof name, "push %s", what);
    l.speed = report_line(r, path, "M keys/s", BENCH_HIGHER, bare, where, "%s", name);
    (void)snprintf(name, sizeof name, "slowest push %s", what);
    l.slowest = report_line(r, path, "ms", BENCH_LOWER, bare, where, "%s", name);
    return l;
}

static int begin(struct disturbed *m, const struct bench_settings *s, unsigned servers, size_t drawn)
{
    m->drawn = drawn;
    m->batches = AGAIN;
    m->n_keys = s->keys < KEYS_MOST ? s->keys : KEYS_MOST;
    m->keys = malloc(sizeof *m->keys * drawn * BATCH);
    m->ones = malloc(sizeof *m->ones * BATCH);
    if (!m->keys || !m->ones)
        return code_fail("bench", PARAMO_E_MEMORY, "out of memory for the measurement");
    for (size_t i = 0; i < BATCH; i++)
        m->ones[i] = 1;
    int code = job_start(&m->job, servers, 0);
    if (code != 0)
        return code;
    paramo_table_options o;
    paramo_table_options_init(&o);
    paramo_err err = paramo_table_open(m->job.worker, "disturbed", &o, &m->table);
    if (err != PARAMO_OK)
        return bench_failed(err, "cannot open the table");
    return fill(m);
}

static void end(struct disturbed *m)
{
    paramo_table_close(m->table);
    job_stop(&m->job);
    free(m->ones);
    free(m->keys);
}

/* ---- checkpoints ---- */

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

void bench_remove_folder(const char *dir)
{
    (void)nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Measures a pair, whose checkpoint goes into a folder of its own that is removed afterwards. */
static int one_checkpoint(struct disturbed *m, const struct lines *l)
{
    char dir[] = "/tmp/paramo-bench-XXXXXX", self[] = "paramo", verb[] = "checkpoint", save[] = "save",
         opt_scheduler[] = "--scheduler", opt_dir[] = "--dir";
    char *const argv[] = {self, verb, save, opt_scheduler, m->job.address, opt_dir, dir, NULL};
    if (!mkdtemp(dir))
        return bench_system("a folder for the checkpoint");
    int code = pair(m, l, argv);
    bench_remove_folder(dir);
    return code;
}

static double tree_bytes;

static int add_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)path, (void)ftw;
    tree_bytes += flag == FTW_F ? (double)st->st_size : 0;
    return 0;
}

/* The bytes of all files in the folder. */
static double folder_bytes(const char *dir)
{
    tree_bytes = 0;
    (void)nftw(dir, add_one, 8, FTW_PHYS);
    return tree_bytes;
}

/* Saves a full checkpoint, pushes a batch, and saves an incremental one. */
static int one_increment(struct disturbed *m, struct bench_line *line)
{
    char dir[] = "/tmp/paramo-bench-XXXXXX", self[] = "paramo", verb[] = "checkpoint", save[] = "save",
         opt_changes[] = "--incremental", opt_scheduler[] = "--scheduler", opt_dir[] = "--dir";
    char *const argv[] = {self, verb, save, opt_changes, opt_scheduler, m->job.address, opt_dir, dir, NULL};
    struct sample pushed;
    if (!mkdtemp(dir))
        return bench_system("a folder for the checkpoint");
    int code = job_command_run(argv);
    double full = folder_bytes(dir);
    if (code == 0)
        code = undisturbed(m, 1, &pushed);
    if (code == 0)
        code = job_command_run(argv);
    if (code == 0)
        line_pair(line, 1e-6 * (folder_bytes(dir) - full), 1e-6 * full);
    bench_remove_folder(dir);
    return code;
}

int bench_checkpoint(const struct bench_settings *s, struct bench_report *r)
{
    struct disturbed m = {0};
    char where[80];
    int code = begin(&m, s, 1, REFILL_ROWS);
    struct lines again = two_lines(&m, r, "checkpoint", 1, "while a checkpoint is taken"),
                 refilled = two_lines(&m, r, "checkpoint", 1, "of new lists while one is taken");
    (void)snprintf(where, sizeof where, "%.3g M keys of one float, %d of them pushed in between",
                   1e-6 * (double)m.n_keys, (int)BATCH);
    struct bench_line *line =
        report_line(r, "checkpoint", "MB", BENCH_LOWER, "a full one", where, "incremental checkpoint");
    for (uint64_t i = 0; i < s->pairs && code == 0; i++) {
        m.batches = AGAIN;
        code = one_checkpoint(&m, &again);
        m.batches = REFILL_ROWS;
        if (code == 0)
            code = one_checkpoint(&m, &refilled);
        if (code == 0)
            code = one_increment(&m, line);
    }
    end(&m);
    return code;
}

/* ---- servers that join and go ---- */

/* Two of three servers run. In turn, the third one joins and the first one is drained. */
static int one_migration(struct disturbed *m, const struct lines *l, uint64_t i)
{
    char name[24], self[] = "paramo", verb[] = "drain", opt_scheduler[] = "--scheduler";
    char *const argv[] = {self, verb, name, opt_scheduler, m->job.address, NULL};
    (void)snprintf(name, sizeof name, "server-%u", (unsigned)(i % 3));
    int code = job_add_server(&m->job, (unsigned)((i + 2) % 3));
    return code == 0 ? pair(m, l, argv) : code;
}

int bench_migrate(const struct bench_settings *s, struct bench_report *r)
{
    struct disturbed m = {0};
    int code = begin(&m, s, 2, AGAIN);
    struct lines lines = two_lines(&m, r, "migrate", 2, "while a server joins and one is drained");
    for (uint64_t i = 0; i < s->pairs && code == 0; i++)
        code = one_migration(&m, &lines, i);
    end(&m);
    return code;
}
