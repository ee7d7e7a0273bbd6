/*
 * A worker for the end-to-end tests: adds ones to the keys of a table, with a window of pushes in flight,
 * until a file appears, and then checks with the other workers that every sum is exact. Each of its pushes is
 * known from rank and number, so any worker can say what the table must hold.
 *
 *     adder --until FILE [--stalls FILE] [--keys N] [--window N] [--replicas R] [--book FILE]
 *
 * --replicas: R copies of the sums, instead of the job's. --book: every third request is a pull, whose
 * values are judged by what all workers of this FILE have sent and had acknowledged by then (book.h); at the
 * end every sum is judged, too, exactly only if no worker was killed (its last pushes may be there or not).
 * Says "N pushes" (standard output) now and then, "waiting" when a push has taken half a second, and at the
 * end one JSON line. --stalls: a line for each push that took longer than STALL_MS: begin and end in
 * nanoseconds since the epoch. Exit code: 0 exact, 1 not, 2 usage, 4 an error of Paramo.
 */
#include "book.h"

#include <getopt.h>
#include <paramo/paramo.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

enum { BATCH = 16, WINDOW_MAX = 64, WAITING_MS = 500, STALL_MS = 20, EVERY = 1000, RANKS_MAX = 64 };
enum { PUSHES_MAX = (1 << 24) - 1 }; /* a float counts to there */
enum { LATENCIES = 100000 };         /* microseconds, one a slot; the last one is for all beyond */

struct request {
    bool pull;
    uint64_t first; /* of its keys */
    uint64_t keys[BATCH];
    int64_t least[BATCH];
    float vals[BATCH];
    uint64_t ts, begun;
};

struct adder {
    paramo_worker *worker;
    paramo_table *sums, *counts;
    uint32_t rank, window, replicas;
    uint64_t n_keys, *keys; /* ascending */
    struct request request[WINDOW_MAX];
    uint64_t begun, ended;   /* requests */
    uint64_t pushed, pushes; /* begun and ended */
    uint64_t reads, wrong;   /* values */
    struct book_entry *book; /* [n_keys], or NULL */
    uint64_t slowest;        /* nanoseconds */
    uint32_t *latency;       /* LATENCIES */
    FILE *stalls;
};

static float ones[BATCH];

