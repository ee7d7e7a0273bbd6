/*
 * Moves of partitions on one simulated network: servers join and are drained, are killed, cut off, started again, the
 * scheduler too, while clients push. What was answered is there, once; copies are equal bit for bit; no source keeps
 * rows of partitions that it gave away; when faults end all partitions have their copies again. In half of the seeds
 * tables have fewer replicas than the job. The test is the scheduler: it runs cluster/scheduler/migrations.c, gives
 * its orders late, and each server takes each view at its own time. Besides what strikes at any moment: an owner is
 * cut off, from the scheduler, too, or killed at a step of a move; the connections between the two sides lag, each
 * for itself; a PAUSE comes when its move was given up. Faults from a seed; one seed again: test_migration_sim SEED
 * [COUNT].
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/scheduler/migrations.h"
#include "ring/chains.h"
#include "server/replication/chain_impl.h"
#include "server/shard/shard_tables.h"
#include "wire/migration_order.h"
#include "wire/order.h"
#include "worker/support_play.h"

enum { SEEDS = 120, CLIENTS = 3, SERVERS = 6, FIRST = 4, ACTIONS = 220, SMALL = 64 };

/* To a server, and back: answered is the status. */
struct order {
    struct order *next;
    struct run *run;
    unsigned server;
    uint64_t incarnation;
    uint32_t what;
    struct migration migration;
    struct migration_order fields;
    uint64_t view, at;
    bool given, answered;
    paramo_err status;
};

struct run {
    struct play p;
    uint64_t dead_at, heal_at;
    struct ring_chains chains, before;
    struct migrations migrations;
    struct migrations_shard is[SERVERS];
    uint32_t weight[SERVERS];
    struct order *orders; /* in the order in which they were given */
    uint64_t hold_until, term;
    unsigned least; /* replicas, of a table with rows */
    bool none;      /* there is a table without copies, and without rows: members lack it */
    bool deaf; /* a server that is cut off does not reach the scheduler either: no views, orders, answers */
    bool calm; /* no more faults */
    /* Server 0 has few partitions, and their only copies: the server that gets copies of them is its only follower. */
    bool small;
    uint64_t strikes_at;
    unsigned struck;                    /* what will happen then, to this server */
    struct simnet_link *lagging, usual; /* lags until then */
    unsigned commits, aborts, kills, cuts, lags, late_pauses;
};

static void cut_off(struct run *r, unsigned server, bool both, uint64_t dead_ns, uint64_t heal_ns);
static bool may_die(const struct run *r, unsigned server);

/* ---- the scheduler ---- */

static void send_views(struct run *r)
{
    struct world *w = &r->p.w;
    world_view(w);
    for (unsigned s = 0; s < SERVERS; s++)
        if (w->servers[s].up) {
            uint64_t late = play_draw(&r->p, play_draw(&r->p, 4) ? 20 * ENV_MS : ENV_SEC);
            bool deaf = r->deaf && s == r->p.apart;
            r->p.server_view_at[s] = (deaf ? UINT64_MAX - ENV_SEC : sim_now(w->sim)) + 1 + late;
        }
    for (unsigned c = 0; c < CLIENTS; c++) {
        uint64_t late = play_draw(&r->p, 4) && !(r->small && r->deaf) ? ENV_SEC
                        : c                                           ? 5 * ENV_SEC
                                                                      : 50 * ENV_MS;
        r->p.view_at[c] = sim_now(w->sim) + 1 + play_draw(&r->p, late);
    }
}

/* The chains have changed: the next view has them. */
static void chains_out(struct run *r)
{
    struct world *w = &r->p.w;
    uint8_t touched[SERVERS];
    ring_touched(&r->before, &r->chains, touched, SERVERS);
    for (unsigned s = 0; s < SERVERS; s++) {
        if (touched[s] & RING_TOUCHED_CHAIN)
            w->chain_changed[s] = w->number + 1;
        if (touched[s] & RING_TOUCHED_PARTITIONS)
            w->partitions_changed[s] = w->number + 1;
    }
    r->before = r->chains;
    w->ring = r->chains.level[0];
    for (unsigned level = 1; level < RING_LEVELS; level++)
        w->follower[level] = r->chains.level[level];
    send_views(r);
}

