/*
 * Chains of shards on one simulated network: servers are killed, or cut off and declared dead, while clients
 * push. What was answered is there, once; copies are equal bit for bit; nobody waits for ever. Faults from a
 * seed; one seed again: test_chain_sim SEED [COUNT [MUTANT]]. The test makes the views, as the scheduler
 * will: the dead are dropped from every chain, and each server takes the view at its own time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/chained.h"
#include "worker/client_impl.h"
#include "worker/support_world.h"

enum { DENSE, SPARSE, MOMENTUM, TABLES };
enum { SEEDS = 200, CLIENTS = 3, SERVERS = 4, KEYS = 512, ACTIONS = 140, PER_REQUEST = 24 };

static uint64_t first_seed = 1;
static unsigned seeds = SEEDS;

struct op {
    struct op *next;
    unsigned client;
    uint64_t ts;
    uint64_t *keys;
    float *vals;
};

struct run {
    struct world w;
    uint64_t seed;
    double model[TABLES][KEYS];
    struct op *ops;
    unsigned gone, apart;                               /* servers dead; cut off (SERVERS: none) */
    uint64_t view_at[CLIENTS], server_view_at[SERVERS]; /* when each takes the present view; 0: has it */
    uint64_t dead_at, heal_at;
};

static uint64_t draw(struct run *r, uint64_t below)
{
    return sim_random(r->w.sim) % below;
}

#define check(r, condition)                                                                                  \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            fail_msg("seed %llu, line %d: %s", (unsigned long long)(r)->seed, __LINE__, #condition);         \
    } while (0)

static uint64_t key_of(unsigned table, unsigned i)
{
    return table == DENSE ? i : i * (UINT64_MAX / KEYS);
}

static void issue(struct run *r)
{
    struct op *op = calloc(1, sizeof *op);
    unsigned table = (unsigned)draw(r, TABLES), kind = (unsigned)draw(r, 4);
    size_t n = 0;
    op->client = (unsigned)draw(r, CLIENTS);
    op->keys = malloc(KEYS * sizeof *op->keys);
    op->vals = calloc(KEYS, sizeof *op->vals);
    kind = kind > REQUEST_PUSHPULL ? REQUEST_PUSH : kind;
    if (table == MOMENTUM) /* its order shows in the bits: copies only */
        kind = REQUEST_PUSH;
    for (unsigned i = (unsigned)draw(r, KEYS / PER_REQUEST); i < KEYS;
         i += 1 + (unsigned)draw(r, 2 * KEYS / PER_REQUEST)) {
        op->vals[n] = (float)(1 + draw(r, 9)) / (table == MOMENTUM ? 7 : 1);
        if (kind != REQUEST_PULL)
            r->model[table][i] += (double)op->vals[n];
        op->keys[n++] = key_of(table, i);
    }
    paramo_kv kv = {.size = sizeof kv, .keys = op->keys, .n = n, .vals = op->vals, .vals_len = n};
    struct client_call call = {.kind = (enum request_kind)kind, .table = &r->w.tables[table], .kv = &kv};
    if (client_issue(r->w.clients[op->client].client, &call, &op->ts))
        fail_msg("seed %llu: issue: %s", (unsigned long long)r->seed, err_text());
    op->next = r->ops;
    r->ops = op;
}

/* ---- deaths ---- */

static struct simnet_link *link_of(struct run *r, unsigned from, unsigned to)
{
    char name[16];
    struct simnet_node *a, *b;
    struct simnet_link *link;
    (void)snprintf(name, sizeof name, "s%u", from);
    check(r, simnet_node(r->w.net, name, &a) == PARAMO_OK);
    (void)snprintf(name, sizeof name, "s%u", to);
    check(r, simnet_node(r->w.net, name, &b) == PARAMO_OK);
    check(r, simnet_link(r->w.net, a, b, &link) == PARAMO_OK);
    return link;
}

static void part(struct run *r, unsigned server, bool cut, bool both)
{
    for (unsigned other = 0; other < SERVERS; other++)
        if (other != server) {
            link_of(r, server, other)->cut = cut;
            if (both || !cut)
                link_of(r, other, server)->cut = cut;
        }
}

static void drop(struct run *r, unsigned server)
{
    struct world *w = &r->w;
    world_server_gone(w, server);
    for (unsigned s = 0; s < SERVERS; s++)
        r->server_view_at[s] =
            w->servers[s].up && s != server ? sim_now(w->sim) + 1 + draw(r, 2 * ENV_SEC) : 0;
    for (unsigned c = 0; c < CLIENTS; c++)
        r->view_at[c] = sim_now(w->sim) + 1 + draw(r, 3 * ENV_SEC);
}

