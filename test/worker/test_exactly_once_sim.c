/*
 * Every push is applied exactly once, although messages are lost, repeated and reordered, links are cut and
 * partitions move (docs/ARCHITECTURE.md, section 5): several clients and shards on one simulated network, faults
 * from a seed, sums of small integers compared exactly at the end.
 *
 * Partitions move only while they hold nothing, and only to a server that had none before: what partitions
 * with data need (records that travel with them) is migration's work. One seed again: test_exactly_once_sim
 * SEED.
 */
#include <stdlib.h>
#include <string.h>

#include "server/shard/shard_impl.h"
#include "server/shard/shard_tables.h"
#include "worker/chunk.h"
#include "worker/client_impl.h"
#include "worker/numbers.h"
#include "worker/requests.h"
#include "worker/support_play.h"

enum { DENSE, SPARSE, USER, TABLES };
enum {
    SEEDS = 200,
    SEEDS_SHOWN = 20,
    CLIENTS = 3,
    SERVERS = 4,
    OWNERS = 2,
    KEYS = 1024,
    ACTIONS = 150,
    KEYS_PER_REQUEST = 24
};

static uint64_t retries, moved; /* by all seeds */

/* One request of the test's, with all it needs until it is done. */
struct op {
    struct op *next;
    struct run *run;
    unsigned client, table;
    bool push, callback;
    uint64_t ts;
    size_t n;
    uint64_t *keys;
    float *vals;
    unsigned completions;
    paramo_err status;
};

struct late {
    struct sim_event event;
    struct run *run;
    struct shard_request *request;
    const struct shard_request_info *info;
};

struct run {
    struct play p;
    double model[TABLES][KEYS];
    double handled[KEYS]; /* the handler's own state */
    uint32_t user_pulls;
    struct op *ops;
    unsigned issued, migrations;
    uint64_t heal_at;
    unsigned cut_client, cut_server;
};

static uint64_t key_of(unsigned table, unsigned i)
{
    return table == DENSE ? i : i * UINT64_C(0x9e3779b97f4a7c15) / 7;
}

/* ---- the handler: adds, and answers now or after a while ---- */

static unsigned index_of(uint64_t key)
{
    for (unsigned i = 0; i < KEYS; i++) {
        if (key_of(USER, i) == key)
            return i;
    }
    abort();
}

static void answer(struct run *r, struct shard_request *request, const struct shard_request_info *info)
{
    float vals[KEYS];
    for (size_t i = 0; i < info->n; i++)
        vals[i] = (float)r->handled[index_of(info->keys[i])];
    play_check(&r->p, shard_answer(request, vals, info->pull ? info->n : 0, NULL) == PARAMO_OK);
}

static void answer_late(struct sim_event *event)
{
    struct late *late = container_of(event, struct late, event);
    answer(late->run, late->request, late->info);
    free(late);
}

static void handle(void *arg, struct shard_request *request, const struct shard_request_info *info)
{
    struct run *r = arg;
    const float *vals = info->vals;
    for (size_t i = 0; i < info->n && info->push; i++)
        r->handled[index_of(info->keys[i])] += (double)vals[i];
    if (play_draw(&r->p, 3)) {
        answer(r, request, info);
        return;
    }
    struct late *late = calloc(1, sizeof *late);
    late->event.fire = answer_late;
    late->run = r;
    late->request = request;
    late->info = info;
    play_check(&r->p, sim_schedule(r->p.w.sim, &late->event,
                                   sim_now(r->p.w.sim) + play_draw(&r->p, 400 * ENV_MS)) == PARAMO_OK);
}

/* ---- requests ---- */

static void on_done(void *arg, uint64_t ts, paramo_err status)
{
    struct op *op = arg;
    (void)ts;
    op->completions++;
    op->status = status;
}

