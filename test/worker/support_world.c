#include "worker/support_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table/table_options.h"

static void must(paramo_err err, const char *what)
{
    if (err) {
        fprintf(stderr, "world: %s: %s: %s\n", what, err_name(err), err_text());
        abort();
    }
}

static void *must_have(void *p)
{
    if (!p)
        abort();
    return p;
}

void world_init(struct world *w, bool simulated, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->simulated = simulated;
    w->timeout_ms = 20000;
    if (simulated) {
        must(sim_create(seed, &w->sim), "sim");
        must(simnet_create(w->sim, &w->net), "net");
        w->env = sim_env(w->sim);
    } else {
        w->env = env_real();
        must(van_inproc_create(w->env, &w->van), "van");
    }
}

paramo_table_options *world_table(struct world *w, paramo_table_kind kind, uint32_t dim)
{
    paramo_table_options *o = &w->options[w->tables_count++];
    table_options_default(o);
    o->kind = kind;
    o->dim = dim;
    return o;
}

struct job {
    struct lane_task task;
    void (*fn)(void *arg);
    void *arg;
    struct lane *lane;
    atomic_bool done;
};

static void job_run(struct lane_task *task)
{
    struct job *j = container_of(task, struct job, task);
    j->fn(j->arg);
    lane_notify(j->lane);
    atomic_store(&j->done, true);
}

static bool job_done(void *arg)
{
    return atomic_load(&((struct job *)arg)->done);
}

void world_on_lane(struct lane *lane, void (*fn)(void *arg), void *arg)
{
    if (lane_enter(lane)) {
        fn(arg);
        lane_leave(lane);
        return;
    }
    struct job j = {.task.run = job_run, .fn = fn, .arg = arg, .lane = lane};
    lane_post(lane, &j.task);
    must(lane_wait(lane, job_done, &j, UINT64_MAX), "a job on a lane");
}

/* ---- views ---- */

void world_view(struct world *w)
{
    struct view *v = must_have(calloc(1, sizeof *v));
    atomic_init(&v->refs, 1);
    v->job = 7;
    v->number = ++w->number;
    v->num_servers = w->servers_count;
    v->num_workers = w->clients_count;
    v->complete = true;
    v->nodes = must_have(calloc(w->servers_count + w->clients_count + 1, sizeof *v->nodes));
    v->shards = must_have(calloc(w->servers_count + 1, sizeof *v->shards));
    v->tables = must_have(calloc(w->tables_count + 1, sizeof *v->tables));
    for (unsigned rank = 0; rank < w->servers_count || rank < w->clients_count; rank++) {
        if (rank < w->servers_count) {
            struct world_server *s = &w->servers[rank];
            struct view_node *n = &v->nodes[v->nodes_count++];
            n->id = PARAMO_ID_SERVER(rank);
            n->role = PARAMO_ROLE_SERVER;
            n->incarnation = s->incarnation;
            n->alive = s->alive;
            n->recovered = s->recovered;
            n->port = (uint16_t)(1000 + rank);
            n->shards = 1;
            (void)snprintf(n->host, sizeof n->host, "s%u", rank);
            v->shards[v->shards_count].node = n->id;
            v->shards[v->shards_count].chain_changed = w->chain_changed[rank];
            v->shards[v->shards_count].moved = w->moved[rank];
            v->shards[v->shards_count++].arcs_changed = w->arcs_changed[rank];
        }
        if (rank < w->clients_count) {
            struct view_node *n = &v->nodes[v->nodes_count++];
            n->id = PARAMO_ID_WORKER(rank);
            n->role = PARAMO_ROLE_WORKER;
            n->incarnation = w->clients[rank].incarnation;
            n->alive = true;
        }
    }
    for (unsigned t = 0; t < w->tables_count; t++) {
        struct view_table *to = &v->tables[v->tables_count++];
        to->id = t + 1;
        to->since = 1;
        to->options = w->options[t];
        to->options.placement = table_options_placement(&to->options);
        (void)snprintf(to->name, sizeof to->name, "t%u", t);
        client_table_init(&w->tables[t], to);
    }
    v->chains.level[0] = w->ring;
    v->chains.replicas = w->replicas;
    for (unsigned level = 1; level < RING_LEVELS; level++)
        v->chains.level[level] = w->follower[level];
    v->lost_at = w->lost_at;
    memcpy(v->lost, w->lost, sizeof v->lost);
    view_unref(w->view);
    w->view = v;
}

