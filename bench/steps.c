/* Processor time of the steps in which a shard removes many rows, frees what they took, and takes over the records of
 * many senders or the entries of a stream; and of a worker when an owner dies. bench/steps.sh builds and runs it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "env/hugemem.h"
#include "server/replication/chain_impl.h"
#include "server/replication/chain_stream.h"
#include "server/replication/entry.h"
#include "server/replication/gate.h"
#include "server/replication/origins.h"
#include "server/replication/records.h"
#include "server/replication/replication.h"
#include "server/replication/succession.h"
#include "server/shard/adopting.h"
#include "server/shard/clearing.h"
#include "server/shard/senders.h"
#include "server/shard/shard.h"
#include "server/shard/shard_tables.h"
#include "server/snapshot/load_records.h"
#include "server/snapshot/save_records.h"
#include "table/table.h"
#include "table/table_reduce.h"
#include "table/table_snapshot.h"
#include "van/van.h"
#include "wire/report.h"
#include "worker/client.h"
#include "worker/client_impl.h"
#include "worker/route.h"
#include "worker/slicing_turns.h"

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
    for (bool more = table_clear_due(t); more;) {
        start = cpu();
        more = table_clear_step(t);
        step_took(cpu() - start);
    }
    report("a checkpoint is given up", rows, dim);
    start = cpu();
    table_destroy(t);
    step_took(cpu() - start);
    report("the table ends", rows, dim);
    hugemem_fini(&memory);
}

static void report_senders(const char *what, unsigned n)
{
    printf("%-34s %10u:              longest step %7.3f ms, %7lu steps, %9.1f ms in all\n", what, n,
           took.longest, took.steps, took.sum);
    fflush(stdout);
    memset(&took, 0, sizeof took);
}

/* All turns of a look at all senders. */
static void look(struct shard *s)
{
    while (s->senders->check.on) {
        double start = cpu();
        s->senders->check.timer.fire(&s->senders->check.timer);
        step_took(cpu() - start);
    }
}

/* The jobs that were added, in turns as the lane would have them. The last one begins a look at all senders. */
static void turns(struct chain *c, const char *what, unsigned senders)
{
    while (records_pending(c)) {
        double start = cpu();
        records_fire(&c->records.timer);
        step_took(cpu() - start);
    }
    report_senders(what, senders);
    look(c->shard);
    memset(&took, 0, sizeof took);
}

static void loaded(struct shard *s, const struct ckpt_block *block, const char *what, unsigned n)
{
    static bool own[RING_PARTITIONS];
    struct load_records records;
    memset(own, true, sizeof own);
    if (load_records_decode(block, &records))
        exit(1);
    for (bool done = false; !done;) {
        double start = cpu();
        if (load_records_turn(s, own, &records, &done))
            exit(1);
        step_took(cpu() - start);
    }
    report_senders(what, n);
    load_records_fini(&records);
}

/* A checkpoint has the records of the shard's senders; a load brings as many, each with a number that is new here,
 * and a block of notes. */
static void records(struct shard *s, unsigned n, const uint64_t partitions[PARTITION_WORDS])
{
    struct save_records saved;
    double start = cpu();
    if (save_records_begin(&saved, s, partitions))
        exit(1);
    step_took(cpu() - start);
    for (bool done = false; !done;) {
        start = cpu();
        if (save_records_turn(&saved, &done))
            exit(1);
        step_took(cpu() - start);
    }
    report_senders("a checkpoint copies them", n);
    static struct sender_note notes[SENDER_NOTES_MAX];
    struct writer w = {0}, w_notes = {0};
    for (size_t i = 0; i < saved.windows_count; i++) {
        if (dedup_check(&saved.windows[i].dedup, 1020) == DEDUP_NEW)
            dedup_record(&saved.windows[i].dedup, 1020);
        if (i < SENDER_NOTES_MAX)
            notes[i] =
                (struct sender_note){.sender = saved.windows[i].sender, .number = 1021, .partitions = {5}};
    }
    sender_windows_encode(saved.windows, saved.windows_count, &w);
    sender_notes_encode(
        notes, saved.windows_count < SENDER_NOTES_MAX ? saved.windows_count : SENDER_NOTES_MAX, &w_notes);
    struct ckpt_block block = {
        .kind = CKPT_WINDOWS, .partitions = RING_PARTITIONS, .payload = w.data, .bytes = w.len};
    loaded(s, &block, "a load adds their windows", n);
    block.kind = CKPT_NOTES;
    block.payload = w_notes.data;
    block.bytes = w_notes.len;
    loaded(s, &block, "a load adds a block of notes", n);
    writer_fini(&w);
    writer_fini(&w_notes);
    save_records_fini(&saved);
}