static void issue(struct run *r)
{
    struct op *op = calloc(1, sizeof *op);
    op->run = r;
    op->client = (unsigned)play_draw(&r->p, CLIENTS);
    op->table = (unsigned)play_draw(&r->p, TABLES);
    op->callback = play_draw(&r->p, 2);
    unsigned kind = (unsigned)play_draw(&r->p, 4); /* half are pushes */
    op->push = kind != REQUEST_PULL;
    if (kind > REQUEST_PUSHPULL)
        kind = REQUEST_PUSH;
    unsigned limit = r->migrations == SERVERS - OWNERS && play_draw(&r->p, 8) == 0 ? KEYS : KEYS_PER_REQUEST;
    op->keys = malloc(KEYS * sizeof *op->keys);
    op->vals = calloc(KEYS, sizeof *op->vals);
    /* Sparse keys ascend with their index too: the product is ascending modulo nothing that matters only if
     * sorted. */
    unsigned gap = KEYS / limit;
    for (unsigned i = (unsigned)play_draw(&r->p, gap); i < KEYS && op->n < limit;
         i += 1 + (unsigned)play_draw(&r->p, 2 * gap))
        op->keys[op->n++] = i;
    for (size_t i = 0; i < op->n; i++)
        op->vals[i] = (float)(1 + play_draw(&r->p, 9));
    for (size_t i = 0; i < op->n && op->push; i++)
        r->model[op->table][op->keys[i]] += (double)op->vals[i];
    /* keys in ascending order, their values with them */
    for (size_t i = 0; i < op->n; i++)
        op->keys[i] = key_of(op->table, (unsigned)op->keys[i]);
    for (size_t i = 1; i < op->n; i++) {
        uint64_t key = op->keys[i];
        float val = op->vals[i];
        size_t k = i;
        for (; k && op->keys[k - 1] > key; k--) {
            op->keys[k] = op->keys[k - 1];
            op->vals[k] = op->vals[k - 1];
        }
        op->keys[k] = key;
        op->vals[k] = val;
    }
    paramo_request_options o = {.size = sizeof o, .priority = (int32_t)play_draw(&r->p, 3)};
    if (op->callback) {
        o.callback = on_done;
        o.callback_arg = op;
    }
    paramo_kv kv = {.size = sizeof kv, .keys = op->keys, .n = op->n, .vals = op->vals, .vals_len = op->n};
    struct client_call call = {
        .kind = (enum request_kind)kind, .table = &r->p.w.tables[op->table], .kv = &kv, .options = &o};
    paramo_err err = client_issue(r->p.w.clients[op->client].client, &call, &op->ts);
    if (err)
        fail_msg("seed %llu: issue: %s", (unsigned long long)r->p.seed, err_text());
    op->next = r->ops;
    r->ops = op;
    r->issued++;
}

/* ---- moving partitions ---- */

/* Which partitions hold something: rows of sparse tables, rows of dense ones that are not 0, keys of the
 * handler.
 */
static void partitions_in_use(struct run *r, bool used[RING_PARTITIONS])
{
    memset(used, 0, RING_PARTITIONS * sizeof *used);
    for (unsigned s = 0; s < SERVERS; s++) {
        for (unsigned t = DENSE; t <= SPARSE; t++) {
            struct shard_table *table = shard_table_find(r->p.w.servers[s].shard, t + 1);
            uint64_t *keys;
            size_t n;
            play_check(&r->p, table_sorted_keys(table->table, &keys, &n) == PARAMO_OK);
            for (size_t i = 0; i < n; i++) {
                float val = 0;
                play_check(&r->p, table_pull(table->table, keys + i, 1, &val, false) == PARAMO_OK);
                if (val != 0 || t == SPARSE)
                    used[ring_partition(ring_position(&table->placement, keys[i]))] = true;
            }
            free(keys);
        }
    }
    for (unsigned i = 0; i < KEYS; i++) {
        if (r->handled[i] != 0)
            used[ring_partition(ring_position(&r->p.w.tables[USER].placement, key_of(USER, i)))] = true;
    }
}

static void migration_partitions(struct run *r)
{
    bool used[RING_PARTITIONS];
    unsigned to = OWNERS + r->migrations;
    uint64_t number = r->p.w.number + 1;
    partitions_in_use(r, used);
    r->migrations++;
    for (unsigned a = 0; a < RING_PARTITIONS; a++) {
        if (!used[a] && play_draw(&r->p, 3) == 0) {
            r->p.w.partitions_changed[r->p.w.ring.owner[a]] = number;
            r->p.w.ring.owner[a] = (uint16_t)to;
        }
    }
    r->p.w.partitions_changed[to] = number;
    world_view(&r->p.w);
    /* Shards that lose partitions know it at once (no scheduler would commit before); the others some time later. */
    for (unsigned s = 0; s < SERVERS; s++) {
        if (s == to)
            r->p.server_view_at[s] = sim_now(r->p.w.sim) + play_draw(&r->p, 2 * ENV_SEC);
        else
            world_server_view(&r->p.w, s);
    }
    for (unsigned c = 0; c < CLIENTS; c++)
        r->p.view_at[c] = sim_now(r->p.w.sim) + play_draw(&r->p, 3 * ENV_SEC);
}

/* ---- faults ---- */

static void cut(struct run *r, bool cut)
{
    play_link(&r->p, "w", r->cut_client, "s", r->cut_server)->cut = cut;
    play_link(&r->p, "s", r->cut_server, "w", r->cut_client)->cut = cut;
}

static void links_heal(struct run *r)
{
    for (unsigned c = 0; c < CLIENTS; c++) {
        for (unsigned s = 0; s < SERVERS; s++) {
            for (int back = 0; back < 2; back++) {
                struct simnet_link *l =
                    back ? play_link(&r->p, "s", s, "w", c) : play_link(&r->p, "w", c, "s", s);
                l->loss_ppm = l->repeat_ppm = l->late_ppm = 0;
                l->cut = false;
            }
        }
    }
}

/* ---- a run ---- */