static void deliver_views(struct run *r, bool now)
{
    uint64_t at = sim_now(r->w.sim);
    for (unsigned s = 0; s < SERVERS; s++)
        if (r->server_view_at[s] && (now || r->server_view_at[s] <= at)) {
            r->server_view_at[s] = 0;
            world_server_view(&r->w, s);
        }
    for (unsigned c = 0; c < CLIENTS; c++) {
        bool wanted = r->w.clients[c].wanted_view >= r->w.number;
        if (r->view_at[c] && (now || wanted || r->view_at[c] <= at)) {
            r->view_at[c] = 0;
            world_client_view(&r->w, c);
        }
    }
}

static unsigned living(struct run *r)
{
    unsigned s;
    do
        s = (unsigned)draw(r, SERVERS);
    while (!r->w.servers[s].alive);
    return s;
}

static void faults_go_on(struct run *r, bool now)
{
    uint64_t at = sim_now(r->w.sim);
    if (r->apart < SERVERS && r->dead_at && (now || r->dead_at <= at)) {
        r->dead_at = 0;
        drop(r, r->apart);
    }
    if (r->apart < SERVERS && !r->dead_at && (now || r->heal_at <= at)) {
        part(r, r->apart, false, true);
        if (!r->w.servers[r->apart].alive) /* the news reaches it later, if at all */
            r->server_view_at[r->apart] = at + 1 + draw(r, 3 * ENV_SEC);
        r->apart = SERVERS;
    }
}

static void act(struct run *r)
{
    switch (draw(r, 24)) {
    case 0: /* killed */
        if (r->gone < r->w.replicas && r->apart == SERVERS) {
            unsigned s = living(r);
            r->gone++;
            world_server_stop(&r->w, s);
            r->w.servers[s].alive = true; /* for all that anybody knows */
            deliver_views(r, true);
            r->apart = s;
            r->dead_at = sim_now(r->w.sim) + draw(r, ENV_SEC);
            r->heal_at = 0;
        }
        break;
    case 1: /* cut off from the others, but not from clients; perhaps declared dead */
        if (r->apart == SERVERS) {
            bool dies = r->gone < r->w.replicas && draw(r, 2);
            r->gone += dies;
            r->apart = living(r);
            deliver_views(r, true);
            part(r, r->apart, true, draw(r, 2));
            r->dead_at = dies ? sim_now(r->w.sim) + draw(r, 3 * ENV_SEC) : 0;
            r->heal_at = sim_now(r->w.sim) + draw(r, 6 * ENV_SEC);
        }
        break;
    case 2: { /* connections break */
        unsigned s = living(r);
        if (r->w.servers[s].up)
            van_sim_reset(r->w.servers[s].van, UINT32_MAX);
        break;
    }
    default:
        issue(r);
    }
}

/* ---- a run ---- */

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static void start(struct run *r, uint64_t seed)
{
    memset(r, 0, sizeof *r);
    r->seed = seed;
    r->apart = SERVERS;
    world_init(&r->w, true, seed);
    r->w.timeout_ms = 3600 * 1000;
    r->w.replicas = 1 + (unsigned)(seed % 3);
    struct simnet_link *l = simnet_defaults(r->w.net);
    l->loss_ppm = (uint32_t)draw(r, 50000);
    l->repeat_ppm = (uint32_t)draw(r, 50000);
    l->late_ppm = (uint32_t)draw(r, 100000);
    l->late_ns = draw(r, 300 * ENV_MS);
    world_table(&r->w, PARAMO_TABLE_DENSE, 1)->rows = KEYS;
    world_table(&r->w, PARAMO_TABLE_SPARSE, 1);
    paramo_table_options *o = world_table(&r->w, PARAMO_TABLE_SPARSE, 1);
    o->optimizer = PARAMO_OPT_MOMENTUM;
    world_start(&r->w, SERVERS, SERVERS, CLIENTS);
    unsigned faulty = 1u << VAN_REQUEST | 1u << VAN_ANSWER | (seed % 2 ? 1u << VAN_CHAIN : 0);
    for (unsigned s = 0; s < SERVERS; s++)
        van_sim_set_faulty(r->w.servers[s].van, faulty);
    for (unsigned c = 0; c < CLIENTS; c++)
        van_sim_set_faulty(r->w.clients[c].van, faulty);
}

/* Each member of an arc's chain has the same row, state included. */
static void compare(struct run *r)
{
    for (unsigned t = 0; t < TABLES; t++)
        for (unsigned i = 0; i < KEYS; i++) {
            uint64_t key = key_of(t, i);
            float first[2] = {0}, row[2];
            for (unsigned level = 0; level <= r->w.replicas; level++) {
                const struct shard_table *owner = shard_table_find(r->w.servers[living(r)].shard, t + 1);
                unsigned arc = ring_arc(ring_position(&owner->placement, key));
                uint16_t m = level ? r->w.follower[level].owner[arc] : r->w.ring.owner[arc];
                if (m == RING_NOBODY)
                    break;
                memset(row, 0, sizeof row);
                const struct shard_table *st = shard_table_find(r->w.servers[m].shard, t + 1);
                paramo_err err = table_get_rows(st->table, &key, 1, true, row);
                check(r, !err || err == PARAMO_E_NOT_FOUND);
                if (level && memcmp(row, first, sizeof row) != 0)
                    fail_msg("seed %llu: table %u key %u: owner %g %g, replica %u %g %g",
                             (unsigned long long)r->seed, t, i, (double)first[0], (double)first[1], level,
                             (double)row[0], (double)row[1]);
                memcpy(first, row, sizeof row);
            }
        }
}