/* A follower takes an owner's place, and gives it up again; it drops partitions, and senders are gone. */
static void senders(unsigned n, unsigned notes)
{
    struct shard *s;
    struct lane *lane;
    if (lane_create(env_real(), "steps", 0, &lane))
        exit(1);
    while (!lane_enter(lane)) {
    }
    struct shard_config config = {.lane = lane, .index = 0};
    if (shard_create(&config, &s) || chain_create(s, &s->chain))
        exit(1);
    struct chain *c = s->chain;
    struct chain_origin *o = origin_get(c, (struct chain_name){.node = 8});
    uint64_t partitions[CHAIN_WORDS];
    memset(partitions, 0xff, sizeof partitions);
    for (unsigned a = 0; a < RING_PARTITIONS; a++, o->partitions++)
        c->origin_of[a] = o;
    struct view *view = calloc(1, sizeof *view);
    view->nodes = calloc(VIEW_NODES_MAX, sizeof *view->nodes);
    view->refs = 1;
    for (unsigned i = 0; i < VIEW_NODES_MAX && i < n; i++, view->nodes_count++)
        view->nodes[i] = (struct view_node){.id = PARAMO_ID_WORKER(i), .alive = true, .incarnation = i + 1};
    s->view = view;
    for (unsigned i = 0; i < n; i++) {
        unsigned node = i % VIEW_NODES_MAX;
        struct sender_id id = {
            .node = PARAMO_ID_WORKER(node), .customer = i / VIEW_NODES_MAX, .incarnation = node + 1};
        struct chain_sender *x = origin_sender(o, &id);
        for (unsigned k = 0; k < notes; k++)
            if (!x || applied_window_note_number(&x->applied_window, 3 + k, partitions))
                exit(1);
    }
    memset(c->mine, 0xff, sizeof c->mine);
    if (records_pass(c, o, NULL, partitions))
        exit(1);
    turns(c, "promotion", n);
    double start = cpu();
    shard_senders_check(s);
    step_took(cpu() - start);
    look(s);
    report_senders("a view's look at them", n);
    struct shard_report shard_report;
    start = cpu();
    shard_get_report(s, &shard_report);
    step_took(cpu() - start);
    report_senders("a report to the scheduler", n);
    records(s, n, partitions);
    struct chain_origin *to = origin_get(c, (struct chain_name){.node = 10});
    if (records_pass(c, NULL, to, partitions))
        exit(1);
    memset(c->mine, 0, sizeof c->mine);
    turns(c, "demotion", n);
    records_forget(c);
    turns(c, "partitions are dropped", n);
    view->nodes_count = 0;
    start = cpu();
    shard_senders_check(s);
    step_took(cpu() - start);
    look(s);
    report_senders("a view frees those that are dead", n);
    records_of_gone(c, to);
    turns(c, "they are dead", n);
    lane_leave(lane);
}

