/*
 * A worker of e2e/drill.sh: pushes, pulls and pushpulls of several tables at once, that have as many copies
 * as the job, one, and none. Each value that is read is judged by what all workers have sent and had
 * acknowledged (book.h), and at the end each sum must be exact.
 *
 *     mixer --until FILE --book FILE [--seed N] [--may-lose]
 *
 * --may-lose: rows of the table without copies may be lost (DATA_LOST); it is not used any more then.
 * Says "N requests" now and then, at the end one JSON line. Exit code: 0 exact, 1 not, 2 usage, 4 an error of
 * Paramo.
 */
#include "book.h"

#include <getopt.h>
#include <inttypes.h>
#include <paramo/paramo.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

enum { TABLES = 4, WINDOW = 16, EVERY = 200, SHOWN = 5, DIM_MAX = 3, KEYS_MAX = 8000 };
enum { NONE = 2 }; /* the table without copies */

static const struct shape {
    const char *name;
    paramo_table_kind kind;
    paramo_dtype dtype;
    uint32_t dim, replicas;
    size_t keys;
} shapes[TABLES] = {
    {"job", PARAMO_TABLE_SPARSE, PARAMO_F32, 1, PARAMO_REPLICAS_OF_JOB, KEYS_MAX},
    {"one", PARAMO_TABLE_SPARSE, PARAMO_F32, 3, 1, 3000},
    {"none", PARAMO_TABLE_SPARSE, PARAMO_I64, 2, 0, 3000},
    {"dense", PARAMO_TABLE_DENSE, PARAMO_F64, 2, PARAMO_REPLICAS_OF_JOB, 3000},
};

enum kind { PUSH, PULL, PUSHPULL };

struct request {
    enum kind kind;
    unsigned table;
    size_t first, step, n; /* of the table's keys */
    int add;
    uint64_t ts;
    uint64_t keys[KEYS_MAX];
    int64_t least[KEYS_MAX];
    union {
        float f32[KEYS_MAX * DIM_MAX];
        double f64[KEYS_MAX * DIM_MAX];
        int64_t i64[KEYS_MAX * DIM_MAX];
    } vals;
};

struct mixer {
    paramo_node *node;
    paramo_worker *worker;
    paramo_table *table[TABLES];
    uint64_t *keys[TABLES]; /* ascending */
    struct book_entry *book[TABLES];
    _Atomic int64_t *lost; /* the table NONE is, for all workers */
    struct request *request;
    uint64_t begun, ended, reads, wrong, seed;
    uint32_t rank;
    bool may_lose;
};

