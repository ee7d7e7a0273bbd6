/*
 * Sketches of a stream: how often each id came (count-min; Cormode and Muthukrishnan, J. Algorithms 2005), and how
 * many different ids there were (HyperLogLog; Flajolet et al., AofA 2007), in memory that does not grow with the
 * stream. Both sketches are tables: counters to which a push adds, and registers of which a push keeps the larger
 * value. A worker collects what its last INTERVAL inserts have changed and pushes that: the sketches of all workers
 * become one on the servers, each insert is counted once even if nodes fail, and no counter lacks more than INTERVAL
 * inserts of a worker.
 *
 *     ./sketch [INSERTS [IDS]]                       a stream of 10 M inserts of 1 M ids by default
 *     paramo run -s 2 -w 2 -- ./sketch 1000000000    worker 0 prints what the sketches say beside what is true
 *
 * The stream is made up, so that the truth is known: one insert in two is of an id that is one of few, more often the
 * smaller it is; the others go through all ids again and again.
 */
#include <math.h>
#include <string.h>
#include <time.h>

#include "example.h"

enum { DEPTH = 4, WIDTH_BITS = 18, COUNTERS = DEPTH << WIDTH_BITS, INTERVAL = 1 << 22, FEW = 16 };
enum { REGISTER_BITS = 14, REGISTERS = 1 << REGISTER_BITS };

static uint64_t inserts = 10000000, ids = 1000000;
static int64_t counter[COUNTERS]; /* since the last push */
static float
    reg[REGISTERS];       /* of all inserts of this worker; floats, as tables with the optimizer "max" have */
static double truth[FEW]; /* how often the few came, by this worker's count */

static size_t place(uint64_t id, unsigned row) /* of an id's counter in a row */
{
    return ((size_t)row << WIDTH_BITS) + (size_t)(mix(id * DEPTH + row) >> (64 - WIDTH_BITS));
}

static void insert(uint64_t id)
{
    uint64_t hash = mix(~id), rest = hash << REGISTER_BITS | 1u << (REGISTER_BITS - 1);
    float rank = (float)(__builtin_clzll(rest) + 1), *at = &reg[hash >> (64 - REGISTER_BITS)];
    *at = *at < rank ? rank : *at;
    for (unsigned row = 0; row < DEPTH; row++)
        counter[place(id, row)]++;
}

/* The k-th insert of the whole stream. */
static uint64_t stream(uint64_t k)
{
    uint64_t bits = mix(k);
    if (k % 2)
        return k / 2 % ids;
    return (uint64_t)__builtin_ctzll(bits | UINT64_C(1) << (FEW - 1)) % ids;
}

static paramo_table *dense_table(paramo_worker *worker, const char *name, paramo_dtype dtype, uint64_t rows,
                                 paramo_optimizer optimizer)
{
    paramo_table *table;
    paramo_table_options options;
    paramo_table_options_init(&options);
    options.kind = PARAMO_TABLE_DENSE;
    options.dtype = dtype;
    options.rows = rows;
    options.optimizer = optimizer;
    check(paramo_table_open(worker, name, &options, &table));
    return table;
}

/* Pushes the counters that are not zero, and clears them. */
static void push_counters(paramo_worker *worker, paramo_table *table, uint64_t *keys, int64_t *vals)
{
    size_t n = 0;
    for (size_t i = 0; i < COUNTERS; i++) {
        keys[n] = i;
        vals[n] = counter[i];
        n += counter[i] != 0;
    }
    push(worker, table, keys, n, vals, n);
    memset(counter, 0, sizeof counter);
}

/* The estimate of HyperLogLog, with the small-range correction (the paper's Figure 3; hashes of 64 bits need no
 * other). */
static double distinct(const float registers[REGISTERS])
{
    double sum = 0, zeros = 0, m = REGISTERS;
    for (size_t i = 0; i < REGISTERS; i++) {
        sum += pow(2, -(double)registers[i]);
        zeros += registers[i] == 0;
    }
    double estimate = 0.7213 / (1 + 1.079 / m) * m * m / sum;
    return estimate <= 2.5 * m && zeros > 0 ? m * log(m / zeros) : estimate;
}