static void explain(struct run *r)
{
    for (unsigned s = 0; s < SERVERS; s++) {
        const struct world_server *server = &r->w.servers[s];
        if (!server->up)
            continue;
        const struct chain *c = server->shard->chain;
        fprintf(stderr, "s%u alive %d view %llu of %llu shut %d failed %d order %llu\n", s, server->alive,
                (unsigned long long)server->shard->view->number, (unsigned long long)r->w.number, c->shut,
                c->failed, (unsigned long long)c->order);
        for (const struct chain_stream *st = c->streams; st; st = st->next)
            fprintf(stderr,
                    "  to node %u gen %u: count %zu head %llu acks %d; seq %llu acked %llu gate %llu conn %d "
                    "dial %d unsent %d heard %lld ms ago\n",
                    st->to.node, st->generation, st->count,
                    st->entries.head
                        ? (unsigned long long)container_of(st->entries.head, struct chain_entry, node)->m.seq
                        : 0,
                    st->entries.head ? container_of(st->entries.head, struct chain_entry, node)->acked : -1,
                    (unsigned long long)st->seq, (unsigned long long)st->acked, (unsigned long long)st->gate,
                    st->conn != NULL, st->dial != NULL, st->unsent != NULL,
                    (long long)(sim_now(r->w.sim) - st->heard_at) / 1000000);
        for (const struct chain_source *so = c->sources; so; so = so->next)
            fprintf(stderr, "  from node %u gen %u: received %llu acked %llu conn %d\n", so->from.node,
                    so->generation, (unsigned long long)so->received, (unsigned long long)so->acked,
                    so->conn != NULL);
        for (const struct peer *peer = server->shard->peers; peer; peer = peer->next)
            fprintf(stderr, "  peer %u waiting %zu blocked %d pending %d\n", peer->sender->node,
                    peer->waiting_count, peer->blocked, peer->sender->pending != NULL);
    }
}

static void verify(struct run *r)
{
    for (unsigned c = 0; c < CLIENTS; c++) {
        paramo_err err = client_wait_all(r->w.clients[c].client, 200 * 1000);
        if (err)
            explain(r);
        if (err)
            fail_msg("seed %llu, client %u: %s: %s", (unsigned long long)r->seed, c, err_name(err),
                     err_text());
    }
    (void)sim_run(r->w.sim, never, NULL, sim_now(r->w.sim) + 5 * ENV_SEC);
    for (struct op *op = r->ops; op; op = op->next)
        if (client_wait(r->w.clients[op->client].client, op->ts, 1))
            fail_msg("seed %llu: request %llu: %s", (unsigned long long)r->seed, (unsigned long long)op->ts,
                     err_text());
    for (unsigned t = DENSE; t <= SPARSE; t++)
        for (unsigned i = 0; i < KEYS; i++) {
            uint64_t key = key_of(t, i), ts;
            float val = -1;
            check(r, world_pull(&r->w, 0, t, &key, 1, &val, 1, &ts) == PARAMO_OK);
            check(r, world_wait(&r->w, 0, ts) == PARAMO_OK);
            if ((double)val != r->model[t][i])
                fail_msg("seed %llu: table %u key %u is %g, pushed were %g", (unsigned long long)r->seed, t,
                         i, (double)val, r->model[t][i]);
        }
    compare(r);
    for (unsigned s = 0; s < SERVERS; s++) {
        if (!r->w.servers[s].up)
            continue;
        check(r, !r->w.servers[s].shard->chain->failed);
        for (const struct chain_stream *st = r->w.servers[s].shard->chain->streams; st; st = st->next)
            check(r, r->w.servers[s].alive == false || st->count == 0);
    }
}

static void run_seed(uint64_t seed)
{
    struct run *r = malloc(sizeof *r);
    start(r, seed);
    for (unsigned i = 0; i < ACTIONS; i++) {
        act(r);
        (void)sim_run(r->w.sim, never, NULL, sim_now(r->w.sim) + draw(r, 80 * ENV_MS));
        faults_go_on(r, false);
        deliver_views(r, false);
    }
    faults_go_on(r, true);
    faults_go_on(r, true);
    deliver_views(r, true);
    verify(r);
    for (struct op *op; (op = r->ops);) {
        r->ops = op->next;
        free(op->keys);
        free(op->vals);
        free(op);
    }
    world_fini(&r->w);
    free(r);
}

static void test_chains(void **state)
{
    (void)state;
    for (unsigned i = 0; i < seeds; i++)
        run_seed(first_seed + i);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
        seeds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    }
    if (argc > 3 && !mutant_choose(argv[3])) /* in a build that has them: which seed finds it? */
        return 2;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