static void check(paramo_err err)
{
    if (err != PARAMO_OK) {
        fprintf(stderr, "mixer: %s\n", paramo_last_error());
        fflush(stdout);
        _exit(4); /* Paramo's threads still run: a leak check is not possible */
    }
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t draw(struct mixer *m, uint64_t below)
{
    return mix(m->seed += UINT64_C(0x9e3779b97f4a7c15)) % below;
}

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void set(struct request *r, size_t i, int64_t value)
{
    switch (shapes[r->table].dtype) {
    case PARAMO_F32:
        r->vals.f32[i] = (float)value;
        break;
    case PARAMO_F64:
        r->vals.f64[i] = (double)value;
        break;
    default:
        r->vals.i64[i] = value;
    }
}

static double get(const struct request *r, size_t i)
{
    switch (shapes[r->table].dtype) {
    case PARAMO_F32:
        return (double)r->vals.f32[i];
    case PARAMO_F64:
        return r->vals.f64[i];
    default:
        return (double)r->vals.i64[i];
    }
}

static void open_tables(struct mixer *m, const char *path)
{
    size_t all = 0;
    for (unsigned t = 0; t < TABLES; t++)
        all += shapes[t].keys;
    struct book_entry *book = book_open(path, all + 1);
    m->lost = &book[all].sent;
    for (unsigned t = 0; t < TABLES; t++) {
        const struct shape *s = &shapes[t];
        paramo_table_options options;
        paramo_table_options_init(&options);
        options.kind = s->kind;
        options.dtype = s->dtype;
        options.dim = s->dim;
        options.replicas = s->replicas;
        options.rows = s->kind == PARAMO_TABLE_DENSE ? s->keys : 0;
        check(paramo_table_open(m->worker, s->name, &options, &m->table[t]));
        m->book[t] = book;
        book += s->keys;
        m->keys[t] = calloc(s->keys, sizeof *m->keys[t]);
        if (!m->keys[t])
            exit(4);
        for (size_t i = 0; i < s->keys; i++)
            m->keys[t][i] = s->kind == PARAMO_TABLE_DENSE ? i : mix(i * TABLES + t + 1);
        qsort(m->keys[t], s->keys, sizeof *m->keys[t], compare);
    }
}

static struct book_entry *entry(const struct mixer *m, const struct request *r, size_t i)
{
    return &m->book[r->table][r->first + i * r->step];
}

static void issue(struct mixer *m, struct request *r)
{
    const struct shape *s = &shapes[r->table];
    for (size_t i = 0; i < r->n; i++) {
        struct book_entry *e = entry(m, r, i);
        r->keys[i] = m->keys[r->table][r->first + i * r->step];
        if (r->kind != PULL)
            book_send(e, r->add);
        r->least[i] = book_least(e) + (r->kind == PUSHPULL ? r->add : 0);
        for (uint32_t d = 0; d < s->dim; d++)
            set(r, i * s->dim + d, r->add);
    }
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = r->keys;
    kv.n = r->n;
    kv.vals = &r->vals;
    kv.vals_len = r->n * s->dim;
    paramo_table *t = m->table[r->table];
    check(r->kind == PUSH   ? paramo_push(m->worker, t, &kv, NULL, &r->ts)
          : r->kind == PULL ? paramo_pull(m->worker, t, &kv, NULL, &r->ts)
                            : paramo_pushpull(m->worker, t, &kv, NULL, &r->ts));
}

static void begin(struct mixer *m)
{
    struct request *r = &m->request[m->begun++ % WINDOW];
    do
        r->table = (unsigned)draw(m, TABLES);
    while (r->table == NONE && atomic_load(m->lost));
    size_t all = shapes[r->table].keys;
    uint64_t kind = draw(m, 10), size = draw(m, 100);
    r->kind = kind < 5 ? PUSH : kind < 8 ? PULL : PUSHPULL;
    r->n = (size_t)(1 + draw(m, size < 70 ? 40 : size < 95 ? 1000 : all));
    r->step = draw(m, 2) ? 1 : all / r->n; /* a run of keys, or some from everywhere */
    r->first = (size_t)draw(m, all - (r->n - 1) * r->step);
    r->add = r->kind == PULL ? 0 : (int)(1 + draw(m, 2));
    issue(m, r);
}

/* Each value that was read: a whole row, of what was acknowledged when it was asked for and sent by now. */
static void judge(struct mixer *m, const struct request *r)
{
    const struct shape *s = &shapes[r->table];
    for (size_t i = 0; i < r->n; i++) {
        double least = (double)r->least[i], most = (double)book_most(entry(m, r, i));
        for (uint32_t d = 0; d < s->dim; d++) {
            double value = get(r, i * s->dim + d);
            if (value >= least && value <= most && value == get(r, i * s->dim))
                continue;
            if (m->wrong++ < SHOWN)
                fprintf(stderr,
                        "mixer: WRONG: worker %" PRIu32 " reads (%s) %.0f of table %s key %" PRIu64
                        " column %" PRIu32
                        " (the row's first: %.0f), acknowledged before were %.0f and sent by now %.0f\n",
                        m->rank, r->kind == PULL ? "pull" : "pushpull", value, s->name, r->keys[i], d,
                        get(r, i * s->dim), least, most);
        }
    }
    m->reads += r->n;
}

static void end(struct mixer *m)
{
    struct request *r = &m->request[m->ended++ % WINDOW];
    paramo_err err = paramo_wait(m->worker, r->ts, 0);
    if (err == PARAMO_E_DATA_LOST && m->may_lose && r->table == NONE) {
        atomic_store(m->lost, 1);
        return;
    }
    check(err);
    for (size_t i = 0; i < r->n && r->kind != PULL; i++)
        book_acknowledge(entry(m, r, i), r->add);
    if (r->kind != PUSH)
        judge(m, r);
    if (m->ended % EVERY == 0)
        printf("%" PRIu64 " requests\n", m->ended);
}

/* No worker pushes any more: least and most are the same. */
static void sums(struct mixer *m)
{
    struct request *r = m->request;
    check(paramo_barrier(m->node, PARAMO_GROUP_WORKERS, 0, 120000));
    for (unsigned t = 0; t < TABLES; t++) {
        if (t == NONE && atomic_load(m->lost))
            continue;
        *r = (struct request){.kind = PULL, .table = t, .step = 1, .n = shapes[t].keys};
        issue(m, r);
        paramo_err err = paramo_wait(m->worker, r->ts, 0);
        if (err == PARAMO_E_DATA_LOST && m->may_lose && t == NONE) {
            atomic_store(m->lost, 1);
            continue;
        }
        check(err);
        judge(m, r);
    }
    check(paramo_barrier(m->node, PARAMO_GROUP_WORKERS, 1,
                         120000)); /* no worker leaves before all have looked */
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"until", required_argument, NULL, 'u'},
                                            {"book", required_argument, NULL, 'b'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"may-lose", no_argument, NULL, 'l'},
                                            {0}};
    struct mixer m = {.request = calloc(WINDOW, sizeof *m.request)};
    const char *until = NULL, *book = NULL;
    for (int opt; (opt = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (opt == 'u')
            until = optarg;
        else if (opt == 'b')
            book = optarg;
        else if (opt == 's')
            m.seed = strtoull(optarg, NULL, 10);
        else if (opt == 'l')
            m.may_lose = true;
        else
            return 2;
    }
    if (!until || !book || !m.request) {
        fputs("usage: mixer --until FILE --book FILE [--seed N] [--may-lose]\n", stderr);
        return 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    paramo_config config;
    paramo_config_init(&config);
    check(paramo_config_from_env(&config));
    check(paramo_start(&config, &m.node));
    m.rank = paramo_node_rank(m.node);
    m.seed = mix(m.seed << 8 | m.rank);
    check(paramo_worker_open(m.node, 0, &m.worker));
    open_tables(&m, book);
    for (bool more = true; more || m.ended < m.begun;) {
        more = more && access(until, F_OK) != 0;
        if (more && m.begun - m.ended < WINDOW)
            begin(&m);
        else
            end(&m);
    }
    uint64_t requests = m.ended;
    sums(&m);
    printf("{\"rank\": %" PRIu32 ", \"requests\": %" PRIu64 ", \"reads\": %" PRIu64 ", \"wrong\": %" PRIu64
           ", \"lost\": %s}\n",
           m.rank, requests, m.reads, m.wrong, atomic_load(m.lost) ? "true" : "false");
    for (unsigned t = 0; t < TABLES; t++) {
        paramo_table_close(m.table[t]);
        free(m.keys[t]);
    }
    paramo_worker_close(m.worker);
    check(paramo_stop(m.node));
    free(m.request);
    return m.wrong ? 1 : 0;
}
