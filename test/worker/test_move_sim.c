/*
 * Moves of arcs on one simulated network: servers join and are drained, are killed, cut off, started anew,
 * the scheduler too, while clients push. What was answered is there, once; copies are equal bit for bit;
 * nobody keeps what it has given away; when faults end all arcs have their copies again. The test is the
 * scheduler: it runs post/moves.c, gives its orders late, and each server takes each view at its own time.
 * Faults from a seed; one seed again: test_move_sim SEED [COUNT [MUTANT]].
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "post/moves.h"
#include "ring/chains.h"
#include "server/moving.h"
#include "wire/order.h"
#include "worker/client_impl.h"
#include "worker/support_world.h"

enum { DENSE, SPARSE, MOMENTUM, TABLES };
enum { SEEDS = 120, CLIENTS = 3, SERVERS = 6, FIRST = 4, KEYS = 512, ACTIONS = 220, PER_REQUEST = 24 };

static uint64_t first_seed = 1;
static unsigned seeds = SEEDS;

struct op {
    struct op *next;
    unsigned client;
    uint64_t ts;
    uint64_t *keys;
    float *vals;
};

/* To a server, and back: answered is the status. */
struct order {
    struct order *next;
    struct run *run;
    unsigned server;
    uint64_t incarnation;
    uint32_t what;
    struct move move;
    struct move_order fields;
    uint64_t view, at;
    bool given, answered;
    paramo_err status;
};