static void usual_again(struct run *r)
{
    if (r->lagging)
        *r->lagging = r->usual;
    r->lagging = NULL;
}

/* Until the pause has been carried out: the connections between the two sides lag, each for itself, and the
 * owner is killed then; or the target's answers are lost for longer than the owner waits for them. */
static void strike_pause(struct run *r, struct order *o)
{
    struct world *w = &r->p.w;
    bool member = o->migration.had < RING_LEVELS && !o->migration.handover; /* one that gets something */
    unsigned from = o->migration.from, to = o->migration.to,
             what = (unsigned)play_draw(&r->p, member ? 4 : 12);
    if (r->p.apart < WORLD_SERVERS || r->strikes_at || what > 1 || (what ? r->late_pauses == 3 : r->calm) ||
        !w->servers[from].up)
        return;
    r->lagging = what ? play_link(&r->p, "s", to, "s", from) : play_link(&r->p, "s", from, "s", to);
    r->usual = *r->lagging;
    r->struck = SERVERS;
    if (what) {
        r->lagging->cut = true;
        for (unsigned i = 0; i < 6; i++) /* some of it goes to the target, and is not acknowledged */
            play_issue(&r->p);
        o->at = sim_now(w->sim) + 6 * ENV_SEC + play_draw(&r->p, 2 * ENV_SEC);
        r->strikes_at = o->at - ENV_SEC / 2;
        r->late_pauses++;
    } else {
        r->lagging->late_ppm = 300000;
        r->lagging->late_ns = 200 * ENV_MS;
        r->strikes_at = o->at + play_draw(&r->p, 20 * ENV_MS);
        r->struck = from;
        r->lags++;
    }
}

static void issue(struct run *r, unsigned server, const struct migration *migration, uint32_t what,
                  bool committed)
{
    struct order *o = calloc(1, sizeof *o), **at = &r->orders;
    while (*at)
        at = &(*at)->next;
    *at = o;
    o->run = r;
    o->server = server;
    o->incarnation = r->p.w.servers[server].incarnation;
    o->what = what;
    o->migration = *migration;
    o->fields = (struct migration_order){.id = (r->term << 32) + migration->id,
                                         .first = migration->first,
                                         .partitions = migration->partitions,
                                         .from = {.node = PARAMO_ID_SERVER(migration->from)},
                                         .to = {.node = PARAMO_ID_SERVER(migration->to)},
                                         .level = migration->level,
                                         .had = migration->had,
                                         .kib_per_s = r->p.seed % 3 ? 64 << 10 : 8,
                                         .takes_over = what == ORDER_MIGRATION_PAUSE && migration->takes_over,
                                         .handover = migration->handover,
                                         .committed = committed};
    o->view = r->p.w.number;
    o->at = sim_now(r->p.w.sim) + play_draw(&r->p, play_draw(&r->p, 4) ? 5 * ENV_MS : 300 * ENV_MS);
    if (what == ORDER_MIGRATION_PAUSE)
        strike_pause(r, o);
}

static void begin_op(void *arg, const struct migration *migration)
{
    issue(arg, migration->from, migration, ORDER_MIGRATION_SOURCE, false);
}

static void pause_op(void *arg, const struct migration *migration)
{
    issue(arg, migration->from, migration, ORDER_MIGRATION_PAUSE, false);
}

static void commit_op(void *arg, const struct migration *migration)
{
    struct run *r = arg;
    if (migration && !migration->handover)
        r->p.w.moved[migration->to] = (r->term << 32) + migration->id;
    unsigned often = r->small && migration && migration->from == 0 ? 2 : 16;
    if (migration && !r->calm && r->p.apart == WORLD_SERVERS && !r->strikes_at &&
        play_draw(&r->p, often) == 0) {
        r->deaf = true; /* just now, before the view comes; the next owner of the partitions may die, too */
        cut_off(r, migration->from, true, ENV_MS + play_draw(&r->p, ENV_SEC), 6 * ENV_SEC);
    }
    chains_out(r);
}