static void server_takes_view(void *arg)
{
    struct world_server *s = arg;
    shard_set_view(s->shard, s->world->view);
    shard_set_view(s->host, s->world->view);
}

static void client_takes_view(void *arg)
{
    struct world_client *c = arg;
    client_set_view(c->client, c->world->view);
}

void world_server_view(struct world *w, unsigned server)
{
    if (w->servers[server].up)
        world_on_lane(w->servers[server].lane, server_takes_view, &w->servers[server]);
}

void world_client_view(struct world *w, unsigned client)
{
    if (w->clients[client].client)
        world_on_lane(w->clients[client].lane, client_takes_view, &w->clients[client]);
}

void world_all_view(struct world *w)
{
    for (unsigned i = 0; i < w->servers_count; i++)
        world_server_view(w, i);
    for (unsigned i = 0; i < w->clients_count; i++)
        world_client_view(w, i);
}

/* ---- servers ---- */

static void server_accept(void *arg, struct van_conn *conn, const struct hello *hello)
{
    struct world_server *s = arg;
    shard_accept(hello->shard == HELLO_HOST ? s->host : s->shard, conn, hello);
}

static void server_open(void *arg)
{
    struct world_server *s = arg;
    char address[32];
    (void)snprintf(address, sizeof address, "s%u:%u", s->rank, 1000 + s->rank);
    struct door_config config = {.van = s->van,
                                 .lane = s->lane,
                                 .address = address,
                                 .token = "secret",
                                 .purposes = DOOR_PURPOSE_DATA | DOOR_PURPOSE_CHAIN,
                                 .frame_bytes = 16 << 20,
                                 .accept = server_accept,
                                 .arg = s};
    must(door_open(&config, &s->door), "door");
}

static void server_close(void *arg)
{
    struct world_server *s = arg;
    door_close(s->door);
    shard_close(s->shard);
    shard_close(s->host);
    van_abandon(s->van, s->lane);
}

void world_server_start(struct world *w, unsigned server)
{
    struct world_server *s = &w->servers[server];
    char name[16];
    (void)snprintf(name, sizeof name, "s%u", server);
    s->world = w;
    s->rank = server;
    s->recovered = s->incarnation != 0;
    s->incarnation = env_random(w->env) | 1;
    s->up = s->alive = true;
    must(lane_create(w->env, name, 0, &s->lane), "lane");
    if (w->simulated)
        must(van_sim_create(w->net, name, &s->van), "van");
    else
        s->van = w->van;
    struct shard_config config = {.lane = s->lane,
                                  .node = PARAMO_ID_SERVER(server),
                                  .incarnation = s->incarnation,
                                  .frame_bytes = 16 << 20,
                                  .handler = w->handler,
                                  .failed = w->failed,
                                  .arg = w->handler_arg};
    if (w->replicas || w->moves) {
        config.van = s->van;
        config.token = "secret";
    }
    must(shard_create(&config, &s->shard), "shard");
    config.van = NULL;
    config.host = true;
    config.index = HELLO_HOST;
    must(shard_create(&config, &s->host), "host");
    world_on_lane(s->lane, server_open, s);
}

void world_server_gone(struct world *w, unsigned server)
{
    uint64_t number = w->number + 1;
    w->servers[server].alive = false;
    for (unsigned a = 0; a < RING_ARCS; a++) {
        uint16_t chain[RING_LEVELS];
        unsigned n = 0;
        bool is = false;
        for (unsigned level = 0; level <= w->replicas; level++) {
            uint16_t m = level ? w->follower[level].owner[a] : w->ring.owner[a];
            is |= m == server;
            if (m != server && m != RING_NOBODY)
                chain[n++] = m;
        }
        if (!is)
            continue;
        if (!n)
            abort();
        w->chain_changed[server] = number;
        for (unsigned i = 0; i < n; i++)
            w->chain_changed[chain[i]] = number;
        if (w->ring.owner[a] == server)
            w->arcs_changed[server] = w->arcs_changed[chain[0]] = number;
        for (unsigned level = 0; level <= w->replicas; level++)
            *(level ? &w->follower[level].owner[a] : &w->ring.owner[a]) =
                level < n ? chain[level] : RING_NOBODY;
    }
    world_view(w);
}

void world_server_stop(struct world *w, unsigned server)
{
    struct world_server *s = &w->servers[server];
    if (!s->up)
        return;
    if (w->simulated)
        van_sim_crash(s->van);
    world_on_lane(s->lane, server_close, s);
    lane_destroy(s->lane);
    if (w->simulated)
        van_destroy(s->van);
    s->up = s->alive = false;
}

