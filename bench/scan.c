/* What a scan and a STAT of a large table take, and how long a small push waits beside them. The program is
 * the whole job: bench/scan.sh builds and runs it. */
#include <paramo/paramo.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { BATCH = 1 << 16 };

static void check(paramo_err err)
{
    if (err != PARAMO_OK) {
        fprintf(stderr, "scan: %s\n", paramo_last_error());
        exit(1);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of this process, which is the whole job: a busy machine changes it little. */
static double cpu(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static paramo_node *node;
static atomic_bool ready, over;
static double longest; /* wait of a small push, by the thread beside */

static void push_one(paramo_worker *worker, paramo_table *table)
{
    uint64_t key = 7, ts;
    float value = 1;
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = &key;
    kv.vals = &value;
    kv.n = kv.vals_len = 1;
    check(paramo_push(worker, table, &kv, NULL, &ts));
    check(paramo_wait(worker, ts, 0));
}

static void *beside(void *arg)
{
    paramo_worker *worker;
    paramo_table *table;
    paramo_table_options options;
    (void)arg;
    paramo_table_options_init(&options);
    check(paramo_worker_open(node, 1, &worker));
    check(paramo_table_open(worker, "small", &options, &table));
    push_one(worker, table);
    for (atomic_store(&ready, true); !atomic_load(&over);) {
        double start = now();
        push_one(worker, table);
        double took = now() - start;
        longest = took > longest ? took : longest;
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    paramo_table_close(table);
    paramo_worker_close(worker);
    return NULL;
}

struct seen {
    uint64_t rows, last;
};

static int took(void *arg, const paramo_rows *rows)
{
    struct seen *s = arg;
    for (size_t i = 0; i < rows->n; i++) {
        if (s->rows + i && rows->keys[i] <= s->last)
            exit(2);
        s->last = rows->keys[i];
    }
    s->rows += rows->n;
    return 0;
}

static void scan_alone(paramo_worker *worker, paramo_table *table, const char *what)
{
    struct seen seen = {0};
    double start = now(), used = cpu();
    check(paramo_table_iterate(worker, table, 1, took, &seen));
    double seconds = now() - start;
    used = cpu() - used;
    printf("%-28s %11llu rows  %7.3f s  %6.2f M rows/s  %6.2f M rows/s of processor time, alone\n", what,
           (unsigned long long)seen.rows, seconds, 1e-6 * (double)seen.rows / seconds,
           1e-6 * (double)seen.rows / used);
    fflush(stdout);
}

static void measure(paramo_worker *worker, paramo_table *table, const char *what, int scans)
{
    pthread_t thread;
    struct seen seen = {0};
    paramo_table_stats stats = {.size = sizeof stats};
    longest = 0;
    atomic_store(&ready, false);
    atomic_store(&over, false);
    if (pthread_create(&thread, NULL, beside, NULL))
        exit(1);
    while (!atomic_load(&ready))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    double start = now();
    if (scans)
        check(paramo_table_iterate(worker, table, 1, took, &seen));
    else
        check(paramo_table_stat(worker, table, &stats));
    double seconds = now() - start;
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    printf("%-28s %11llu rows  %7.3f s  %6.2f M rows/s  longest push beside it %8.3f ms\n", what,
           (unsigned long long)(scans ? seen.rows : stats.rows), seconds,
           1e-6 * (double)(scans ? seen.rows : stats.rows) / seconds, 1e3 * longest);
    fflush(stdout);
}

static void one_table(paramo_worker *worker, const char *name, uint64_t rows, uint32_t dim)
{
    paramo_table_options options;
    paramo_table *table;
    paramo_table_options_init(&options);
    options.dim = dim;
    check(paramo_table_open(worker, name, &options, &table));
    uint64_t *keys = malloc(BATCH * sizeof *keys), ts;
    float *vals = calloc((size_t)BATCH * dim, sizeof *vals);
    for (size_t i = 0; i < (size_t)BATCH * dim; i++)
        vals[i] = 1;
    for (uint64_t from = 0; from < rows; from += BATCH) { /* ascending within a batch, scattered over all */
        size_t n = rows - from < BATCH ? (size_t)(rows - from) : BATCH;
        for (size_t i = 0; i < n; i++)
            keys[i] = i * (UINT64_MAX / BATCH) + from * (UINT64_MAX / BATCH / (rows + 1));
        paramo_kv kv;
        paramo_kv_init(&kv);
        kv.keys = keys;
        kv.vals = vals;
        kv.n = n;
        kv.vals_len = n * dim;
        check(paramo_push(worker, table, &kv, NULL, &ts));
        check(paramo_wait(worker, ts, 0));
    }
    char what[64];
    snprintf(what, sizeof what, "scan of rows of %u float%s", dim, dim > 1 ? "s" : "");
    scan_alone(worker, table, what);
    for (int scans = 1; scans >= 0; scans--) {
        snprintf(what, sizeof what, "%s of rows of %u float%s", scans ? "scan" : "STAT", dim,
                 dim > 1 ? "s" : "");
        measure(worker, table, what, scans);
    }
    free(keys);
    free(vals);
    paramo_table_close(table);
}

int main(int argc, char **argv)
{
    uint64_t rows = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
    paramo_config config;
    paramo_config_init(&config);
    config.roles = PARAMO_ROLE_ALL;
    config.num_servers = config.num_workers = 1;
    check(paramo_start(&config, &node));
    paramo_worker *worker;
    check(paramo_worker_open(node, 0, &worker));
    one_table(worker, "one", rows, 1);
    one_table(worker, "eight", rows / 2, 8);
    paramo_worker_close(worker);
    check(paramo_stop(node));
    return 0;
}
