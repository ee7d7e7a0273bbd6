/* The few lines that every example has. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <paramo/paramo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static inline void check(paramo_err err)
{
    if (err != PARAMO_OK) {
        fprintf(stderr, "%s: %s\n", paramo_err_name(err), paramo_last_error());
        exit(1);
    }
}

/* Alone, a whole cluster in this process; under "paramo run", or with DMLC_ROLE and the rest set, one node. */
static inline paramo_node *start(void)
{
    paramo_config config;
    paramo_node *node;
    setvbuf(stdout, NULL, _IOLBF, 0); /* each line at once, although it goes to a file */
    paramo_config_init(&config);
    config.roles = PARAMO_ROLE_ALL;
    check(paramo_config_from_env(&config));
    check(paramo_start(&config, &node));
    return node;
}

/* A whole program whose workers do the work. Scheduler and servers stay in it until the job is over. */
static inline int run(void (*work)(paramo_node *node, paramo_worker *worker))
{
    paramo_node *node = start();
    if (paramo_node_is(node, PARAMO_ROLE_WORKER)) {
        paramo_worker *worker;
        check(paramo_worker_open(node, 0, &worker));
        work(node, worker);
        paramo_worker_close(worker);
    }
    check(paramo_stop(node));
    return 0;
}

/* Opens a table of any 64-bit keys with dim values each, to which a push adds. The values begin as normal draws with
 * this standard deviation (floats only). */
static inline paramo_table *adding_table(paramo_worker *worker, const char *name, paramo_dtype dtype,
                                         uint32_t dim, float deviation)
{
    paramo_table *table;
    paramo_table_options options;
    paramo_table_options_init(&options);
    options.dtype = dtype;
    options.dim = dim;
    options.init = deviation > 0 ? PARAMO_INIT_NORMAL : PARAMO_INIT_ZERO;
    options.init_b = deviation;
    check(paramo_table_open(worker, name, &options, &table));
    return table;
}

/* n sorted keys and all their values. */
static inline paramo_kv pairs(const uint64_t *keys, size_t n, void *vals, size_t vals_len)
{
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = keys;
    kv.n = n;
    kv.vals = vals;
    kv.vals_len = vals_len;
    return kv;
}

/* Pulls the rows of n sorted keys. */
static inline void pull(paramo_worker *worker, paramo_table *table, const uint64_t *keys, size_t n,
                        void *vals, size_t vals_len)
{
    paramo_kv kv = pairs(keys, n, vals, vals_len);
    uint64_t ts;
    check(paramo_pull(worker, table, &kv, NULL, &ts));
    check(paramo_wait(worker, ts, 0));
}

/* Pushes the rows of n sorted keys, and waits until the servers have them. */
static inline void push(paramo_worker *worker, paramo_table *table, const uint64_t *keys, size_t n,
                        void *vals, size_t vals_len)
{
    paramo_kv kv = pairs(keys, n, vals, vals_len);
    uint64_t ts;
    check(paramo_push(worker, table, &kv, NULL, &ts));
    check(paramo_wait(worker, ts, 0));
}

__attribute__((format(printf, 1, 2), noreturn)) static inline void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

/* Memory for n things of a size, zeroed. */
static inline void *memory(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p)
        fail("no memory for %zu x %zu bytes", n, size);
    return p;
}

/* The same memory with room for n things of a size. */
static inline void *grow(void *p, size_t n, size_t size)
{
    p = reallocarray(p, n, size);
    if (!p)
        fail("no memory for %zu x %zu bytes", n, size);
    return p;
}

/* Adds n numbers of this worker to those that the other workers have for the same name and round, and returns the
 * sums: all workers call it. */
static inline void sum_over_workers(paramo_node *node, const char *name, int round, double *values, size_t n)
{
    char key[64];
    size_t len;
    snprintf(key, sizeof key, "%s %d", name, round);
    check(paramo_kv_add(node, key, values, n));
    check(paramo_barrier(node, PARAMO_GROUP_WORKERS, 0, 0));
    check(paramo_kv_get(node, key, values, n * sizeof *values, &len, 0));
}

/* A number that looks random, from any other: the bits of splitmix64 (Steele, Lea, Flood, OOPSLA 2014). */
static inline uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* The next draw of a generator, in [0, 1). */
static inline double draw(uint64_t *state)
{
    return (double)(mix(*state += UINT64_C(0x9e3779b97f4a7c15)) >> 11) * 0x1p-53;
}

/* A random order (Fisher and Yates). */
static inline void shuffle(size_t *at, size_t n, uint64_t *state)
{
    for (; n > 1; n--) {
        size_t other = (size_t)(draw(state) * (double)n), last = at[n - 1];
        at[n - 1] = at[other];
        at[other] = last;
    }
}

static inline int ascending(const void *x, const void *y)
{
    const uint64_t *l = x, *r = y;
    return (*l > *r) - (*l < *r);
}

static inline void sort_keys(uint64_t *keys, size_t n)
{
    qsort(keys, n, sizeof *keys, ascending);
}

#endif