static void end_op(void *arg, const struct migration *migration, bool committed)
{
    struct run *r = arg;
    *(committed ? &r->commits : &r->aborts) += 1;
    issue(r, migration->from, migration, ORDER_MIGRATION_END, committed);
    issue(r, migration->to, migration, ORDER_MIGRATION_END, committed);
}

static const struct migrations_ops ops = {
    .begin = begin_op, .pause = pause_op, .commit = commit_op, .end = end_op};

static void aim(struct run *r)
{
    static struct ring_chains target;
    struct ring_shard shard[SERVERS];
    uint32_t weight = 0;
    for (unsigned s = 0; s < SERVERS; s++) {
        bool gone = !r->p.w.servers[s].alive;
        shard[s] = (struct ring_shard){.weight = gone ? 0 : r->weight[s], .server = s, .domain = "a"};
        r->is[s] = (struct migrations_shard){.server = s, .gone = gone};
        weight += shard[s].weight;
    }
    migrations_set_shards(&r->migrations, r->is, SERVERS);
    play_check(&r->p, weight && !ring_place(shard, SERVERS, r->p.w.replicas, &r->chains, &target));
    migrations_set_target(&r->migrations, &target);
}

static void answered(void *arg, paramo_err status)
{
    struct order *o = arg;
    o->answered = true;
    o->status = status;
    o->at = sim_now(o->run->p.w.sim) +
            play_draw(&o->run->p, play_draw(&o->run->p, 4) ? 5 * ENV_MS : 300 * ENV_MS);
}

static void do_order(void *arg)
{
    struct order *o = arg;
    shard_migration_order(o->run->p.w.servers[o->server].shard, o->what, &o->fields, answered, o);
}

static void news(struct run *r, const struct order *o)
{
    if (o->what == ORDER_MIGRATION_END || o->fields.id >> 32 != r->term ||
        !migrations_find(&r->migrations, o->migration.id))
        return;
    if (o->status) {
        migrations_hold(&r->migrations);
        r->hold_until = sim_now(r->p.w.sim) + 200 * ENV_MS;
        migrations_failed(&r->migrations, o->migration.id);
    } else if (o->what == ORDER_MIGRATION_SOURCE) {
        migrations_agreed(&r->migrations, o->migration.id, o->migration.from);
        migrations_agreed(&r->migrations, o->migration.id, o->migration.to);
        issue(r, o->migration.to, &o->migration, ORDER_MIGRATION_TARGET, false);
    } else if (o->what == ORDER_MIGRATION_TARGET) {
        migrations_full(&r->migrations, o->migration.id);
    } else {
        migrations_paused(&r->migrations, o->migration.id);
    }
}

