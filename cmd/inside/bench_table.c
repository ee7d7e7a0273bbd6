/*
 * Measures the table in this process, without worker, shard or wire: pushes of new keys, pushes and pulls of known
 * keys, and the longest pause while the table grows, beside a bare prefetched table that has its size from the
 * beginning. Also what a push costs while changes are noted for the next incremental checkpoint, and while a checkpoint
 * copies rows.
 *
 * Times are processor time of this thread, with system calls and page faults: so pauses are those of the table, and not
 * of other processes on the machine. Tests: test/e2e/bench.sh.
 */
#include "cmd/bench/bench_bare.h"
#include "cmd/bench/bench_load.h"
#include "cmd/bench/bench_paths.h"
#include "cmd/exitcode.h"

#include "base/err.h"
#include "env/hugemem.h"
#include "table/table.h"
#include "table/table_snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCH = 10000, BATCHES = 64, BIG_KEYS = 100000000 };

static const char bare[] = "bare prefetched table, sized beforehand";

struct table_bench {
    const struct bench_settings *settings;
    struct bench_report *report;
    uint64_t n_keys;
    struct hugemem memory; /* as a shard's table has it */
    struct table *table;
    struct bare_table bare;
    uint64_t *keys; /* BATCHES batches */
    float *vals;
    char where[96];
};

static double cpu_seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Runs one batch. Returns the seconds that it took, or less than 0 after a failure. */
static double run_table(struct table_bench *b, enum load_op op, const uint64_t *keys)
{
    double start = cpu_seconds();
    paramo_err err = op == LOAD_PUSH ? table_push(b->table, keys, BATCH, b->vals)
                                     : table_pull(b->table, keys, BATCH, b->vals, false);
    return err == PARAMO_OK ? cpu_seconds() - start : -1;
}

static double run_bare(struct table_bench *b, enum load_op op, const uint64_t *keys)
{
    double start = cpu_seconds();
    if (op == LOAD_PUSH)
        bare_add(&b->bare, keys, b->vals, BATCH);
    else
        bare_get(&b->bare, keys, b->vals, BATCH);
    return cpu_seconds() - start;
}

static struct bench_line *line_open(struct table_bench *b, const char *unit, enum bench_better better,
                                    const char *name)
{
    return report_line(b->report, "table", unit, better, bare, b->where, "%s", name);
}

static int measure_insert(struct table_bench *b)
{
    struct bench_line *speed = line_open(b, "M keys/s", BENCH_HIGHER, "new keys");
    struct bench_line *pause = line_open(b, "ms", BENCH_LOWER, "longest push of 10,000 new keys");
    size_t pairs = (size_t)b->settings->pairs;
    uint64_t slice = b->n_keys / BATCH / pairs;
    for (uint64_t pair = 0; pair < pairs; pair++) {
        double sum[2] = {0}, longest[2] = {0};
        for (uint64_t i = 0; i < slice; i++) {
            load_range((pair * slice + i) * BATCH, b->keys, BATCH);
            double taken[2] = {run_table(b, LOAD_PUSH, b->keys), run_bare(b, LOAD_PUSH, b->keys)};
            if (taken[0] < 0)
                return code_fail("bench", PARAMO_E_MEMORY, err_text());
            for (size_t k = 0; k < 2; k++) {
                sum[k] += taken[k];
                longest[k] = taken[k] > longest[k] ? taken[k] : longest[k];
            }
        }
        double keys = 1e-6 * (double)(slice * BATCH);
        line_pair(speed, keys / sum[0], keys / sum[1]);
        line_pair(pause, 1e3 * longest[0], 1e3 * longest[1]);
    }
    return 0;
}

static int measure_known(struct table_bench *b, enum load_op op, const char *name)
{
    struct bench_line *line = line_open(b, "M keys/s", BENCH_HIGHER, name);
    size_t batches = b->settings->quick ? 4 : BATCHES;
    uint64_t inserted = b->n_keys / BATCH / b->settings->pairs * b->settings->pairs * BATCH, seed = 1;
    for (uint64_t pair = 0; pair <= b->settings->pairs; pair++) { /* the first warms up */
        double sum[2] = {0};
        for (size_t i = 0; i < batches; i++)
            load_draw(&seed, inserted, b->keys + i * BATCH, BATCH);
        for (size_t i = 0; i < 2 * batches; i++) {
            const uint64_t *keys = b->keys + i % batches * BATCH;
            double taken = i < batches ? run_table(b, op, keys) : run_bare(b, op, keys);
            if (taken < 0)
                return code_fail("bench", PARAMO_E_MEMORY, err_text());
            sum[i >= batches] += taken;
        }
        double keys = 1e-6 * (double)(batches * BATCH);
        if (pair > 0)
            line_pair(line, keys / sum[0], keys / sum[1]);
    }
    return 0;
}