static void check(paramo_err err)
{
    if (err != PARAMO_OK) {
        fprintf(stderr, "adder: %s\n", paramo_last_error());
        fflush(stdout);
        _exit(4); /* Paramo's threads still run: a leak check is not possible */
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

static void request_begin(struct adder *a)
{
    struct request *r = &a->request[a->begun % a->window];
    uint64_t apart = a->n_keys / BATCH;
    r->pull = a->book && a->begun % 3 == 2;
    /* what it reads are others' keys as much as its own */
    r->first = r->pull ? first_of(a, a->rank + RANKS_MAX, a->begun) : first_of(a, a->rank, a->pushed);
    for (uint64_t k = 0; k < BATCH; k++) {
        r->keys[k] = a->keys[r->first + k * apart];
        if (a->book && r->pull)
            r->least[k] = book_least(&a->book[r->first + k * apart]);
        else if (a->book)
            book_send(&a->book[r->first + k * apart], 1);
    }
    r->begun = now_ns();
    paramo_kv kv = kv_of(r->keys, r->pull ? r->vals : ones, BATCH);
    check(r->pull ? paramo_pull(a->worker, a->sums, &kv, NULL, &r->ts)
                  : paramo_push(a->worker, a->sums, &kv, NULL, &r->ts));
    a->begun++;
    a->pushed += !r->pull;
}

static void judge(struct adder *a, uint64_t key, int64_t least, struct book_entry *e, float value)
{
    int64_t most = book_most(e);
    a->reads++;
    if (value >= (float)least && value <= (float)most)
        return;
    if (a->wrong++ < 5)
        fprintf(
            stderr,
            "adder: WRONG: worker %u reads %.0f of key %llu, acknowledged before were %lld and sent by now "
            "%lld\n",
            a->rank, (double)value, (unsigned long long)key, (long long)least, (long long)most);
}

static void push_ended(struct adder *a, const struct request *r)
{
    uint64_t end = now_ns();
    uint64_t taken = end > r->begun ? end - r->begun : 0;
    a->slowest = taken > a->slowest ? taken : a->slowest;
    a->latency[taken / 1000 < LATENCIES ? taken / 1000 : LATENCIES - 1]++;
    if (a->stalls && taken >= STALL_MS * UINT64_C(1000000))
        fprintf(a->stalls, "%llu %llu\n", (unsigned long long)r->begun, (unsigned long long)end);
    if (++a->pushes % EVERY == 0)
        printf("%llu pushes\n", (unsigned long long)a->pushes);
}

static void request_end(struct adder *a)
{
    const struct request *r = &a->request[a->ended % a->window];
    paramo_err err = paramo_wait(a->worker, r->ts, WAITING_MS);
    if (err == PARAMO_E_TIMEOUT) {
        puts("waiting");
        err = paramo_wait(a->worker, r->ts, 0);
    }
    check(err);
    for (uint64_t k = 0; k < BATCH && a->book; k++) {
        struct book_entry *e = &a->book[r->first + k * (a->n_keys / BATCH)];
        if (r->pull)
            judge(a, r->keys[k], r->least[k], e, r->vals[k]);
        else
            book_acknowledge(e, 1);
    }
    if (!r->pull)
        push_ended(a, r);
    a->ended++;
}

static uint64_t percentile(const struct adder *a, double share)
{
    uint64_t seen = 0;
    uint64_t at = 0;
    while (at < LATENCIES - 1 && (double)(seen += a->latency[at]) < share * (double)a->pushes)
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

/* As the book has it: with a worker that was killed its last pushes may be there or not. */
static int judge_sums(struct adder *a)
{
    float *got = calloc(a->n_keys, sizeof *got);
    int64_t *least = calloc(a->n_keys, sizeof *least);
    uint64_t ts;
    if (!got || !least)
        return 4;
    for (uint64_t i = 0; i < a->n_keys; i++)
        least[i] = book_least(&a->book[i]);
    paramo_kv kv = kv_of(a->keys, got, a->n_keys);
    check(paramo_pull(a->worker, a->sums, &kv, NULL, &ts));
    check(paramo_wait(a->worker, ts, 0));
    for (uint64_t i = 0; i < a->n_keys; i++)
        judge(a, a->keys[i], least[i], &a->book[i], got[i]);
    free(least);
    free(got);
    return a->wrong ? 1 : 0;
}

static bool worker_died(paramo_node *node)
{
    uint32_t dead[RANKS_MAX];
    size_t n = paramo_dead_nodes(node, dead, RANKS_MAX);
    for (size_t i = 0; i < n && i < RANKS_MAX; i++)
        if (dead[i] >= PARAMO_ID_WORKER(0) && dead[i] % 2 == PARAMO_ID_WORKER(0) % 2)
            return true;
    return false;
}

/* Tells how often this worker has pushed, waits for the others, and checks everything. */
static int finish(struct adder *a, paramo_node *node)
{
    uint64_t ranks[RANKS_MAX];
    float counts[RANKS_MAX];
    uint64_t rank = a->rank;
    float count = (float)a->pushes;
    uint64_t ts;
    if (a->book && worker_died(node)) /* no worker can wait for all of them */
        return judge_sums(a);
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
    if (code == 0 && a->book)
        code = judge_sums(a);
    check(paramo_barrier(node, PARAMO_GROUP_WORKERS, 0, 0)); /* no worker leaves before all have looked */
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
        bool more = access(until, F_OK) != 0 && a->pushed < PUSHES_MAX;
        if (more && a->begun - a->ended < a->window)
            request_begin(a);
        else if (a->ended < a->begun)
            request_end(a);
        else
            break;
    }
    int code = finish(a, node);
    printf("{\"rank\": %u, \"pushes\": %llu, \"reads\": %llu, \"wrong\": %llu, \"exact\": %s, "
           "\"p50_us\": %llu, \"p99_us\": %llu, \"slowest_ms\": %.1f}\n",
           a->rank, (unsigned long long)a->pushes, (unsigned long long)a->reads, (unsigned long long)a->wrong,
           code ? "false" : "true", (unsigned long long)percentile(a, 0.5),
           (unsigned long long)percentile(a, 0.99), 1e-6 * (double)a->slowest);
    paramo_table_close(a->counts);
    paramo_table_close(a->sums);
    paramo_worker_close(a->worker);
    return code;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"until", required_argument, NULL, 'u'},
                                            {"stalls", required_argument, NULL, 's'},
                                            {"keys", required_argument, NULL, 'k'},
                                            {"window", required_argument, NULL, 'w'},
                                            {"replicas", required_argument, NULL, 'r'},
                                            {"book", required_argument, NULL, 'b'},
                                            {0}};
    struct adder a = {.window = 8,
                      .n_keys = 4096,
                      .replicas = PARAMO_REPLICAS_OF_JOB,
                      .latency = calloc(LATENCIES, sizeof(uint32_t))};
    const char *until = NULL, *book = NULL;
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
        case 'b':
            book = optarg;
            break;
        default:
            return 2;
        }
    }
    if (!until || a.n_keys == 0 || a.window == 0 || a.window > WINDOW_MAX || !a.latency) {
        fputs("usage: adder --until FILE [--stalls FILE] [--keys N] [--window 1..64] [--replicas R] "
              "[--book FILE]\n",
              stderr);
        return 2;
    }
    for (size_t i = 0; i < BATCH; i++)
        ones[i] = 1;
    make_keys(&a);
    if (book)
        a.book = book_open(book, a.n_keys);
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