/* The next member dies, and one stream is full: its entries, of one row each, go to the two members after it. */
static void routing(unsigned n)
{
    struct shard *s;
    struct lane *lane;
    if (lane_create(env_real(), "steps", 0, &lane))
        exit(1);
    while (!lane_enter(lane)) {
    }
    struct shard_config config = {.lane = lane, .index = 0, .incarnation = 7};
    if (shard_create(&config, &s) || chain_create(s, &s->chain))
        exit(1);
    struct chain *c = s->chain;
    struct view *view = calloc(1, sizeof *view);
    *view = (struct view){.number = 1, .refs = 1, .tables_count = 1};
    view->tables = calloc(1, sizeof *view->tables);
    view->tables[0] = (struct view_table){.id = 1,
                                          .options = {.size = sizeof(paramo_table_options),
                                                      .kind = PARAMO_TABLE_SPARSE,
                                                      .dim = 1,
                                                      .replicas = 1,
                                                      .optimizer = PARAMO_OPT_ADD}};
    shard_set_view(s, view);
    const struct view_node node = {.id = 10, .incarnation = 8};
    struct chain_stream *half[2];
    for (unsigned i = 0; i < 2; i++) {
        half[i] = chain_stream_open(c, &node, (struct chain_name){.node = 10, .shard = (uint16_t)i});
        memset((char *)half[i]->some[1] + i * sizeof half[i]->some[1] / 2, 0xff, sizeof half[i]->some[1] / 2);
    }
    struct queue entries = {0};
    for (unsigned i = 0; i < n; i++) {
        uint64_t keys[] = {2 * i, 2 * i + 1};
        float vals[] = {1, 1};
        const struct van_seg seg[WIRE_SEG_BODY] = {
            [WIRE_SEG_KEYS] = {keys, sizeof keys}, [WIRE_SEG_VALS] = {vals, sizeof vals}};
        struct chain_message m = {.what = CHAIN_UPDATE,
                                  .request = {.kind = WIRE_PUSH, .table = 1, .count = 2}};
        static uint64_t all[CHAIN_WORDS];
        memset(all, 0xff, sizeof all);
        struct chain_entry *e = chain_entry_make(shard_table_find(s, 1), &m, seg, WIRE_SEG_BODY, all);
        if (!e)
            exit(1);
        queue_push(&entries, &e->node);
    }
    static const uint64_t none[CHAIN_WORDS];
    double start = cpu();
    records_route(c, &entries, none, false);
    step_took(cpu() - start);
    while (records_pending(c)) {
        start = cpu();
        records_fire(&c->records.timer);
        step_took(cpu() - start);
    }
    report_senders("a full stream is routed", n);
    for (unsigned i = 0; i < 2; i++) {
        for (struct qnode *node = half[i]->entries.head; node; node = node->next) {
            struct chain_wait *wait = calloc(1, sizeof *wait);
            wait->entries = 1;
            container_of(node, struct chain_entry, node)->wait = wait;
        }
        start = cpu();
        chain_stream_ack(half[i],
                         &(struct chain_ack){.acked = half[i]->seq, .received = half[i]->seq, .clock = 1});
        step_took(cpu() - start);
        while (half[i]->release.timer.slot) {
            lane_timer_cancel(lane, &half[i]->release.timer);
            start = cpu();
            half[i]->release.timer.fire(&half[i]->release.timer);
            step_took(cpu() - start);
        }
    }
    report_senders("and acknowledged, without answers", n);
    lane_leave(lane);
}

/* Views after deaths: a shard of many tables becomes the owner of all partitions, whose rows are lost where tables have
 * no copies; then it becomes a farther replica, and sheds what some tables have no copies for there. */