/* Receives a row of the snapshot. */
static void given(void *arg, uint64_t key, const void *row, uint32_t values)
{
    (void)row, (void)values;
    *(uint64_t *)arg += key;
}

static double push_batches(struct table_bench *b, size_t batches)
{
    double sum = 0, taken = 0;
    for (size_t i = 0; i < batches && taken >= 0; i++)
        sum += taken = run_table(b, LOAD_PUSH, b->keys + i * BATCH);
    return taken < 0 ? -1 : sum;
}

/* Begins a snapshot, pushes batches, and reads the snapshot to its end. Returns the seconds of the pushes, or less than
 * 0 after a failure. */
static double snapshot_with_pushes(struct table_bench *b, int track, size_t batches)
{
    struct table_snapshot *snapshot;
    uint64_t sum = 0;
    bool done = false;
    paramo_err err = table_snapshot_open(b->table, TABLE_SNAPSHOT_ALL, track, given, &sum, &snapshot);
    if (err != PARAMO_OK)
        return -1;
    double taken = push_batches(b, batches);
    while (err == PARAMO_OK && !done)
        err = table_snapshot_step(snapshot, 1 << 20, &done);
    table_snapshot_close(snapshot);
    return err == PARAMO_OK ? taken : -1;
}

static int measure_noted(struct table_bench *b)
{
    static const char plain[] = "the same, not noted";
    size_t batches = b->settings->quick ? 4 : BATCHES;
    struct bench_line *gives = report_line(b->report, "table", "M keys/s", BENCH_HIGHER, plain, b->where,
                                           "push of rows not yet checkpointed"),
                      *notes = report_line(b->report, "table", "M keys/s", BENCH_HIGHER, plain, b->where,
                                           "push, changes noted");
    double keys = 1e-6 * (double)(batches * BATCH);
    for (uint64_t pair = 0; pair < b->settings->pairs; pair++) { /* the batches of measure_known */
        double with_gives = snapshot_with_pushes(b, 1, batches);
        double noted = push_batches(b, batches);
        double ended = snapshot_with_pushes(b, 0, 0);
        double without = push_batches(b, batches);
        if (with_gives < 0 || noted < 0 || ended < 0 || without < 0)
            return code_fail("bench", PARAMO_E_MEMORY, err_text());
        line_pair(gives, keys / with_gives, keys / without);
        line_pair(notes, keys / noted, keys / without);
    }
    return 0;
}

static int run_size(const struct bench_settings *s, struct bench_report *r, uint64_t n_keys)
{
    struct table_bench b = {.settings = s, .report = r, .n_keys = n_keys};
    if (b.n_keys < s->pairs * BATCH)
        b.n_keys = s->pairs * BATCH;
    hugemem_init(&b.memory);
    struct table_alloc alloc = {.alloc = hugemem_alloc, .release = hugemem_release, .ctx = &b.memory};
    paramo_table_options o;
    table_options_default(&o);
    int code = 0;
    paramo_err err = table_create(&o, 1, &alloc, &b.table);
    if (err != PARAMO_OK)
        code = code_fail("bench", err, err_text());
    b.keys = malloc(sizeof *b.keys * BATCHES * BATCH);
    b.vals = calloc(BATCH, sizeof *b.vals);
    if (code == 0 && (!b.keys || !b.vals || bare_open(&b.bare, b.n_keys) != 0))
        code = code_fail("bench", PARAMO_E_MEMORY, "out of memory for the keys of the benchmark");
    (void)snprintf(b.where, sizeof b.where, "in process, %.3g M keys of one float, add, batches of %d",
                   1e-6 * (double)b.n_keys, (int)BATCH);
    if (code == 0)
        code = measure_insert(&b);
    if (code == 0)
        code = measure_known(&b, LOAD_PUSH, "push of known keys");
    if (code == 0)
        code = measure_known(&b, LOAD_PULL, "pull of known keys");
    if (code == 0)
        code = measure_noted(&b);
    bare_close(&b.bare);
    free(b.vals);
    free(b.keys);
    table_destroy(b.table);
    hugemem_fini(&b.memory);
    return code;
}

int bench_table(const struct bench_settings *s, struct bench_report *r)
{
    int code = run_size(s, r, s->keys);
    return code == 0 && s->big ? run_size(s, r, BIG_KEYS) : code;
}