/* What the counters say about an id: the least of its counters, which is never too small. */
static double times(paramo_worker *worker, paramo_table *table, uint64_t id)
{
    uint64_t keys[DEPTH];
    int64_t vals[DEPTH], least = INT64_MAX;
    for (unsigned row = 0; row < DEPTH; row++)
        keys[row] = place(id, row); /* ascending */
    pull(worker, table, keys, DEPTH, vals, DEPTH);
    for (unsigned row = 0; row < DEPTH; row++)
        least = vals[row] < least ? vals[row] : least;
    return (double)least;
}

static int add_up(void *arg, const paramo_rows *rows)
{
    const int64_t *vals = rows->vals;
    for (size_t i = 0; i < rows->n; i++)
        *(double *)arg += (double)vals[i];
    return 0;
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void work(paramo_node *node, paramo_worker *worker)
{
    uint32_t rank = paramo_node_rank(node), workers = paramo_num_workers(node);
    uint64_t first = inserts / workers * rank,
             last = rank + 1 < workers ? first + inserts / workers : inserts;
    paramo_table *counters = dense_table(worker, "counters", PARAMO_I64, COUNTERS, PARAMO_OPT_ADD);
    paramo_table *registers = dense_table(worker, "registers", PARAMO_F32, REGISTERS, PARAMO_OPT_MAX);
    uint64_t *keys = memory(COUNTERS + 1, sizeof *keys), pushes = 0;
    int64_t *vals = memory(COUNTERS + 1, sizeof *vals);
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
    for (uint64_t k = first; k < last; k++) {
        uint64_t id = stream(k);
        insert(id);
        if (id < FEW)
            truth[id]++;
        if ((k - first + 1) % INTERVAL == 0 || k + 1 == last) {
            push_counters(worker, counters, keys, vals);
            pushes++;
            if (rank == 0)
                printf("%.0f M inserts by this worker\n", (double)(k - first + 1) / 1e6);
        }
    }
    for (uint64_t i = 0; i < REGISTERS; i++)
        keys[i] = i;
    push(worker, registers, keys, REGISTERS, reg, REGISTERS);
    double used[3] = {seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu, (double)pushes,
                      seconds(CLOCK_MONOTONIC) - wall};
    sum_over_workers(node, "used", 0, used, 3);
    sum_over_workers(node, "truth", 0, truth, FEW);
    if (rank != 0)
        return;

    double counted = 0, all = (double)inserts, different = (double)(ids < inserts / 2 ? ids : inserts / 2);
    check(paramo_table_iterate(worker, counters, 0, add_up, &counted));
    pull(worker, registers, keys, REGISTERS, reg, REGISTERS);
    printf("%.1f M inserts for each second of a worker's processor time, %.1f M for each second of a worker "
           "(OSDI'14: "
           "1.35 M for each core)\n",
           all / used[0] / 1e6, all / used[2] / 1e6);
    printf("%d counters and %d registers; %.0f pushes; counters' sum %.0f, %d times the inserts: %s\n",
           COUNTERS, REGISTERS, used[1], counted, DEPTH, counted == DEPTH * all ? "yes" : "no");
    double estimate = distinct(reg), worst = 0;
    printf("different ids: %.0f, by the sketch %.0f (%+.2f %%; standard error 0.81 %%)\n", different,
           estimate, 100 * (estimate / different - 1));
    for (uint64_t id = 0; id < FEW && id < ids; id++) {
        double says = times(worker, counters, id);
        worst = fmax(worst, says < truth[id] ? INFINITY : says - truth[id]);
        if (id < 4)
            printf("id %d: %.0f times, by the sketch %.0f\n", (int)id, truth[id], says);
    }
    printf("largest error of %d ids: %.0f; bound %.0f (e / width of all inserts)\n", FEW, worst,
           2.718282 * all / (1 << WIDTH_BITS));
}

int main(int argc, char **argv)
{
    if (argc > 1)
        inserts = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        ids = strtoull(argv[2], NULL, 10);
    if (argc > 3 || inserts < 1 || ids < 1)
        fail("usage: sketch [INSERTS [IDS]]");
    return run(work);
}