struct run {
    struct world w;
    uint64_t seed;
    double model[TABLES][KEYS];
    struct op *ops;
    unsigned apart;                                     /* cut off, or killed (SERVERS: none) */
    uint64_t view_at[CLIENTS], server_view_at[SERVERS]; /* when each takes the present view; 0: has it */
    uint64_t dead_at, heal_at;
    uint64_t server_view[SERVERS]; /* what each has */
    struct ring_chains chains, before;
    struct moves moves;
    struct moves_shard is[SERVERS];
    uint32_t weight[SERVERS];
    struct order *orders; /* in the order in which they were given */
    uint64_t hold_until, term;
    unsigned commits, aborts, kills;
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

static bool never(void *arg)
{
    (void)arg;
    return false;
}

/* ---- the scheduler ---- */

static void send_views(struct run *r)
{
    struct world *w = &r->w;
    world_view(w);
    for (unsigned s = 0; s < SERVERS; s++)
        if (w->servers[s].up)
            r->server_view_at[s] = sim_now(w->sim) + 1 + draw(r, draw(r, 4) ? 20 * ENV_MS : ENV_SEC);
    for (unsigned c = 0; c < CLIENTS; c++)
        r->view_at[c] = sim_now(w->sim) + 1 + draw(r, ENV_SEC);
}

/* The chains have changed: the next view has them. */
static void chains_out(struct run *r)
{
    struct world *w = &r->w;
    uint8_t touched[SERVERS];
    ring_touched(&r->before, &r->chains, touched, SERVERS);
    for (unsigned s = 0; s < SERVERS; s++) {
        if (touched[s] & RING_TOUCHED_CHAIN)
            w->chain_changed[s] = w->number + 1;
        if (touched[s] & RING_TOUCHED_ARCS)
            w->arcs_changed[s] = w->number + 1;
    }
    r->before = r->chains;
    w->ring = r->chains.level[0];
    for (unsigned level = 1; level < RING_LEVELS; level++)
        w->follower[level] = r->chains.level[level];
    send_views(r);
}

static void give(struct run *r, unsigned server, const struct move *move, uint32_t what, bool committed)
{
    struct order *o = calloc(1, sizeof *o), **at = &r->orders;
    while (*at)
        at = &(*at)->next;
    *at = o;
    o->run = r;
    o->server = server;
    o->incarnation = r->w.servers[server].incarnation;
    o->what = what;
    o->move = *move;
    o->fields =
        (struct move_order){.id = (r->term << 32) + move->id,
                            .first = move->first,
                            .arcs = move->arcs,
                            .from = {.node = PARAMO_ID_SERVER(move->from)},
                            .to = {.node = PARAMO_ID_SERVER(move->to)},
                            .kib_per_s = r->seed % 3 ? 64 << 10 : 8,
                            .takes_over = what == ORDER_MOVE_PAUSE && moves_takes_over(&r->moves, move),
                            .committed = committed};
    o->view = r->w.number;
    o->at = sim_now(r->w.sim) + draw(r, draw(r, 4) ? 5 * ENV_MS : 300 * ENV_MS);
}

static void begin_op(void *arg, const struct move *move)
{
    give(arg, move->from, move, ORDER_MOVE_GIVE, false);
}

static void pause_op(void *arg, const struct move *move)
{
    give(arg, move->from, move, ORDER_MOVE_PAUSE, false);
}

static void commit_op(void *arg)
{
    chains_out(arg);
}

static void end_op(void *arg, const struct move *move, bool committed)
{
    struct run *r = arg;
    *(committed ? &r->commits : &r->aborts) += 1;
    give(r, move->from, move, ORDER_MOVE_END, committed);
    give(r, move->to, move, ORDER_MOVE_END, committed);
}

static const struct moves_ops ops = {
    .begin = begin_op, .pause = pause_op, .commit = commit_op, .end = end_op};

static void aim(struct run *r)
{
    static struct ring_chains target;
    struct ring_shard shard[SERVERS];
    uint32_t weight = 0;
    for (unsigned s = 0; s < SERVERS; s++) {
        bool gone = !r->w.servers[s].alive;
        shard[s] = (struct ring_shard){.weight = gone ? 0 : r->weight[s], .server = s, .domain = "a"};
        r->is[s] = (struct moves_shard){.server = s, .gone = gone};
        weight += shard[s].weight;
    }
    moves_set_shards(&r->moves, r->is, SERVERS);
    check(r, weight && !ring_place(shard, SERVERS, r->w.replicas, &r->chains, &target));
    moves_set_target(&r->moves, &target);
}

static void answered(void *arg, paramo_err status)
{
    struct order *o = arg;
    o->answered = true;
    o->status = status;
    o->at = sim_now(o->run->w.sim) + draw(o->run, draw(o->run, 4) ? 5 * ENV_MS : 300 * ENV_MS);
}

static void do_order(void *arg)
{
    struct order *o = arg;
    shard_move(o->run->w.servers[o->server].shard, o->what, &o->fields, answered, o);
}

static void news(struct run *r, const struct order *o)
{
    if (o->what == ORDER_MOVE_END || o->fields.id >> 32 != r->term || !moves_find(&r->moves, o->move.id))
        return;
    if (o->status) {
        moves_hold(&r->moves);
        r->hold_until = sim_now(r->w.sim) + 200 * ENV_MS;
        moves_failed(&r->moves, o->move.id);
    } else if (o->what == ORDER_MOVE_GIVE) {
        moves_agreed(&r->moves, o->move.id, o->move.from);
        moves_agreed(&r->moves, o->move.id, o->move.to);
        give(r, o->move.to, &o->move, ORDER_MOVE_TAKE, false);
    } else if (o->what == ORDER_MOVE_TAKE) {
        moves_full(&r->moves, o->move.id);
    } else {
        moves_paused(&r->moves, o->move.id);
    }
}

/* Orders reach each server in turn, with the view that they speak of; answers come back. */
static void orders_go_on(struct run *r, bool now)
{
    uint64_t at = sim_now(r->w.sim);
    bool waits[SERVERS] = {false};
    for (struct order **o = &r->orders; *o;) {
        struct order *x = *o;
        struct world_server *s = &r->w.servers[x->server];
        bool gone = !s->up || !s->alive || s->incarnation != x->incarnation;
        bool back = x->answered && (now || x->at <= at);
        if (!gone && !x->given && !waits[x->server]) {
            if ((now || x->at <= at) && r->server_view[x->server] >= x->view) {
                x->given = true;
                world_on_lane(s->lane, do_order, x);
            } else {
                waits[x->server] = true;
            }
        }
        if ((gone && (!x->given || x->answered || !s->up)) || back) {
            struct order copy = *x;
            *o = x->next;
            free(x);
            if (!gone)
                news(r, &copy);
            o = &r->orders; /* news may have given more */
            memset(waits, 0, sizeof waits);
        } else {
            o = &x->next;
        }
    }
    if (r->hold_until && (now || r->hold_until <= at)) {
        r->hold_until = 0;
        moves_resume(&r->moves);
    }
}

/* Declared dead: who has copies takes over, and copies are made again. */
static void dies(struct run *r, unsigned server)
{
    bool gone[SERVERS];
    r->w.servers[server].alive = false;
    for (unsigned s = 0; s < SERVERS; s++)
        gone[s] = !r->w.servers[s].alive;
    check(r, ring_promote(&r->chains, gone, SERVERS) == 0);
    chains_out(r);
    aim(r);
}

/* Another scheduler goes on from what the last view said; nobody tells it of moves. */
static void scheduler_restarts(struct run *r)
{
    for (struct order *o = r->orders; o; o = o->next)
        if (!o->given)
            o->fields.id = 0; /* it is never given */
    for (struct order **o = &r->orders; *o;) {
        struct order *x = *o;
        if (x->fields.id) {
            o = &x->next;
            continue;
        }
        *o = x->next;
        free(x);
    }
    r->term++;
    r->w.number = r->term << 32;
    moves_init(&r->moves, &r->chains, &ops, r);
    send_views(r);
    aim(r);
}

static void deliver_views(struct run *r, bool now)
{
    uint64_t at = sim_now(r->w.sim);
    for (unsigned s = 0; s < SERVERS; s++)
        if (r->server_view_at[s] && (now || r->server_view_at[s] <= at)) {
            r->server_view_at[s] = 0;
            r->server_view[s] = r->w.number;
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

/* ---- faults ---- */

/* Every arc has another member: it may die. */
static bool may_die(const struct run *r, unsigned server)
{
    if (!r->w.servers[server].alive || !r->w.servers[server].up)
        return false;
    unsigned others = 0;
    for (unsigned s = 0; s < SERVERS; s++)
        others += s != server && r->w.servers[s].alive && r->weight[s];
    for (unsigned a = 0; a < RING_ARCS; a++) {
        unsigned is = 0, len = 0;
        for (unsigned level = 0; level < RING_LEVELS; level++) {
            uint16_t member = r->chains.level[level].owner[a];
            is += member == server;
            len += member != RING_NOBODY;
        }
        if (is && len < 2)
            return false;
    }
    for (size_t i = 0; i < MOVES_MAX; i++) /* it may be the only one who has the arcs in a moment */
        if (r->moves.move[i].state >= MOVE_FULL && r->moves.move[i].to == server && !r->w.replicas)
            return false;
    for (unsigned a = 0; a < RING_ARCS && r->w.replicas; a++)
        if (r->moves.target.level[1].owner[a] == RING_NOBODY)
            return false;
    return others > 0;
}

static unsigned living(struct run *r)
{
    unsigned s;
    do
        s = (unsigned)draw(r, SERVERS);
    while (!r->w.servers[s].alive);
    return s;
}

/* A side of a move, half of the time. */
static unsigned victim(struct run *r)
{
    const struct move *move = &r->moves.move[draw(r, MOVES_MAX) % 4];
    if (move->state != MOVE_NONE && draw(r, 4))
        return draw(r, 2) ? move->from : move->to;
    return living(r);
}

static void faults_go_on(struct run *r, bool now)
{
    uint64_t at = sim_now(r->w.sim);
    if (r->apart < SERVERS && r->dead_at && (now || r->dead_at <= at)) {
        r->dead_at = 0;
        if (may_die(r, r->apart) || !r->w.servers[r->apart].up)
            dies(r, r->apart);
    }
    if (r->apart < SERVERS && !r->dead_at && (now || r->heal_at <= at)) {
        part(r, r->apart, false, true);
        r->apart = SERVERS;
    }
}

static void start_again(struct run *r, unsigned s)
{
    for (struct order *o = r->orders; o; o = o->next)
        check(r, o->server != s || o->incarnation == r->w.servers[s].incarnation);
    if (r->w.servers[s].up)
        world_server_stop(&r->w, s);
    orders_go_on(r, false); /* those to it are lost */
    world_server_start(&r->w, s);
    r->server_view[s] = 0;
    r->weight[s] = 1;
    part(r, s, false, true);
    send_views(r);
    aim(r);
}

static void act(struct run *r)
{
    unsigned s = victim(r);
    switch (draw(r, 32)) {
    case 0: /* killed */
        if (r->apart == SERVERS && may_die(r, s)) {
            world_server_stop(&r->w, s);
            r->w.servers[s].alive = true; /* for all that anybody knows */
            r->apart = s;
            r->kills++;
            r->dead_at = sim_now(r->w.sim) + draw(r, ENV_SEC);
            r->heal_at = 0;
        }
        break;
    case 1: /* cut off from the others, but not from clients; perhaps declared dead */
        if (r->apart == SERVERS && r->w.servers[s].up) {
            bool dead = may_die(r, s) && draw(r, 2);
            r->apart = s;
            part(r, s, true, draw(r, 2));
            r->dead_at = dead ? sim_now(r->w.sim) + draw(r, 3 * ENV_SEC) : 0;
            r->heal_at = sim_now(r->w.sim) + draw(r, 6 * ENV_SEC);
        }
        break;
    case 2: /* connections break */
        if (r->w.servers[s].up)
            van_sim_reset(r->w.servers[s].van, UINT32_MAX);
        break;
    case 3:
    case 4: /* joins, or is to go */
        s = (unsigned)draw(r, SERVERS);
        if (!r->w.servers[s].alive) {
            if (r->apart != s)
                start_again(r, s);
        } else {
            unsigned others = 0;
            for (unsigned i = 0; i < SERVERS; i++)
                others += i != s && i != r->apart && r->w.servers[i].alive && r->weight[i];
            if (others > (r->w.replicas ? 1 : 0)) { /* the last copy should not be with one that has died */
                r->weight[s] = !r->weight[s];
                aim(r);
            }
        }
        break;
    case 5:
        if (draw(r, 3) == 0)
            scheduler_restarts(r);
        break;
    default:
        issue(r);
    }
}

static void nothing(struct sim_event *event)
{
    (void)event;
}

static void pass(struct run *r, uint64_t ns)
{
    for (uint64_t until = sim_now(r->w.sim) + ns; sim_now(r->w.sim) < until;) {
        struct sim_event hand = {.fire = nothing}; /* time passes although nothing happens */
        uint64_t at = sim_now(r->w.sim) + 1 + draw(r, 5 * ENV_MS);
        check(r, sim_schedule(r->w.sim, &hand, at) == PARAMO_OK);
        (void)sim_run(r->w.sim, never, NULL, at);
        orders_go_on(r, false);
        faults_go_on(r, false);
        deliver_views(r, false);
    }
}

/* ---- a run ---- */

static void start(struct run *r, uint64_t seed)
{
    memset(r, 0, sizeof *r);
    r->seed = seed;
    r->apart = SERVERS;
    world_init(&r->w, true, seed);
    r->w.timeout_ms = 3600 * 1000;
    r->w.replicas = (unsigned)(seed % 4);
    r->w.moves = true;
    struct simnet_link *l = simnet_defaults(r->w.net);
    l->loss_ppm = (uint32_t)draw(r, 50000);
    l->repeat_ppm = (uint32_t)draw(r, 50000);
    l->late_ppm = (uint32_t)draw(r, 100000);
    l->late_ns = draw(r, 300 * ENV_MS);
    world_table(&r->w, PARAMO_TABLE_DENSE, 1)->rows = KEYS;
    world_table(&r->w, PARAMO_TABLE_SPARSE, 1);
    paramo_table_options *o = world_table(&r->w, PARAMO_TABLE_SPARSE, 1);
    o->optimizer = PARAMO_OPT_MOMENTUM;
    world_start(&r->w, SERVERS, FIRST, CLIENTS);
    r->chains.replicas = r->w.replicas;
    r->chains.level[0] = r->w.ring;
    for (unsigned level = 1; level < RING_LEVELS; level++)
        r->chains.level[level] = r->w.follower[level];
    r->before = r->chains;
    for (unsigned s = 0; s < SERVERS; s++) {
        r->weight[s] = s < FIRST;
        r->server_view[s] = r->w.number;
    }
    moves_init(&r->moves, &r->chains, &ops, r);
    aim(r);
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

/* Nobody has rows of arcs that no chain has it for. */
static void check_stale(struct run *r)
{
    for (unsigned s = 0; s < SERVERS; s++) {
        if (!r->w.servers[s].up || !r->w.servers[s].alive)
            continue;
        for (unsigned t = SPARSE; t < TABLES; t++)
            for (unsigned i = 0; i < KEYS; i++) {
                uint64_t key = key_of(t, i);
                float row[2];
                const struct shard_table *st = shard_table_find(r->w.servers[s].shard, t + 1);
                unsigned arc = ring_arc(ring_position(&st->placement, key));
                bool member = false;
                for (unsigned level = 0; level < RING_LEVELS; level++)
                    member |= r->chains.level[level].owner[arc] == s;
                if (!member && table_get_rows(st->table, &key, 1, true, row) != PARAMO_E_NOT_FOUND)
                    fail_msg("seed %llu: server %u has kept table %u key %u, arc %u",
                             (unsigned long long)r->seed, s, t, i, arc);
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
        fprintf(stderr, "  give %p take %p\n", (void *)c->give, (void *)c->take);
        for (const struct peer *peer = server->shard->peers; peer; peer = peer->next)
            fprintf(stderr, "  peer %u waiting %zu blocked %d pending %d\n", peer->sender->node,
                    peer->waiting_count, peer->blocked, peer->sender->pending != NULL);
    }
}

static void verify(struct run *r)
{
    for (unsigned i = 0; i < 3000 && !(moves_settled(&r->moves) && !r->orders); i++)
        pass(r, 100 * ENV_MS);
    if (!moves_settled(&r->moves) || r->orders) {
        explain(r);
        for (const struct order *o = r->orders; o; o = o->next)
            fprintf(stderr, "order %u to s%u, move %llu given %d answered %d\n", o->what, o->server,
                    (unsigned long long)o->fields.id, o->given, o->answered);
    }
    check(r, moves_settled(&r->moves) && !r->orders);
    deliver_views(r, true);
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
    check_stale(r);
    for (unsigned s = 0; s < SERVERS; s++) {
        if (!r->w.servers[s].up)
            continue;
        check(r, !r->w.servers[s].shard->chain->failed);
        check(r, !r->w.servers[s].alive ||
                     !(r->w.servers[s].shard->chain->give || r->w.servers[s].shard->chain->take));
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
        pass(r, draw(r, 60 * ENV_MS));
    }
    while (r->apart < SERVERS)
        faults_go_on(r, true);
    verify(r);
    if (getenv("MOVE_SIM_SAYS"))
        fprintf(stderr, "seed %llu: k %u, %u commits, %u aborts, %u kills, term %llu\n",
                (unsigned long long)seed, r->w.replicas, r->commits, r->aborts, r->kills,
                (unsigned long long)r->term);
    for (struct op *op; (op = r->ops);) {
        r->ops = op->next;
        free(op->keys);
        free(op->vals);
        free(op);
    }
    world_fini(&r->w);
    free(r);
}

static void test_moves(void **state)
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_moves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