/* ---- clients ---- */

static void client_needs_view(void *arg, uint64_t number)
{
    struct world_client *c = arg;
    c->wanted_view = number;
}

static void client_start(struct world *w, unsigned rank)
{
    struct world_client *c = &w->clients[rank];
    char name[16];
    (void)snprintf(name, sizeof name, "w%u", rank);
    must(lane_create(w->env, name, 0, &c->lane), "lane");
    if (w->simulated)
        must(van_sim_create(w->net, name, &c->van), "van");
    else
        c->van = w->van;
    struct client_config config = {.lane = c->lane,
                                   .van = c->van,
                                   .view = w->view,
                                   .node = PARAMO_ID_WORKER(rank),
                                   .incarnation = c->incarnation,
                                   .customer = 3,
                                   .token = "secret",
                                   .frame_bytes = 16 << 20,
                                   .request_timeout_ms = w->timeout_ms,
                                   .connect_timeout_ms = 2000,
                                   .need_view = client_needs_view,
                                   .arg = c};
    must(client_create(&config, &c->client), "client");
}

void world_start(struct world *w, unsigned servers, unsigned owners, unsigned clients)
{
    uint32_t weights[WORLD_SERVERS] = {0};
    w->servers_count = servers;
    w->clients_count = clients;
    for (unsigned i = 0; i < servers; i++) {
        weights[i] = i < owners;
        w->arcs_changed[i] = w->chain_changed[i] = 1;
        world_server_start(w, i);
    }
    for (unsigned i = 0; i < clients; i++) {
        w->clients[i].world = w;
        w->clients[i].rank = i;
        w->clients[i].incarnation = env_random(w->env) | 1;
    }
    must(ring_assign(weights, servers, NULL, &w->ring), "ring");
    for (unsigned level = 1; level < RING_LEVELS; level++)
        for (unsigned a = 0; a < RING_ARCS; a++)
            w->follower[level].owner[a] =
                (uint16_t)(level <= w->replicas
                               ? (w->ring.owner[a] + 1 + (level - 1 + a / 512) % (owners - 1)) % owners
                               : RING_NOBODY);
    world_view(w);
    for (unsigned i = 0; i < servers; i++)
        world_server_view(w, i);
    for (unsigned i = 0; i < clients; i++)
        client_start(w, i);
}

static void client_leaves(void *arg)
{
    struct world_client *c = arg;
    van_abandon(c->van, c->lane);
}

void world_fini(struct world *w)
{
    for (unsigned i = 0; i < w->clients_count; i++) {
        struct world_client *c = &w->clients[i];
        client_close(c->client);
        client_free(c->client);
        world_on_lane(c->lane, client_leaves, c);
        lane_destroy(c->lane);
        if (w->simulated)
            van_destroy(c->van);
    }
    for (unsigned i = 0; i < w->servers_count; i++)
        world_server_stop(w, i);
    view_unref(w->view);
    if (w->simulated) {
        while (sim_step(w->sim)) /* what is still on its way arrives nowhere */
            ;
        simnet_destroy(w->net);
        sim_destroy(w->sim);
    } else {
        van_destroy(w->van);
    }
}

/* ---- requests ---- */

static paramo_err issue(struct world *w, unsigned client, unsigned table, enum request_kind kind,
                        const uint64_t *keys, size_t n, void *vals, size_t vals_len, uint64_t *ts)
{
    paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = n, .vals = vals, .vals_len = vals_len};
    struct client_call call = {.kind = kind, .table = &w->tables[table], .kv = &kv};
    return client_issue(w->clients[client].client, &call, ts);
}

paramo_err world_push(struct world *w, unsigned client, unsigned table, const uint64_t *keys, size_t n,
                      const void *vals, size_t vals_len, uint64_t *ts)
{
    return issue(w, client, table, REQUEST_PUSH, keys, n, (void *)(uintptr_t)vals, vals_len, ts);
}

paramo_err world_pull(struct world *w, unsigned client, unsigned table, const uint64_t *keys, size_t n,
                      void *vals, size_t vals_len, uint64_t *ts)
{
    return issue(w, client, table, REQUEST_PULL, keys, n, vals, vals_len, ts);
}

paramo_err world_wait(struct world *w, unsigned client, uint64_t ts)
{
    return client_wait(w->clients[client].client, ts, 0);
}
