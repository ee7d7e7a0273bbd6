#include "worker/support_play.h"
#include "server/replication/chain_impl.h"
#include "server/shard/peers.h"
#include "server/shard/shard_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/client_impl.h"
#include "worker/scan.h"

enum { PER_REQUEST = 24, READ_ALL_EVERY = 13 };

struct play_op {
    struct play_op *next;
    struct play *p;
    enum request_kind kind;
    unsigned client, table;
    uint64_t ts;
    size_t n;
    unsigned *index;  /* of its keys */
    double *at_least; /* what was acknowledged of each when it was issued */
    uint64_t *keys;
    float *vals, *pushed;
    struct client_stats stats;
    struct scan_batch *batch;
    bool moved; /* a scan that was told so: it continues elsewhere */
};

/* ---- seeds -------------------------------------------------------------------------------------------- */

static uint64_t first_seed = 1;
static unsigned seeds;
static void (*play_one)(uint64_t seed);

static void all_seeds(void **state)
{
    (void)state;
    for (unsigned i = 0; i < seeds; i++)
        play_one(first_seed + i);
}

int play_main(int argc, char **argv, unsigned count, void (*one)(uint64_t seed))
{
    seeds = UNIT_SEEDS(count);
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
        seeds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    }
    play_one = one;
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_seeds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

unsigned play_seeds(void)
{
    return seeds;
}

/* ---- the world ---------------------------------------------------------------------------------------- */

void play_open(struct play *p, uint64_t seed)
{
    memset(p, 0, sizeof *p);
    p->seed = seed;
    p->apart = WORLD_SERVERS;
    world_init(&p->w, true, seed);
    p->w.timeout_ms = 3600 * 1000;
}

void play_links(struct play *p, uint32_t loss, uint32_t repeat, uint32_t late)
{
    struct simnet_link *l = simnet_defaults(p->w.net);
    l->loss_ppm = (uint32_t)play_draw(p, loss);
    l->repeat_ppm = (uint32_t)play_draw(p, repeat);
    l->late_ppm = (uint32_t)play_draw(p, late);
    l->late_ns = play_draw(p, 300 * ENV_MS);
}

void play_faulty(struct play *p, unsigned classes)
{
    for (unsigned s = 0; s < p->w.servers_count; s++)
        van_sim_set_faulty(p->w.servers[s].van, classes);
    for (unsigned c = 0; c < p->w.clients_count; c++)
        van_sim_set_faulty(p->w.clients[c].van, classes);
}

void play_close(struct play *p)
{
    world_fini(&p->w); /* requests that are out end, and have their callbacks */
    for (struct play_op *op; (op = p->ops);) {
        p->ops = op->next;
        free(op->index);
        free(op->at_least);
        free(op->keys);
        free(op->vals);
        free(op->pushed);
        if (op->batch) {
            free(op->batch->keys);
            free(op->batch->lens);
            free(op->batch->vals);
        }
        free(op->batch);
        free(op);
    }
}