static void tables(unsigned n)
{
    struct shard *s;
    struct lane *lane;
    if (lane_create(env_real(), "steps", 0, &lane))
        exit(1);
    while (!lane_enter(lane)) {
    }
    struct shard_config config = {.lane = lane, .index = 0, .incarnation = 7};
    if (shard_create(&config, &s) || chain_create(s, &s->chain))
        exit(1);
    struct view *view[2];
    for (unsigned v = 0; v < 2; v++) {
        view[v] = calloc(1, sizeof **view);
        *view[v] = (struct view){.number = v + 1, .refs = 1, .nodes_count = 1, .shards_count = 1};
        view[v]->nodes = calloc(1, sizeof *view[v]->nodes);
        view[v]->nodes[0] = (struct view_node){
            .id = 8, .alive = true, .incarnation = 7, .role = PARAMO_ROLE_SERVER, .shards = 1};
        view[v]->shards = calloc(1, sizeof *view[v]->shards);
        view[v]->shards[0].node = 8;
        view[v]->tables_count = n;
        view[v]->tables = calloc(n, sizeof *view[v]->tables);
        for (unsigned i = 0; i < n; i++)
            view[v]->tables[i] = (struct view_table){.id = i + 1,
                                                     .options = {.size = sizeof(paramo_table_options),
                                                                 .kind = PARAMO_TABLE_SPARSE,
                                                                 .dim = 1,
                                                                 .replicas = i % 4,
                                                                 .optimizer = PARAMO_OPT_ADD}};
        for (unsigned a = 0; a < RING_PARTITIONS; a++)
            view[v]->owner_gone[a] = v ? 2 : 0;
    }
    double start = cpu();
    shard_set_view(s, view[0]);
    step_took(cpu() - start);
    while (s->adopting->timer.slot) {
        lane_timer_cancel(lane, &s->adopting->timer);
        start = cpu();
        s->adopting->timer.fire(&s->adopting->timer);
        step_took(cpu() - start);
    }
    report_senders("tables are made", n);
    start = cpu();
    shard_set_view(s, view[1]);
    step_took(cpu() - start);
    report_senders("a view after a death", n);
    uint64_t all[CHAIN_WORDS];
    memset(all, 0xff, sizeof all);
    memset(s->chain->level, 2, sizeof s->chain->level);
    start = cpu();
    chain_shed(s->chain, all);
    step_took(cpu() - start);
    report_senders("partitions are farther", n);
    start = cpu();
    chain_drop(s->chain, all);
    step_took(cpu() - start);
    report_senders("partitions are dropped", n);
    lane_leave(lane);
}

static struct view *view_of(uint64_t number, const struct view_table *table, unsigned dead)
{
    struct view *view = calloc(1, sizeof *view);
    *view =
        (struct view){.number = number, .refs = 1, .nodes_count = 3, .shards_count = 3, .tables_count = 1};
    view->nodes = calloc(3, sizeof *view->nodes);
    view->shards = calloc(3, sizeof *view->shards);
    view->tables = calloc(1, sizeof *view->tables);
    view->tables[0] = *table;
    for (unsigned i = 0; i < 3; i++) {
        view->nodes[i] = (struct view_node){.id = PARAMO_ID_SERVER(i),
                                            .alive = i >= dead,
                                            .incarnation = i + 1,
                                            .role = PARAMO_ROLE_SERVER,
                                            .shards = 1,
                                            .host = "nowhere",
                                            .port = 1};
        view->shards[i].node = PARAMO_ID_SERVER(i);
    }
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        view->chains.level[0].owner[a] = dead ? (uint16_t)(1 + a % 2) : 0;
    return view;
}

static const struct view_table one_table = {.id = 1,
                                            .options = {.size = sizeof(paramo_table_options),
                                                        .kind = PARAMO_TABLE_SPARSE,
                                                        .dim = 1,
                                                        .optimizer = PARAMO_OPT_ADD}};

/* A customer of one table, on a lane that this thread holds. It has no connections. dead: as in view_of. */
static struct client *client_make(struct lane **lane, struct client_table *table, unsigned dead)
{
    struct van *van;
    struct client *client;
    if (lane_create(env_real(), "steps", 0, lane) || van_inproc_create(env_real(), &van))
        exit(1);
    while (!lane_enter(*lane)) {
    }
    client_table_init(table, &one_table);
    struct client_config config = {.lane = *lane,
                                   .van = van,
                                   .view = view_of(1, &one_table, dead),
                                   .node = PARAMO_ID_WORKER(0),
                                   .incarnation = 7,
                                   .frame_bytes = 64 << 20,
                                   .request_timeout_ms = 600000,
                                   .connect_timeout_ms = 1000};
    if (client_create(&config, &client))
        exit(1);
    return client;
}

