/* Processor time of the steps in which a shard removes many rows, frees what they took, and takes over the
 * records of many senders. bench/steps.sh builds and runs it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "env/hugemem.h"
#include "server/replication/chain_impl.h"
#include "server/replication/follow.h"
#include "table/table.h"
#include "table/table_snapshot.h"
#include "wire/report.h"

enum { BATCH = 1 << 16, STEP = 4096 }; /* STEP: as in server/shard/clearing.c */

static double cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static struct {
    double sum, longest;
    unsigned long steps;
} took;

static void step_took(double ms)
{
    took.sum += ms;
    took.longest = ms > took.longest ? ms : took.longest;
    took.steps++;
}

static void report(const char *what, unsigned long long n, unsigned dim)
{
    printf("%-34s %10llu of %2u floats: longest step %7.3f ms, %7lu steps, %9.1f ms in all\n", what, n, dim,
           took.longest, took.steps, took.sum);
    fflush(stdout);
    memset(&took, 0, sizeof took);
}

static void fill(struct table *t, uint64_t rows, uint32_t dim)
{
    uint64_t *keys = malloc(BATCH * sizeof *keys);
    float *vals = calloc((size_t)BATCH * dim, sizeof *vals);
    for (uint64_t from = 0; from < rows; from += BATCH) {
        size_t n = rows - from < BATCH ? (size_t)(rows - from) : BATCH;
        for (size_t i = 0; i < n; i++)
            keys[i] = from + i;
        if (table_push(t, keys, n, vals))
            exit(1);
    }
    free(keys);
    free(vals);
}

struct portion {
    size_t n;
    uint64_t keys[4 * STEP];
};

static void half(void *ctx, uint64_t key)
{
    struct portion *p = ctx;
    if (mix64(key) % 2 && p->n < sizeof p->keys / sizeof *p->keys)
        p->keys[p->n++] = key;
}

static void clear(uint64_t rows, uint32_t dim)
{
    struct hugemem memory;
    struct table *t;
    paramo_table_options options = {
        .size = sizeof options, .kind = PARAMO_TABLE_SPARSE, .dim = dim, .optimizer = PARAMO_OPT_ADD};
    hugemem_init(&memory);
    struct table_alloc alloc = {.alloc = hugemem_alloc, .release = hugemem_release, .ctx = &memory};
    if (table_create(&options, 1, &alloc, &t))
        exit(1);
    fill(t, rows, dim);
    static struct portion p;
    uint64_t cursor = 0;
    for (bool more = true; more;) {
        double start = cpu();
        p.n = 0;
        more = table_sweep(t, &cursor, STEP, half, &p);
        if (table_delete(t, p.keys, p.n, NULL))
            exit(1);
        step_took(cpu() - start);
    }
    report("half of the rows are removed", rows, dim);
    fill(t, rows, dim);
    double start = cpu();
    table_clear(t);
    step_took(cpu() - start);
    report("all are cleared", rows, dim);
    for (bool more = true; more;) {
        start = cpu();
        more = table_clear_step(t);
        step_took(cpu() - start);
    }
    report("their memory is freed", rows, dim);
    for (bool more = true; more;) {
        start = cpu();
        more = hugemem_trim(&memory, 8);
        step_took(cpu() - start);
    }
    report("and given to the system", rows, dim);
    table_destroy(t);
    hugemem_fini(&memory);
}

static void no_row(void *arg, uint64_t key, const void *row, uint32_t values)
{
    (void)arg, (void)key, (void)row, (void)values;
}

/* A checkpoint that is given up: what was noted of changes is forgotten. */
static void given_up(uint64_t rows, uint32_t dim)
{
    struct hugemem memory;
    struct table *t;
    struct table_snapshot *cut;
    paramo_table_options options = {
        .size = sizeof options, .kind = PARAMO_TABLE_SPARSE, .dim = dim, .optimizer = PARAMO_OPT_ADD};
    hugemem_init(&memory);
    struct table_alloc alloc = {.alloc = hugemem_alloc, .release = hugemem_release, .ctx = &memory};
    if (table_create(&options, 1, &alloc, &t))
        exit(1);
    fill(t, rows, dim);
    if (table_snapshot_open(t, TABLE_SNAPSHOT_ALL, true, no_row, NULL, &cut))
        exit(1);
    fill(t, rows, dim);
    double start = cpu();
    table_snapshot_close(cut);
    step_took(cpu() - start);
    report("a checkpoint is given up", rows, dim);
    start = cpu();
    table_destroy(t);
    step_took(cpu() - start);
    report("the table ends", rows, dim);
    hugemem_fini(&memory);
}

/* A follower takes an owner's place, and gives it up again. */
static void senders(unsigned n)
{
    struct shard *s = calloc(1, sizeof *s);
    struct chain *c = calloc(1, sizeof *c);
    s->chain = c;
    c->shard = s;
    struct chain_origin *o = follow_origin(c, (struct chain_name){.node = 8});
    uint64_t partitions[CHAIN_WORDS];
    memset(partitions, 0xff, sizeof partitions);
    for (unsigned a = 0; a < RING_PARTITIONS; a++, o->partitions++)
        c->origin_of[a] = o;
    for (unsigned i = 0; i < n; i++) {
        struct chain_sender *x = follow_sender(o, PARAMO_ID_WORKER(i), 0, 0, i + 1);
        struct applied_note *applied_note = x ? applied_note_make(3, partitions) : NULL;
        if (!applied_note)
            exit(1);
        applied_window_attach(&x->applied_window, applied_note);
    }
    double start = cpu();
    if (follow_reassign(c, o, NULL, partitions))
        exit(1);
    step_took(cpu() - start);
    printf("promotion with %u senders: %.1f ms\n", n, took.longest);
    memset(&took, 0, sizeof took);
    struct shard_report report;
    start = cpu();
    shard_get_report(s, &report);
    printf("a report with %u senders: %.1f ms\n", n, cpu() - start);
    memset(c->mine, 0xff, sizeof c->mine);
    struct chain_origin *to = follow_origin(c, (struct chain_name){.node = 10});
    start = cpu();
    if (follow_reassign(c, NULL, to, partitions))
        exit(1);
    printf("demotion with %u senders: %.1f ms\n", n, cpu() - start);
    start = cpu();
    for (unsigned i = 0; i < n; i++)
        if (!follow_sender(to, PARAMO_ID_WORKER(i * 7919 % n), 0, 0, i * 7919 % n + 1))
            exit(1);
    printf("a change of each of %u senders: %.1f us each\n", n, 1e3 * (cpu() - start) / n);
}

int main(int argc, char **argv)
{
    uint64_t most = argc > 1 ? strtoull(argv[1], NULL, 10) : 50000000;
    senders(1000);
    senders(10000);
    senders(SHARD_SENDERS_MAX);
    for (uint64_t rows = most / 5; rows <= most; rows += most - most / 5)
        clear(rows, 1);
    clear(most / 5, 16);
    for (uint64_t rows = most / 5; rows <= most; rows += most - most / 5)
        given_up(rows, 1);
    given_up(most / 5, 16);
    return 0;
}
