/*
 * A worker for the end-to-end tests: adds ones to the keys of a table, with a window of pushes in flight,
 * until a file appears, and then checks with the other workers that every sum is exact. Each of its pushes is
 * known from rank and number, so any worker can say what the table must hold.
 *
 *     adder --until FILE [--stalls FILE] [--keys N] [--window N] [--replicas R]
 *
 * --replicas: so many copies of the sums, instead of the job's.
 * Says "N pushes" (standard output) now and then, "waiting" when a push has taken half a second, and at the
 * end one JSON line. --stalls: a line for each push that took longer than STALL_MS: begin and end in
 * nanoseconds since the epoch. Exit code: 0 exact, 1 not, 2 usage, 4 an error of Paramo.
 */
#include <getopt.h>
#include <paramo/paramo.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 16, WINDOW_MAX = 64, WAITING_MS = 500, STALL_MS = 20, EVERY = 1000, RANKS_MAX = 64 };
enum { PUSHES_MAX = (1 << 24) - 1 }; /* a float counts to there */
enum { LATENCIES = 100000 };         /* microseconds, one a slot; the last one is for all beyond */

struct push {
    uint64_t keys[BATCH];
    uint64_t ts, begun;
};

struct adder {
    paramo_worker *worker;
    paramo_table *sums, *counts;
    uint32_t rank, window, replicas;
    uint64_t n_keys, *keys; /* ascending */
    struct push push[WINDOW_MAX];
    uint64_t begun, ended; /* pushes */
    uint64_t slowest;      /* nanoseconds */
    uint32_t *latency;     /* LATENCIES */
    FILE *stalls;
};

static float ones[BATCH];

static void check(paramo_err err)
{
    if (err != PARAMO_OK) {
        fprintf(stderr, "adder: %s\n", paramo_last_error());
        fflush(stdout);
        _exit(4); /* Paramo's threads go on: nothing can look for leaks beside them */
    }
}

static uint64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* The first of the BATCH keys, n_keys / BATCH apart, of a worker's i-th push. */
static uint64_t first_of(const struct adder *a, uint32_t rank, uint64_t i)
{
    return mix(i << 8 | rank) % (a->n_keys / BATCH);
}

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void make_keys(struct adder *a)
{
    a->keys = calloc(a->n_keys, sizeof *a->keys);
    if (!a->keys)
        exit(4);
    for (uint64_t i = 0; i < a->n_keys; i++)
        a->keys[i] = mix(i + 1); /* all different, and everywhere */
    qsort(a->keys, a->n_keys, sizeof *a->keys, compare);
}

/* The paramo_kv of keys at `keys`, with room for their values. */
static paramo_kv kv_of(const uint64_t *keys, float *vals, size_t n)
{
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = keys;
    kv.n = n;
    kv.vals = vals;
    kv.vals_len = n;
    return kv;
}

static void push_begin(struct adder *a)
{
    struct push *p = &a->push[a->begun % a->window];
    uint64_t first = first_of(a, a->rank, a->begun);
    for (uint64_t k = 0; k < BATCH; k++)
        p->keys[k] = a->keys[first + k * (a->n_keys / BATCH)];
    p->begun = now_ns();
    paramo_kv kv = kv_of(p->keys, ones, BATCH);
    check(paramo_push(a->worker, a->sums, &kv, NULL, &p->ts));
    a->begun++;
}

static void push_end(struct adder *a)
{
    const struct push *p = &a->push[a->ended % a->window];
    paramo_err err = paramo_wait(a->worker, p->ts, WAITING_MS);
    if (err == PARAMO_E_TIMEOUT) {
        puts("waiting");
        err = paramo_wait(a->worker, p->ts, 0);
    }
    check(err);
    uint64_t end = now_ns();
    uint64_t taken = end > p->begun ? end - p->begun : 0;
    a->slowest = taken > a->slowest ? taken : a->slowest;
    a->latency[taken / 1000 < LATENCIES ? taken / 1000 : LATENCIES - 1]++;
    if (a->stalls && taken >= STALL_MS * UINT64_C(1000000))
        fprintf(a->stalls, "%llu %llu\n", (unsigned long long)p->begun, (unsigned long long)end);
    a->ended++;
}

static uint64_t percentile(const struct adder *a, double share)
{
    uint64_t seen = 0;
    uint64_t at = 0;
    while (at < LATENCIES - 1 && (double)(seen += a->latency[at]) < share * (double)a->ended)
        at++;
    return at;
}