/* The turns of chunks that wait, as the lane would have them. */
static void client_turns(struct lane *lane, struct client *client)
{
    while (client->turns->timer.slot) {
        lane_timer_cancel(lane, &client->turns->timer);
        double start = cpu();
        client->turns->timer.fire(&client->turns->timer);
        step_took(cpu() - start);
    }
}

/* The owner of all keys dies, for which full chunks of a customer wait. Two others own the keys then. */
static void evacuated(unsigned chunks)
{
    enum { KEYS = 40000 };
    struct lane *lane;
    struct client_table table;
    struct client *client = client_make(&lane, &table, 0);
    uint64_t *keys = malloc(KEYS * sizeof *keys), ts;
    float *vals = calloc(KEYS, sizeof *vals);
    for (unsigned i = 0; i < KEYS; i++)
        keys[i] = i;
    const paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = KEYS, .vals = vals, .vals_len = KEYS};
    struct client_call call = {.kind = REQUEST_PUSH, .table = &table, .kv = &kv};
    for (unsigned i = 0; i < chunks; i++)
        if (client_issue(client, &call, &ts))
            exit(1);
    struct view *next = view_of(2, &one_table, 1);
    double start = cpu();
    client_set_view(client, next);
    step_took(cpu() - start);
    client_turns(lane, client);
    report_senders("chunks for a dead owner", chunks);
    lane_leave(lane);
}

/* A customer pushes many keys at once. They have two owners, to which it has no connection. */
static void sliced(unsigned n)
{
    struct lane *lane;
    struct client_table table;
    struct client *client = client_make(&lane, &table, 1);
    uint64_t *keys = malloc(n * sizeof *keys), ts;
    float *vals = malloc(n * sizeof *vals);
    for (unsigned i = 0; i < n; i++) {
        keys[i] = i;
        vals[i] = 1;
    }
    const paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = n, .vals = vals, .vals_len = n};
    struct client_call call = {.kind = REQUEST_PUSH, .table = &table, .kv = &kv};
    double start = cpu();
    if (client_issue(client, &call, &ts)) /* it checks the order of the keys before the step begins */
        exit(1);
    double issued = cpu() - start;
    client_turns(lane, client);
    report_senders("a request is sliced", n);
    printf("(and its checks and first turn: %.3f ms)\n", issued);
    lane_leave(lane);
}