/* Orders reach each server in turn, with the view that they speak of; answers come back. */
static void orders_go_on(struct run *r, bool now)
{
    uint64_t at = sim_now(r->p.w.sim);
    bool waits[SERVERS] = {false};
    for (struct order **o = &r->orders; *o;) {
        struct order *x = *o;
        struct world_server *s = &r->p.w.servers[x->server];
        bool gone = !s->up || !s->alive || s->incarnation != x->incarnation;
        bool deaf = r->deaf && x->server == r->p.apart && !gone;
        bool back = x->answered && (now || x->at <= at) && !deaf;
        waits[x->server] |= deaf;
        if (!gone && !x->given && !waits[x->server]) {
            if ((now || x->at <= at) && r->p.server_view[x->server] >= x->view) {
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
        migrations_resume(&r->migrations);
    }
}

/* Declared dead: the servers with copies take over, and copies are made again. */
static void dies(struct run *r, unsigned server)
{
    bool gone[SERVERS];
    uint8_t lowest[RING_PARTITIONS];
    r->p.w.servers[server].alive = false;
    for (unsigned s = 0; s < SERVERS; s++)
        gone[s] = !r->p.w.servers[s].alive;
    play_check(&r->p, ring_promote(&r->chains, &r->migrations.ends, gone, SERVERS, false, lowest) == 0);
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        play_check(&r->p, lowest[a] <= r->least);
    chains_out(r);
    aim(r);
}

static void migrations_begin(struct run *r)
{
    migrations_init(&r->migrations, &r->chains, &ops, r);
    for (unsigned t = 0; t < r->p.w.tables_count; t++)
        migrations_table(&r->migrations, r->p.w.options[t].replicas);
}

/* Another scheduler continues from the last view; it does not know of migrations. */
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
    r->p.w.number = r->term << 32;
    migrations_begin(r);
    send_views(r);
    aim(r);
}

/* ---- faults ---- */

/* Every partition has another member: it may die. */
static bool may_die(const struct run *r, unsigned server)
{
    if (!r->p.w.servers[server].alive || !r->p.w.servers[server].up)
        return false;
    unsigned others = 0;
    for (unsigned s = 0; s < SERVERS; s++)
        others += s != server && r->p.w.servers[s].alive && r->weight[s];
    for (unsigned a = 0; a < RING_PARTITIONS; a++) {
        unsigned is = 0, len = 0;
        for (unsigned level = 0; level <= r->least; level++) {
            uint16_t member = r->chains.level[level].owner[a];
            is += member == server;
            len += member != RING_NONE;
        }
        if (is && len < 2)
            return false;
    }
    for (size_t i = 0; i < MIGRATIONS_MAX; i++) /* it may soon be the only one that has the partitions */
        if (r->migrations.migration[i].state >= MIGRATION_FULL && r->migrations.migration[i].to == server &&
            !r->least)
            return false;
    for (unsigned a = 0; a < RING_PARTITIONS && r->p.w.replicas; a++)
        if (r->migrations.target.level[1].owner[a] == RING_NONE)
            return false;
    return others > 0;
}

/* A side of a move, half of the time. */
static unsigned victim(struct run *r)
{
    const struct migration *migration = &r->migrations.migration[play_draw(&r->p, MIGRATIONS_MAX) % 4];
    if (migration->state != MIGRATION_NONE && play_draw(&r->p, 4))
        return play_draw(&r->p, 2) ? migration->from : migration->to;
    return play_living(&r->p);
}

static void killed(struct run *r, unsigned s)
{
    world_server_stop(&r->p.w, s);
    r->p.w.servers[s].alive = true; /* for all that anybody knows */
    r->p.apart = s;
    r->kills++;
    r->dead_at = sim_now(r->p.w.sim) + play_draw(&r->p, ENV_SEC);
    r->heal_at = 0;
}

/* From the others, but not from clients; dead_ns 0: not declared dead. */
static void cut_off(struct run *r, unsigned server, bool both, uint64_t dead_ns, uint64_t heal_ns)
{
    uint64_t at = sim_now(r->p.w.sim);
    r->cuts++;
    r->p.apart = server;
    play_part(&r->p, server, true, both);
    r->dead_at = dead_ns ? at + dead_ns : 0;
    r->heal_at = at + play_draw(&r->p, heal_ns);
    if (r->deaf && r->p.server_view_at[server])
        r->p.server_view_at[server] = UINT64_MAX;
}

static void faults_go_on(struct run *r, bool now)
{
    uint64_t at = sim_now(r->p.w.sim);
    if (r->p.apart < WORLD_SERVERS && r->dead_at && (now || r->dead_at <= at)) {
        r->dead_at = 0;
        if (may_die(r, r->p.apart) || !r->p.w.servers[r->p.apart].up)
            dies(r, r->p.apart);
    }
    if (r->p.apart < WORLD_SERVERS && !r->dead_at && (now || r->heal_at <= at)) {
        play_part(&r->p, r->p.apart, false, true);
        if (r->deaf && r->p.w.servers[r->p.apart].up)
            r->p.server_view_at[r->p.apart] = at + 1;
        r->p.apart = WORLD_SERVERS;
        r->deaf = false;
    }
    if (r->strikes_at && r->strikes_at <= at) {
        r->strikes_at = 0;
        usual_again(r);
        if (!r->calm && r->struck < SERVERS && r->p.apart == WORLD_SERVERS && may_die(r, r->struck))
            killed(r, r->struck);
    }
}

static void start_again(struct run *r, unsigned s)
{
    for (struct order *o = r->orders; o; o = o->next)
        play_check(&r->p, o->server != s || o->incarnation == r->p.w.servers[s].incarnation);
    if (r->p.w.servers[s].up)
        world_server_stop(&r->p.w, s);
    orders_go_on(r, false); /* those to it are lost */
    world_server_start(&r->p.w, s);
    r->p.server_view[s] = 0;
    r->weight[s] = 1;
    play_part(&r->p, s, false, true);
    send_views(r);
    aim(r);
}

static void act(struct run *r)
{
    unsigned s = victim(r);
    switch (play_draw(&r->p, 32)) {
    case 0: /* killed */
        if (r->p.apart == WORLD_SERVERS && !r->strikes_at && may_die(r, s))
            killed(r, s);
        break;
    case 1: /* cut off; perhaps declared dead */
        if (r->p.apart == WORLD_SERVERS && !r->strikes_at && r->p.w.servers[s].up) {
            uint64_t dead = may_die(r, s) && play_draw(&r->p, 2) ? 1 + play_draw(&r->p, 3 * ENV_SEC) : 0;
            r->deaf = play_draw(&r->p, 2);
            cut_off(r, s, play_draw(&r->p, 2), dead, 6 * ENV_SEC);
        }
        break;
    case 2: /* connections break */
        if (r->p.w.servers[s].up)
            van_sim_reset(r->p.w.servers[s].van, UINT32_MAX);
        break;
    case 3:
    case 4: /* joins, or is to go */
        s = (unsigned)play_draw(&r->p, SERVERS);
        if (!r->p.w.servers[s].alive) {
            if (r->p.apart != s)
                start_again(r, s);
        } else {
            unsigned others = 0;
            for (unsigned i = 0; i < SERVERS; i++)
                others += i != s && i != r->p.apart && r->p.w.servers[i].alive && r->weight[i];
            if (others > (r->p.w.replicas ? 1 : 0)) { /* the last copy should not be with one that has died */
                r->weight[s] = !r->weight[s];
                aim(r);
            }
        }
        break;
    case 5:
        if (play_draw(&r->p, 3) == 0)
            scheduler_restarts(r);
        break;
    default:
        r->p.few = r->small && r->deaf && !r->p.apart ? SMALL * PLAY_KEYS / RING_PARTITIONS : 0;
        for (unsigned i = 0; i < (r->p.few ? 4 : 1); i++)
            play_issue(&r->p);
        r->p.few = 0;
    }
}

static void nothing(struct sim_event *event)
{
    (void)event;
}

static void pass(struct run *r, uint64_t ns)
{
    for (uint64_t until = sim_now(r->p.w.sim) + ns; sim_now(r->p.w.sim) < until;) {
        struct sim_event hand = {.fire = nothing}; /* time passes although nothing happens */
        uint64_t at = sim_now(r->p.w.sim) + 1 + play_draw(&r->p, 5 * ENV_MS);
        play_check(&r->p, sim_schedule(r->p.w.sim, &hand, at) == PARAMO_OK);
        play_run(&r->p, at - sim_now(r->p.w.sim));
        orders_go_on(r, false);
        faults_go_on(r, false);
        play_views(&r->p, false);
    }
}

/* ---- a run ---- */

/* No schedule here asks for more than a shard can do: one that ends its node has been led astray. */
static void node_ends(void *arg, paramo_err status)
{
    const struct run *r = arg;
    (void)status;
    fail_msg("seed %llu: a server ends: %s", (unsigned long long)r->p.seed, err_text());
}

static void start(struct run *r, uint64_t seed)
{
    memset(r, 0, sizeof *r);
    play_open(&r->p, seed);
    r->p.w.replicas = (unsigned)(seed % 4);
    r->p.w.migrations = true;
    r->p.w.failed = node_ends;
    r->p.w.handler_arg = r;
    play_links(&r->p, 50000, 50000, 100000);
    play_tables(&r->p);
    r->least = r->p.w.replicas;
    for (unsigned t = 0; t < PLAY_TABLES && seed % 8 >= 4 && r->p.w.replicas; t++) {
        unsigned fewest = seed % 16 >= 12 ? 0 : 1; /* with a table without copies no server may die */
        unsigned replicas = fewest + (unsigned)play_draw(&r->p, r->p.w.replicas + 1 - fewest);
        if (replicas < r->p.w.replicas)
            r->p.w.options[t].replicas = replicas;
        r->least = replicas < r->least ? replicas : r->least;
    }
    r->none = seed / 4 % 2 && r->p.w.replicas; /* nothing of it is lost with its owner */
    if (r->none)
        world_table(&r->p.w, PARAMO_TABLE_SPARSE, 1)->replicas = 0;
    world_start(&r->p.w, SERVERS, FIRST, CLIENTS);
    r->chains.replicas = r->p.w.replicas;
    r->chains.level[0] = r->p.w.ring;
    for (unsigned level = 1; level < RING_LEVELS; level++)
        r->chains.level[level] = r->p.w.follower[level];
    r->before = r->chains;
    r->small = seed % 16 == 5;
    for (unsigned s = 0; s < SERVERS; s++) {
        r->weight[s] = s >= FIRST ? 0 : r->small && s ? 16 : 1;
        r->p.server_view[s] = r->p.w.number;
    }
    for (unsigned a = 0; r->small && a < RING_PARTITIONS; a++) {
        r->chains.level[0].owner[a] = a < SMALL ? 0 : 1;
        r->chains.level[1].owner[a] = a < SMALL ? RING_NONE : 2;
    }
    if (r->small) {
        chains_out(r);
        play_views(&r->p, true);
    }
    migrations_begin(r);
    aim(r);
    play_faulty(&r->p, 1u << VAN_REQUEST | 1u << VAN_ANSWER | (seed % 2 ? 1u << VAN_CHAIN : 0));
}

/* No server has rows of partitions in whose chain it is not. */
static void check_stale(struct run *r)
{
    for (unsigned s = 0; s < SERVERS; s++) {
        if (!r->p.w.servers[s].up || !r->p.w.servers[s].alive)
            continue;
        for (unsigned t = PLAY_SPARSE; t < PLAY_TABLES; t++)
            for (unsigned i = 0; i < PLAY_KEYS; i++) {
                uint64_t key = play_key(t, i);
                float row[2];
                const struct shard_table *st = shard_table_find(r->p.w.servers[s].shard, t + 1);
                unsigned partition = ring_partition(ring_position(&st->placement, key));
                bool member = false;
                for (unsigned level = 0; level <= r->p.w.replicas && level <= st->replicas; level++)
                    member |= r->chains.level[level].owner[partition] == s;
                if (!member && table_get_rows(st->table, &key, 1, true, row) != PARAMO_E_NOT_FOUND)
                    fail_msg("seed %llu: server %u has kept table %u key %u, partition %u",
                             (unsigned long long)r->p.seed, s, t, i, partition);
            }
    }
}

static void verify(struct run *r)
{
    for (unsigned i = 0; i < 3000 && !(migrations_converged(&r->migrations) && !r->orders); i++)
        pass(r, 100 * ENV_MS);
    if (!migrations_converged(&r->migrations) || r->orders) {
        play_explain(&r->p);
        for (const struct order *o = r->orders; o; o = o->next)
            fprintf(stderr, "order %u to s%u, move %llu given %d answered %d\n", o->what, o->server,
                    (unsigned long long)o->fields.id, o->given, o->answered);
    }
    play_check(&r->p, migrations_converged(&r->migrations) && !r->orders);
    play_views(&r->p, true);
    play_verify(&r->p);
    check_stale(r);
}

static void run_seed(uint64_t seed)
{
    struct run *r = malloc(sizeof *r);
    start(r, seed);
    for (unsigned i = 0; i < ACTIONS; i++) {
        act(r);
        pass(r, play_draw(&r->p, 60 * ENV_MS));
    }
    r->calm = true;
    while (r->p.apart < WORLD_SERVERS)
        faults_go_on(r, true);
    verify(r);
    if (getenv("MIGRATION_SIM_SAYS"))
        fprintf(
            stderr,
            "seed %llu: k %u, %u commits, %u aborts, %u kills, %u cuts, %u lags, %u late pauses, term %llu\n",
            (unsigned long long)seed, r->p.w.replicas, r->commits, r->aborts, r->kills, r->cuts, r->lags,
            r->late_pauses, (unsigned long long)r->term);
    play_close(&r->p);
    free(r);
}

int main(int argc, char **argv)
{
    return play_main(argc, argv, SEEDS, run_seed);
}