/* What the table must hold, by the workers' own counts, against what it holds. */
static int compare_sums(struct adder *a, const uint64_t *ranks, const float *counts)
{
    float *want = calloc(a->n_keys, sizeof *want);
    float *got = calloc(a->n_keys, sizeof *got);
    uint64_t wrong = 0;
    uint64_t ts;
    if (!want || !got)
        return 4;
    for (uint32_t r = 0; r < RANKS_MAX; r++) {
        for (uint64_t i = 0; i < (uint64_t)counts[r]; i++) {
            uint64_t first = first_of(a, (uint32_t)ranks[r], i);
            for (uint64_t k = 0; k < BATCH; k++)
                want[first + k * (a->n_keys / BATCH)] += 1;
        }
    }
    paramo_kv kv = kv_of(a->keys, got, a->n_keys);
    check(paramo_pull(a->worker, a->sums, &kv, NULL, &ts));
    check(paramo_wait(a->worker, ts, 0));
    for (uint64_t i = 0; i < a->n_keys; i++) {
        if (got[i] != want[i] && wrong++ < 5)
            fprintf(stderr, "adder: key %llu holds %.0f, and %.0f were pushed\n",
                    (unsigned long long)a->keys[i], (double)got[i], (double)want[i]);
    }
    if (wrong)
        fprintf(stderr, "adder: %llu of %llu sums are wrong\n", (unsigned long long)wrong,
                (unsigned long long)a->n_keys);
    free(want);
    free(got);
    return wrong ? 1 : 0;
}

/* Tells how often this worker has pushed, waits for the others, and checks everything. */
static int finish(struct adder *a, paramo_node *node)
{
    uint64_t ranks[RANKS_MAX];
    float counts[RANKS_MAX];
    uint64_t rank = a->rank;
    float count = (float)a->ended;
    uint64_t ts;
    for (uint32_t r = 0; r < RANKS_MAX; r++)
        ranks[r] = r;
    paramo_kv mine = kv_of(&rank, &count, 1);
    check(paramo_push(a->worker, a->counts, &mine, NULL, &ts));
    check(paramo_wait(a->worker, ts, 0));
    check(paramo_barrier(node, PARAMO_GROUP_WORKERS, 0, 0));
    paramo_kv all = kv_of(ranks, counts, RANKS_MAX);
    check(paramo_pull(a->worker, a->counts, &all, NULL, &ts));
    check(paramo_wait(a->worker, ts, 0));
    int code = compare_sums(a, ranks, counts);
    check(paramo_barrier(node, PARAMO_GROUP_WORKERS, 0, 0)); /* nobody leaves before all have looked */
    return code;
}

static int work(struct adder *a, paramo_node *node, const char *until)
{
    paramo_table_options options;
    paramo_table_options_init(&options); /* sparse, one float a key, added */
    a->rank = paramo_node_rank(node);
    check(paramo_worker_open(node, 0, &a->worker));
    options.replicas = a->replicas;
    check(paramo_table_open(a->worker, "sums", &options, &a->sums));
    options.replicas = PARAMO_REPLICAS_OF_JOB;
    check(paramo_table_open(a->worker, "counts", &options, &a->counts));
    for (;;) {
        bool more = access(until, F_OK) != 0 && a->begun < PUSHES_MAX;
        if (more && a->begun - a->ended < a->window) {
            push_begin(a);
        } else if (a->ended < a->begun) {
            push_end(a);
            if (a->ended % EVERY == 0)
                printf("%llu pushes\n", (unsigned long long)a->ended);
        } else {
            break;
        }
    }
    int code = finish(a, node);
    printf("{\"rank\": %u, \"pushes\": %llu, \"exact\": %s, \"p50_us\": %llu, \"p99_us\": %llu, "
           "\"slowest_ms\": %.1f}\n",
           a->rank, (unsigned long long)a->ended, code ? "false" : "true",
           (unsigned long long)percentile(a, 0.5), (unsigned long long)percentile(a, 0.99),
           1e-6 * (double)a->slowest);
    paramo_table_close(a->counts);
    paramo_table_close(a->sums);
    paramo_worker_close(a->worker);
    return code;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"until", required_argument, NULL, 'u'},    {"stalls", required_argument, NULL, 's'},
        {"keys", required_argument, NULL, 'k'},     {"window", required_argument, NULL, 'w'},
        {"replicas", required_argument, NULL, 'r'}, {0}};
    struct adder a = {.window = 8,
                      .n_keys = 4096,
                      .replicas = PARAMO_REPLICAS_OF_JOB,
                      .latency = calloc(LATENCIES, sizeof(uint32_t))};
    const char *until = NULL;
    for (int opt; (opt = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (opt) {
        case 'u':
            until = optarg;
            break;
        case 's':
            a.stalls = fopen(optarg, "w");
            break;
        case 'k':
            a.n_keys = strtoull(optarg, NULL, 10) / BATCH * BATCH;
            break;
        case 'w':
            a.window = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'r':
            a.replicas = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        default:
            return 2;
        }
    }
    if (!until || a.n_keys == 0 || a.window == 0 || a.window > WINDOW_MAX || !a.latency) {
        fputs("usage: adder --until FILE [--stalls FILE] [--keys N] [--window 1..64] [--replicas R]\n",
              stderr);
        return 2;
    }
    for (size_t i = 0; i < BATCH; i++)
        ones[i] = 1;
    make_keys(&a);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    paramo_config config;
    paramo_config_init(&config);
    check(paramo_config_from_env(&config));
    paramo_node *node;
    check(paramo_start(&config, &node));
    int code = paramo_node_is(node, PARAMO_ROLE_WORKER) ? work(&a, node, until) : 0;
    check(paramo_stop(node));
    if (a.stalls && fclose(a.stalls) != 0)
        code = 4;
    free(a.keys);
    free(a.latency);
    return code;
}