/* A shard of many tables with rows leaves all of its partitions; a large dense table is made. */
static void many(unsigned n, uint32_t rows, uint64_t dense_rows)
{
    struct shard *s;
    struct lane *lane;
    if (lane_create(env_real(), "steps", 0, &lane))
        exit(1);
    while (!lane_enter(lane)) {
    }
    struct shard_config config = {.lane = lane, .index = 0, .incarnation = 7};
    if (shard_create(&config, &s) || chain_create(s, &s->chain))
        exit(1);
    struct view *view = calloc(1, sizeof *view);
    *view = (struct view){.number = 1, .refs = 1, .nodes_count = 1, .shards_count = 1, .tables_count = n + 1};
    view->nodes = calloc(1, sizeof *view->nodes);
    view->nodes[0] =
        (struct view_node){.id = 8, .alive = true, .incarnation = 7, .role = PARAMO_ROLE_SERVER, .shards = 1};
    view->shards = calloc(1, sizeof *view->shards);
    view->shards[0].node = 8;
    view->tables = calloc(n + 1, sizeof *view->tables);
    for (unsigned i = 0; i <= n; i++)
        view->tables[i] =
            (struct view_table){.id = i + 1,
                                .options = {.size = sizeof(paramo_table_options),
                                            .kind = i < n ? PARAMO_TABLE_SPARSE : PARAMO_TABLE_DENSE,
                                            .rows = i < n ? 0 : dense_rows,
                                            .dim = 1,
                                            .optimizer = PARAMO_OPT_ADD}};
    double start = cpu();
    shard_set_view(s, view);
    step_took(cpu() - start);
    while (s->adopting->timer.slot) {
        lane_timer_cancel(lane, &s->adopting->timer);
        s->adopting->timer.fire(&s->adopting->timer);
    }
    while (s->clearing->timer.slot) {
        lane_timer_cancel(lane, &s->clearing->timer);
        start = cpu();
        s->clearing->timer.fire(&s->clearing->timer);
        step_took(cpu() - start);
    }
    report("a dense table is made", dense_rows, 1);
    for (unsigned i = 0; i < n; i++)
        fill(shard_table_find(s, i + 1)->table, rows, 1);
    uint64_t all[CHAIN_WORDS];
    memset(all, 0xff, sizeof all);
    start = cpu();
    chain_drop(s->chain, all);
    step_took(cpu() - start);
    while (s->clearing->timer.slot) {
        lane_timer_cancel(lane, &s->clearing->timer);
        start = cpu();
        s->clearing->timer.fire(&s->clearing->timer);
        step_took(cpu() - start);
    }
    report("rows of many tables leave", (unsigned long long)n * rows, 1);
    lane_leave(lane);
}

/* Reductions of a few rows, each longer than a step may take; a dense table of such rows is made before. */
static void long_rows(paramo_table_kind kind, uint32_t dim)
{
    enum { ROWS = 3 };
    static const struct reduction what[] = {
        {.function = PARAMO_REDUCE_SUM, .last = UINT64_MAX},
        {.function = PARAMO_REDUCE_TOP, .last = UINT64_MAX, .most = 1024}};
    struct table *t;
    paramo_table_options options = {.size = sizeof options,
                                    .kind = kind,
                                    .rows = kind == PARAMO_TABLE_DENSE ? ROWS : 0,
                                    .dim = dim,
                                    .optimizer = PARAMO_OPT_ADD};
    if (table_create(&options, 1, NULL, &t))
        exit(1);
    float *row = calloc(dim, sizeof *row);
    for (uint64_t key = 0; key < ROWS; key++) {
        if (kind == PARAMO_TABLE_DENSE && table_dense_own(t, key, 1))
            exit(1);
        if (table_put_rows(t, &key, 1, false, row))
            exit(1);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct table_reducing at = {0};
        struct reduced found;
        if (reduced_init(&found, &what[i]))
            exit(1);
        while (!at.done) {
            double start = cpu();
            table_reduce_step(t, NULL, &at, (size_t)2 * SCAN_STEP_KEYS, &found, NULL, NULL);
            step_took(cpu() - start);
        }
        report(i ? "the best of long rows" : "the sum of long rows", ROWS, dim);
        reduced_fini(&found);
    }
    free(row);
    table_destroy(t);
}

int main(int argc, char **argv)
{
    uint64_t most = argc > 1 ? strtoull(argv[1], NULL, 10) : 50000000;
    tables(4096);
    many(0, 0, most);
    many(1000, 4000, 1);
    long_rows(PARAMO_TABLE_DENSE, 1 << 24);
    long_rows(PARAMO_TABLE_SPARSE, 1 << 24);
    routing(CHAIN_STREAM_ENTRIES);
    evacuated(1000);
    sliced(10000000);
    senders(1000, 1);
    senders(10000, 1);
    senders(SHARD_SENDERS_MAX, 1);
    senders(1000, 1000); /* each with almost a window of them */
    for (uint64_t rows = most / 5; rows <= most; rows += most - most / 5)
        clear(rows, 1);
    clear(most / 5, 16);
    for (uint64_t rows = most / 5; rows <= most; rows += most - most / 5)
        given_up(rows, 1);
    given_up(most / 5, 16);
    return 0;
}