static void run_start(struct run *r, uint64_t seed)
{
    memset(r, 0, sizeof *r);
    play_open(&r->p, seed);
    r->p.w.handler = handle;
    r->p.w.handler_arg = r;
    play_links(&r->p, 200000, 200000, 300000);
    world_table(&r->p.w, PARAMO_TABLE_DENSE, 1)->rows = KEYS;
    world_table(&r->p.w, PARAMO_TABLE_SPARSE, 1);
    world_table(&r->p.w, PARAMO_TABLE_USER, 1);
    world_start(&r->p.w, SERVERS, OWNERS, CLIENTS);
    play_faulty(&r->p, 1u << VAN_REQUEST | 1u << VAN_ANSWER);
}

static void run_act(struct run *r)
{
    switch (play_draw(&r->p, 20)) {
    case 0:
        if (r->migrations < SERVERS - OWNERS) {
            /* Now and then more than the window of numbers holds: what has moved must not wait behind what is
             * new. */
            for (unsigned i = 0; r->p.seed % 10 == 0 && i < 600; i++)
                issue(r);
            migration_partitions(r);
        }
        break;
    case 1: /* long enough for the connection to break, or not */
        if (!r->heal_at) {
            r->cut_client = (unsigned)play_draw(&r->p, CLIENTS);
            r->cut_server = (unsigned)play_draw(&r->p, SERVERS);
            r->heal_at = sim_now(r->p.w.sim) + play_draw(&r->p, 40 * ENV_SEC);
            cut(r, true);
        }
        break;
    case 2:
        play_run(&r->p, play_draw(&r->p, 10 * ENV_SEC));
        break;
    default:
        issue(r);
    }
}

static void run_verify(struct run *r)
{
    for (unsigned c = 0; c < CLIENTS; c++) {
        paramo_err err = client_wait_all(r->p.w.clients[c].client, 120 * 1000);
        if (err)
            fail_msg("seed %llu, client %u: %s: %s", (unsigned long long)r->p.seed, c, err_name(err),
                     err_text());
    }
    for (struct op *op = r->ops; op; op = op->next) {
        paramo_err err = client_wait(r->p.w.clients[op->client].client, op->ts, 1);
        if (err || op->status)
            fail_msg("seed %llu: request %llu: %s", (unsigned long long)r->p.seed, (unsigned long long)op->ts,
                     err_text());
        play_check(&r->p, op->completions == (op->callback ? 1 : 0));
    }
    for (unsigned t = DENSE; t <= SPARSE; t++) {
        for (unsigned i = 0; i < KEYS; i++) {
            uint64_t key = key_of(t, i), ts;
            float val = -1;
            play_check(&r->p, world_pull(&r->p.w, 0, t, &key, 1, &val, 1, &ts) == PARAMO_OK);
            play_check(&r->p, world_wait(&r->p.w, 0, ts) == PARAMO_OK);
            if ((double)val != r->model[t][i])
                fail_msg("seed %llu: table %u key %u is %g, pushed were %g", (unsigned long long)r->p.seed, t,
                         i, (double)val, r->model[t][i]);
        }
    }
    for (unsigned i = 0; i < KEYS; i++)
        play_check(&r->p, r->handled[i] == r->model[USER][i]);
    for (unsigned c = 0; c < CLIENTS; c++) {
        struct client *client = r->p.w.clients[c].client;
        play_check(&r->p, client->pool.out == 0 && client->requests->first == NULL &&
                              client->waiters->first == NULL);
        play_check(&r->p, client->numbers->floor == client->numbers->next);
    }
}

static void run_seed(uint64_t seed)
{
    struct run *r = malloc(sizeof *r);
    run_start(r, seed);
    for (unsigned i = 0; i < ACTIONS; i++) {
        run_act(r);
        play_run(&r->p, play_draw(&r->p, 60 * ENV_MS));
        play_views(&r->p, false);
        if (r->heal_at && r->heal_at <= sim_now(r->p.w.sim)) {
            r->heal_at = 0;
            cut(r, false);
        }
    }
    links_heal(r);
    play_views(&r->p, true);
    run_verify(r);
    for (unsigned c = 0; c < CLIENTS; c++) {
        retries += r->p.w.clients[c].client->counts->retries;
        moved += r->p.w.clients[c].client->counts->moved;
    }
    while (r->ops) {
        struct op *next = r->ops->next;
        free(r->ops->keys);
        free(r->ops->vals);
        free(r->ops);
        r->ops = next;
    }
    play_close(&r->p);
    free(r);
}

int main(int argc, char **argv)
{
    int code = play_main(argc, argv, SEEDS, run_seed);
    print_message("%u seeds: %llu sent again, %llu moved\n", play_seeds(), (unsigned long long)retries,
                  (unsigned long long)moved);
    /* The faults must have been there. */
    bool shown = play_seeds() < SEEDS_SHOWN || (retries > 10 * play_seeds() && 10 * moved > play_seeds());
    return code || shown ? code : 1;
}