uint64_t play_draw(struct play *p, uint64_t below)
{
    return sim_random(p->w.sim) % below;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

void play_run(struct play *p, uint64_t ns)
{
    (void)sim_run(p->w.sim, never, NULL, sim_now(p->w.sim) + ns);
}

struct simnet_link *play_link(struct play *p, const char *from, unsigned i, const char *to, unsigned k)
{
    char name[16];
    struct simnet_node *a, *b;
    struct simnet_link *link;
    (void)snprintf(name, sizeof name, "%s%u", from, i);
    play_check(p, simnet_node(p->w.net, name, &a) == PARAMO_OK);
    (void)snprintf(name, sizeof name, "%s%u", to, k);
    play_check(p, simnet_node(p->w.net, name, &b) == PARAMO_OK);
    play_check(p, simnet_link(p->w.net, a, b, &link) == PARAMO_OK);
    return link;
}

void play_part(struct play *p, unsigned server, bool cut, bool both)
{
    for (unsigned other = 0; other < p->w.servers_count; other++)
        if (other != server) {
            play_link(p, "s", server, "s", other)->cut = cut;
            if (both || !cut)
                play_link(p, "s", other, "s", server)->cut = cut;
        }
}

unsigned play_living(struct play *p)
{
    unsigned s;
    do
        s = (unsigned)play_draw(p, p->w.servers_count);
    while (!p->w.servers[s].alive);
    return s;
}

static void owners_check(struct play *p)
{
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        if (p->owner[a] != p->w.ring.owner[a] || !p->owner_since[a]) {
            p->owner[a] = p->w.ring.owner[a];
            p->owner_since[a] = p->w.number;
        }
}

void play_views(struct play *p, bool now)
{
    owners_check(p);
    uint64_t at = sim_now(p->w.sim);
    for (unsigned s = 0; s < p->w.servers_count; s++)
        if (p->server_view_at[s] && (now || p->server_view_at[s] <= at)) {
            p->server_view_at[s] = 0;
            p->server_view[s] = p->w.number;
            world_server_view(&p->w, s);
        }
    for (unsigned c = 0; c < p->w.clients_count; c++) {
        bool wanted = p->w.clients[c].wanted_view >= p->w.number;
        if (p->view_at[c] && (now || wanted || p->view_at[c] <= at)) {
            p->view_at[c] = 0;
            world_client_view(&p->w, c);
        }
    }
}

/* ---- pushes ------------------------------------------------------------------------------------------- */

void play_tables(struct play *p)
{
    world_table(&p->w, PARAMO_TABLE_DENSE, 1)->rows = PLAY_KEYS;
    world_table(&p->w, PARAMO_TABLE_SPARSE, 1);
    world_table(&p->w, PARAMO_TABLE_SPARSE, 1)->optimizer = PARAMO_OPT_MOMENTUM;
}

uint64_t play_key(unsigned table, unsigned i)
{
    return table == PLAY_DENSE ? i : i * (UINT64_MAX / PLAY_KEYS);
}

/* A value that is read has what was acknowledged before the request was issued, and nothing that was not pushed
 * before it ended: whichever shard serves it, and whatever views that shard knows. */
static void check_values(const struct play_op *op)
{
    const struct play *p = op->p;
    for (size_t i = 0; i < op->n; i++) {
        double value = (double)op->vals[i], most = p->model[op->table][op->index[i]];
        double least = op->at_least[i] + (op->kind == REQUEST_PUSHPULL ? (double)op->pushed[i] : 0);
        if (value < least || value > most)
            fail_msg("seed %llu: a stale read: client %u pulled %g of table %u key %u, %g to %g are right",
                     (unsigned long long)p->seed, op->client, value, op->table, op->index[i], least, most);
    }
}

/* Rows that were acknowledged when it began are counted, each once, and no others than were pushed. */
static void check_count(const struct play_op *op)
{
    const struct play *p = op->p;
    uint64_t least = 0, most = 0;
    for (unsigned i = 0; i < PLAY_KEYS; i++) {
        least += op->at_least[i] > 0 || op->table == PLAY_DENSE;
        most += p->model[op->table][i] > 0 || op->table == PLAY_DENSE;
    }
    if (op->stats.rows < least || op->stats.rows > most)
        fail_msg("seed %llu: table %u is said to have %llu rows, %llu to %llu are right",
                 (unsigned long long)p->seed, op->table, (unsigned long long)op->stats.rows,
                 (unsigned long long)least, (unsigned long long)most);
}

/* Ascending; each row as a pull would have it; and of the keys that the shard owned by the view that it has
 * answered by, and owns still, each that has been acknowledged. */
static void check_scan(const struct play_op *op)
{
    const struct play *p = op->p;
    const struct scan_batch *b = op->batch;
    const float *vals = (const float *)(const void *)b->vals;
    bool dense = op->table == PLAY_DENSE;
    const struct ring_placement placement = {.kind = dense ? PARAMO_PLACE_DENSE : PARAMO_PLACE_MIXED,
                                             .rows = dense ? PLAY_KEYS : 0};
    size_t row = 0;
    for (unsigned i = 0; i < PLAY_KEYS; i++) {
        uint64_t key = play_key(op->table, i);
        if (key < b->cursor || (b->more && key > b->keys[b->n - 1]))
            continue;
        bool there = row < b->n && b->keys[row] == key;
        double value = there ? (double)vals[row] : 0;
        unsigned partition = ring_partition(ring_position(&placement, key));
        bool own = p->owner[partition] == b->shard && b->partitions_view >= p->owner_since[partition];
        if (value > p->model[op->table][i] || ((there || own) && value < op->at_least[i]))
            fail_msg("seed %llu: a scan of shard %u has %g of table %u key %u, %g to %g are right",
                     (unsigned long long)p->seed, b->shard, value, op->table, i, op->at_least[i],
                     p->model[op->table][i]);
        row += there;
    }
    if (row != b->n)
        fail_msg("seed %llu: a scan of shard %u has keys that no worker pushed, or out of order",
                 (unsigned long long)p->seed, b->shard);
}

static void ended(void *arg, uint64_t ts, paramo_err status)
{
    struct play_op *op = arg;
    (void)ts;
    op->moved = op->kind == REQUEST_SCAN && status == PARAMO_E_MOVED;
    if (status)
        return; /* the end says so */
    if (op->kind == REQUEST_STAT)
        check_count(op);
    if (op->kind == REQUEST_SCAN)
        check_scan(op);
    if (op->kind != REQUEST_PUSH && op->table != PLAY_MOMENTUM)
        check_values(op);
    for (size_t i = 0; i < op->n && op->kind <= REQUEST_PUSHPULL && op->kind != REQUEST_PULL; i++)
        op->p->acknowledged[op->table][op->index[i]] += (double)op->pushed[i];
}

static void issue(struct play *p, struct play_op *op, const struct client_call *call)
{
    if (client_issue(p->w.clients[op->client].client, call, &op->ts))
        fail_msg("seed %llu: issue: %s", (unsigned long long)p->seed, err_text());
    op->next = p->ops;
    p->ops = op;
}

/* Counts a table, or goes through some of it at one shard. */
static void issue_all(struct play *p)
{
    struct play_op *op = calloc(1, sizeof *op);
    op->p = p;
    op->kind = play_draw(p, 2) ? REQUEST_STAT : REQUEST_SCAN;
    op->table = (unsigned)play_draw(p, PLAY_MOMENTUM);
    op->client = (unsigned)play_draw(p, p->w.clients_count);
    op->at_least = malloc(PLAY_KEYS * sizeof *op->at_least);
    memcpy(op->at_least, p->acknowledged[op->table], PLAY_KEYS * sizeof *op->at_least);
    unsigned shard = play_living(p);
    if (op->kind == REQUEST_SCAN && p->w.servers[shard].up) {
        op->batch = calloc(1, sizeof *op->batch);
        op->batch->shard = shard;
        op->batch->id = ++p->issued;
        op->batch->cursor = play_draw(p, 2) ? play_key(op->table, (unsigned)play_draw(p, PLAY_KEYS)) : 0;
    } else {
        op->kind = REQUEST_STAT;
    }
    paramo_request_options options = {.size = sizeof options, .callback = ended, .callback_arg = op};
    issue(p, op,
          &(struct client_call){.kind = op->kind,
                                .table = &p->w.tables[op->table],
                                .options = &options,
                                .stats = op->kind == REQUEST_STAT ? &op->stats : NULL,
                                .batch = op->batch});
}

void play_issue(struct play *p)
{
    if (!p->few && ++p->issued % READ_ALL_EVERY == 0) {
        issue_all(p);
        return;
    }
    struct play_op *op = calloc(1, sizeof *op);
    unsigned kind;
    op->p = p;
    op->table = p->few ? PLAY_DENSE : (unsigned)play_draw(p, PLAY_TABLES);
    kind = (unsigned)play_draw(p, 4);
    op->client = (unsigned)play_draw(p, p->w.clients_count);
    op->keys = malloc(PLAY_KEYS * sizeof *op->keys);
    op->index = malloc(PLAY_KEYS * sizeof *op->index);
    op->at_least = malloc(PLAY_KEYS * sizeof *op->at_least);
    op->vals = calloc(PLAY_KEYS, sizeof *op->vals);
    op->pushed = malloc(PLAY_KEYS * sizeof *op->pushed);
    kind = kind > REQUEST_PUSHPULL ? REQUEST_PUSH : kind;
    if (p->few)
        kind = op->client ? REQUEST_PULL : REQUEST_PUSH;
    if (op->table == PLAY_MOMENTUM) /* its order shows in the bits: copies only */
        kind = REQUEST_PUSH;
    op->kind = (enum request_kind)kind;
    for (unsigned i = p->few ? 0 : (unsigned)play_draw(p, PLAY_KEYS / PER_REQUEST);
         i < (p->few ? p->few : PLAY_KEYS);
         i += p->few ? 1 : 1 + (unsigned)play_draw(p, 2 * PLAY_KEYS / PER_REQUEST)) {
        size_t n = op->n++;
        op->vals[n] = op->pushed[n] = (float)(1 + play_draw(p, 9)) / (op->table == PLAY_MOMENTUM ? 7 : 1);
        op->at_least[n] = p->acknowledged[op->table][i];
        if (kind != REQUEST_PULL)
            p->model[op->table][i] += (double)op->vals[n];
        op->index[n] = i;
        op->keys[n] = play_key(op->table, i);
    }
    paramo_kv kv = {.size = sizeof kv, .keys = op->keys, .n = op->n, .vals = op->vals, .vals_len = op->n};
    paramo_request_options options = {.size = sizeof options, .callback = ended, .callback_arg = op};
    struct client_call call = {
        .kind = op->kind, .table = &p->w.tables[op->table], .kv = &kv, .options = &options};
    issue(p, op, &call);
}

/* ---- the end ------------------------------------------------------------------------------------------ */

static void verify_requests(struct play *p)
{
    for (unsigned c = 0; c < p->w.clients_count; c++) {
        paramo_err err = client_wait_all(p->w.clients[c].client, 200 * 1000);
        err = err == PARAMO_E_MOVED ? PARAMO_OK : err; /* a scan, see below */
        if (err)
            play_explain(p);
        if (err)
            fail_msg("seed %llu, client %u: %s: %s", (unsigned long long)p->seed, c, err_name(err),
                     err_text());
    }
    play_run(p, 5 * ENV_SEC);
    for (struct play_op *op = p->ops; op; op = op->next)
        if (!op->moved && client_wait(p->w.clients[op->client].client, op->ts, 1))
            fail_msg("seed %llu: request %llu: %s", (unsigned long long)p->seed, (unsigned long long)op->ts,
                     err_text());
}

static void verify_sums(struct play *p)
{
    for (unsigned t = PLAY_DENSE; t <= PLAY_SPARSE; t++)
        for (unsigned i = 0; i < PLAY_KEYS; i++) {
            uint64_t key = play_key(t, i), ts;
            float val = -1;
            play_check(p, world_pull(&p->w, 0, t, &key, 1, &val, 1, &ts) == PARAMO_OK);
            play_check(p, world_wait(&p->w, 0, ts) == PARAMO_OK);
            if ((double)val != p->model[t][i])
                fail_msg("seed %llu: table %u key %u is %g, pushed were %g", (unsigned long long)p->seed, t,
                         i, (double)val, p->model[t][i]);
        }
}

static void verify_copies(struct play *p)
{
    for (unsigned t = 0; t < PLAY_TABLES; t++)
        for (unsigned i = 0; i < PLAY_KEYS; i++) {
            uint64_t key = play_key(t, i);
            float first[2] = {0}, row[2];
            for (unsigned level = 0; level <= p->w.replicas && level <= p->w.options[t].replicas; level++) {
                const struct shard_table *any = shard_table_find(p->w.servers[play_living(p)].shard, t + 1);
                unsigned partition = ring_partition(ring_position(&any->placement, key));
                uint16_t m = level ? p->w.follower[level].owner[partition] : p->w.ring.owner[partition];
                if (m == RING_NONE)
                    break;
                memset(row, 0, sizeof row);
                const struct shard_table *st = shard_table_find(p->w.servers[m].shard, t + 1);
                paramo_err err = table_get_rows(st->table, &key, 1, true, row);
                play_check(p, !err || err == PARAMO_E_NOT_FOUND);
                if (level && memcmp(row, first, sizeof row) != 0)
                    fail_msg("seed %llu: table %u key %u: owner %g %g, replica %u %g %g",
                             (unsigned long long)p->seed, t, i, (double)first[0], (double)first[1], level,
                             (double)row[0], (double)row[1]);
                memcpy(first, row, sizeof row);
            }
        }
}

void play_verify(struct play *p)
{
    verify_requests(p);
    verify_sums(p);
    verify_copies(p);
    for (unsigned s = 0; s < p->w.servers_count; s++) {
        const struct world_server *server = &p->w.servers[s];
        if (!server->up)
            continue;
        const struct chain *c = server->shard->chain;
        play_check(p, !c->failed);
        play_check(p, !server->alive || !(c->migration_source || c->migration_target));
        for (const struct chain_stream *st = c->streams; st; st = st->next)
            play_check(p, !server->alive || st->count == 0);
    }
}

static void explain_chain(const struct play *p, const struct chain *c)
{
    for (const struct chain_stream *st = c->streams; st; st = st->next) {
        const struct chain_entry *head =
            st->entries.head ? container_of(st->entries.head, struct chain_entry, node) : NULL;
        fprintf(stderr,
                "  to node %u gen %u: count %zu head %llu acks %d; seq %llu acked %llu gate %llu conn %d "
                "connector %d unsent %d heard %lld ms ago\n",
                st->to.node, st->generation, st->count, head ? (unsigned long long)head->m.seq : 0,
                head ? head->acked : -1, (unsigned long long)st->seq, (unsigned long long)st->acked,
                (unsigned long long)st->gate, st->conn != NULL, st->connector != NULL, st->unsent != NULL,
                (long long)(sim_now(p->w.sim) - st->heard_at) / 1000000);
    }
    for (const struct chain_source *so = c->sources; so; so = so->next)
        fprintf(stderr, "  from node %u gen %u: received %llu acked %llu conn %d\n", so->from.node,
                so->generation, (unsigned long long)so->received, (unsigned long long)so->acked,
                so->conn != NULL);
    fprintf(stderr, "  give %p take %p\n", (void *)c->migration_source, (void *)c->migration_target);
}

void play_explain(const struct play *p)
{
    for (unsigned s = 0; s < p->w.servers_count; s++) {
        const struct world_server *server = &p->w.servers[s];
        if (!server->up)
            continue;
        const struct chain *c = server->shard->chain;
        fprintf(stderr, "s%u alive %d view %llu of %llu shut %d failed %d order %llu\n", s, server->alive,
                (unsigned long long)server->shard->view->number, (unsigned long long)p->w.number, c->shut,
                c->failed, (unsigned long long)c->order);
        explain_chain(p, c);
        for (const struct peer *peer = server->shard->peers->first; peer; peer = peer->next)
            fprintf(stderr, "  peer %u waiting %zu blocked %d pending %d\n", peer->sender->id.node,
                    peer->deferred_count, peer->blocked, peer->sender->pending != NULL);
    }
}
