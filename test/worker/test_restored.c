/* Servers die with the last copies of rows, and these rows come back from a checkpoint (--on-loss restore). The test is
 * the scheduler. Lost rows are as in the checkpoint. Each push that is in the checkpoint, or was in flight, is done
 * once. All other rows stay as they are, and clients only wait. */
#include "server/replication/chain_impl.h"
#include "server/shard/shard_tables.h"
#include "server/snapshot/loading.h"
#include "server/snapshot/saving.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "ring/chains.h"
#include "sim/env/simfs.h"
#include "wire/migration_order.h"
#include "wire/order.h"
#include "worker/client_impl.h"
#include "worker/support_world.h"

enum { DENSE, SPARSE, NONE, TABLES, SERVERS = 4, N = 6000 };

static struct {
    struct world w;
    struct simfs *disk;
    struct blocking_jobs *blocking_jobs[SERVERS];
    struct ckpt_file file[SERVERS];
    uint64_t number; /* of the checkpoint */
    unsigned done;
    paramo_err status; /* of the first that failed */
    uint64_t keys[N], unanswered;
    float vals[N], ones[N];
    bool gone[SERVERS];
    uint8_t lowest[RING_PARTITIONS];
    struct ring_placement placement[TABLES];
} t;

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static void nothing(struct sim_event *event)
{
    (void)event;
}

static void pass(uint64_t ns)
{
    struct sim_event marker = {.fire = nothing}; /* so that the clock comes to this moment */
    assert_int_equal(sim_schedule(t.w.sim, &marker, sim_now(t.w.sim) + ns), PARAMO_OK);
    (void)sim_run(t.w.sim, never, NULL, marker.at);
}

static bool all_done(void *arg)
{
    return t.done == *(unsigned *)arg;
}

/* ---- the servers' disks ------------------------------------------------------------------------------- */

static void done(void *arg, paramo_err status, const struct ckpt_file *file)
{
    t.done++;
    if (status && !t.status)
        t.status = status;
    if (file && !status)
        t.file[(struct world_server *)arg - t.w.servers] = *file;
}

static struct shard_save_config config_of(struct world_server *s)
{
    return (struct shard_save_config){.fs = simfs_fs(t.disk),
                                      .blocking_jobs = t.blocking_jobs[s - t.w.servers],
                                      .dir = "/d/ckpt",
                                      .number = t.number,
                                      .id = 100 + t.number,
                                      .arg = s,
                                      .done = done};
}

static void save_one(void *arg)
{
    struct shard_save_config config = config_of(arg);
    assert_int_equal(shard_save(((struct world_server *)arg)->shard, &config), PARAMO_OK);
}

static void restore_one(void *arg)
{
    struct shard_save_config config = config_of(arg);
    assert_int_equal(shard_restore(((struct world_server *)arg)->shard, &config), PARAMO_OK);
}

static void load_one(void *arg)
{
    struct shard_save_config config = config_of(arg);
    assert_int_equal(shard_load(((struct world_server *)arg)->shard, &config), PARAMO_OK);
}

/* How many begin. */
static unsigned each_begins(void (*fn)(void *arg))
{
    unsigned count = 0;
    t.done = 0;
    t.status = PARAMO_OK;
    for (unsigned s = 0; s < SERVERS; s++)
        if (!t.gone[s]) {
            world_on_lane(t.w.servers[s].lane, fn, &t.w.servers[s]);
            count++;
        }
    return count;
}

static paramo_err each_ends(unsigned count)
{
    assert_true(sim_run(t.w.sim, all_done, &count, sim_now(t.w.sim) + 100 * ENV_SEC));
    return t.status;
}

static paramo_err each(void (*fn)(void *arg))
{
    return each_ends(each_begins(fn));
}

static void save(unsigned tables)
{
    struct ckpt_file files[SERVERS];
    t.number++;
    assert_int_equal(each(save_one), PARAMO_OK);
    struct ckpt_manifest m = {.number = t.number,
                              .id = 100 + t.number,
                              .job = 7,
                              .tables_count = tables,
                              .tables = t.w.view->tables,
                              .files = files};
    for (unsigned s = 0; s < SERVERS; s++)
        if (!t.gone[s])
            files[m.files_count++] = t.file[s];
    assert_int_equal(ckpt_commit(simfs_fs(t.disk), "/d/ckpt", &m), PARAMO_OK);
}

/* ---- the workers -------------------------------------------------------------------------------------- */

static void push_begin(unsigned table, float add, uint64_t *ts)
{
    for (unsigned i = 0; i < N; i++)
        t.ones[i] = add;
    assert_int_equal(world_push(&t.w, 0, table, t.keys, N, t.ones, N, ts), PARAMO_OK);
}

static void push_all(float add)
{
    for (unsigned table = 0; table < TABLES; table++) {
        uint64_t ts;
        push_begin(table, add, &ts);
        assert_int_equal(world_wait(&t.w, 0, ts), PARAMO_OK);
    }
}

static unsigned partition_of(unsigned table, uint64_t key)
{
    return ring_partition(ring_position(&t.placement[table], key));
}

/* ---- the scheduler ------------------------------------------------------------------------------------ */

static void closed(unsigned server)
{
    blocking_jobs_destroy(t.blocking_jobs[server]);
}

static void begin(unsigned replicas)
{
    memset(&t, 0, sizeof t);
    world_init(&t.w, true, 5);
    t.w.replicas = replicas;
    t.w.migrations = true;
    t.w.timeout_ms = 600000;
    world_table(&t.w, PARAMO_TABLE_DENSE, 1)->rows = N;
    world_table(&t.w, PARAMO_TABLE_SPARSE, 1);
    world_table(&t.w, PARAMO_TABLE_SPARSE, 1)->replicas = replicas ? 0 : PARAMO_REPLICAS_OF_JOB;
    world_start(&t.w, SERVERS, SERVERS, 2);
    for (unsigned table = 0; table < TABLES; table++)
        t.placement[table] = (struct ring_placement){
            .kind = table == DENSE ? PARAMO_PLACE_DENSE : PARAMO_PLACE_MIXED, .rows = table == DENSE ? N : 0};
    for (unsigned i = 0; i < N; i++)
        t.keys[i] = i;
    assert_int_equal(simfs_create(1, &t.disk), PARAMO_OK);
    assert_int_equal(fs_make_dir(simfs_fs(t.disk), "/d"), PARAMO_OK);
    for (unsigned s = 0; s < SERVERS; s++)
        assert_int_equal(blocking_jobs_create(t.w.env, "files", &t.blocking_jobs[s]), PARAMO_OK);
    t.w.closed = closed;
}

static void close_all(void)
{
    for (unsigned s = 0; s < SERVERS; s++)
        world_server_stop(&t.w, s);
    world_fini(&t.w);
    simfs_destroy(t.disk);
}

/* The followers of a dead server own its partitions, else others do; the next view says which rows are lost. */
static void losses(void)
{
    static struct ring_chains c, before;
    struct ring_ends ends = {0};
    struct ring_shard shards[SERVERS];
    uint32_t owned[SERVERS];
    uint8_t touched[SERVERS];
    c = (struct ring_chains){.replicas = t.w.replicas};
    c.level[0] = t.w.ring;
    for (unsigned level = 1; level < RING_LEVELS; level++)
        c.level[level] = t.w.follower[level];
    before = c;
    if (t.w.replicas)
        ring_ends_add(&ends, 0, t.w.replicas);
    (void)ring_promote(&c, &ends, t.gone, SERVERS, true, t.lowest);
    for (unsigned s = 0; s < SERVERS; s++)
        shards[s] = (struct ring_shard){.weight = 1, .server = s};
    assert_true(ring_adopt(&c, shards, t.gone, SERVERS, owned));
    ring_touched(&before, &c, touched, SERVERS);
    for (unsigned s = 0; s < SERVERS; s++) {
        t.w.servers[s].alive = !t.gone[s];
        if (touched[s] & RING_TOUCHED_CHAIN)
            t.w.chain_changed[s] = t.w.number + 1;
        if (touched[s] & RING_TOUCHED_PARTITIONS)
            t.w.partitions_changed[s] = t.w.number + 1;
    }
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        if (c.level[0].owner[a] != t.w.ring.owner[a])
            t.w.owner_gone[a] = t.w.number + 1;
    t.w.ring = c.level[0];
    for (unsigned level = 1; level < RING_LEVELS; level++)
        t.w.follower[level] = c.level[level];
    t.w.lost_at = t.w.number + 1;
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        t.w.lost[a] = t.lowest[a] > t.w.lost[a] ? t.lowest[a] : t.w.lost[a];
}

static void view_of_loss(void)
{
    losses();
    world_view(&t.w);
    world_all_view(&t.w);
}

static bool is_lost(unsigned table, uint64_t key)
{
    uint8_t level = t.lowest[partition_of(table, key)];
    return level == RING_LEVELS || (level && table == NONE && t.w.replicas);
}

/* A key of SPARSE all of whose members die. */
static uint64_t key_to_be_lost(void)
{
    for (uint64_t key = 0; key < N; key++) {
        unsigned a = partition_of(SPARSE, key), next = t.w.follower[1].owner[a];
        if (t.w.ring.owner[a] == 1 && (!t.w.replicas || next == 2))
            return key;
    }
    fail();
    return 0;
}

static void check_all(float lost, float kept, float once)
{
    unsigned back[TABLES] = {0};
    for (unsigned table = 0; table < TABLES; table++) {
        uint64_t ts;
        assert_int_equal(world_pull(&t.w, 0, table, t.keys, N, t.vals, N, &ts), PARAMO_OK);
        assert_int_equal(world_wait(&t.w, 0, ts), PARAMO_OK);
        for (unsigned i = 0; i < N; i++) {
            float want = is_lost(table, i) ? lost : kept;
            want += table == SPARSE && i == t.unanswered ? once : 0;
            if (t.vals[i] != want)
                fail_msg("table %u: key %u holds %g, not %g", table, i, (double)t.vals[i], (double)want);
            back[table] += is_lost(table, i);
        }
        assert_in_range(back[table], 1, N - 1);
    }
    for (unsigned s = 0; s < SERVERS; s++)
        for (unsigned table = 0; table < TABLES && !t.gone[s]; table++)
            assert_false(shard_table_find(t.w.servers[s].shard, table + 1)->lost);
}

/* Without copies one dies, with one of each two do; the table NONE has none. */
static void comes_back(void **state)
{
    (void)state;
    for (unsigned replicas = 0; replicas <= 1; replicas++) {
        uint64_t under_way[TABLES], ts;
        float four = 4;
        struct simnet_node *from, *to;
        struct simnet_link *answers;
        begin(replicas);
        push_all(1);
        t.unanswered = key_to_be_lost();
        assert_int_equal(simnet_node(t.w.net, "s1", &from), PARAMO_OK);
        assert_int_equal(simnet_node(t.w.net, "w1", &to), PARAMO_OK);
        assert_int_equal(simnet_link(t.w.net, from, to, &answers), PARAMO_OK);
        assert_int_equal(world_pull(&t.w, 1, SPARSE, &t.unanswered, 1, t.vals, 1, &ts), PARAMO_OK);
        assert_int_equal(world_wait(&t.w, 1, ts), PARAMO_OK);
        answers->cut = true; /* he does not hear that it is done; the checkpoint has it */
        assert_int_equal(world_push(&t.w, 1, SPARSE, &t.unanswered, 1, &four, 1, &ts), PARAMO_OK);
        pass(ENV_SEC);
        save(TABLES);
        push_all(2);
        for (unsigned s = 1; s <= 1 + replicas; s++) {
            world_server_stop(&t.w, s);
            t.gone[s] = true;
        }
        for (unsigned table = 0; table < TABLES; table++)
            push_begin(table, 8, &under_way[table]);
        pass(10 * ENV_MS);
        view_of_loss();
        pass(3 * ENV_SEC);
        for (unsigned table = 0; table < TABLES; table++) /* they wait */
            assert_int_equal(client_wait(t.w.clients[0].client, under_way[table], 1000), PARAMO_E_TIMEOUT);
        assert_int_equal(client_wait(t.w.clients[1].client, ts, 1000), PARAMO_E_TIMEOUT);
        assert_int_equal(each(restore_one), PARAMO_OK);
        for (unsigned table = 0; table < TABLES; table++)
            assert_int_equal(world_wait(&t.w, 0, under_way[table]), PARAMO_OK);
        assert_int_equal(world_wait(&t.w, 1, ts), PARAMO_OK);
        check_all(1 + 8, 1 + 2 + 8, 4);
        push_all(16);
        assert_int_equal(each(restore_one), PARAMO_OK); /* once more: it is all there */
        check_all(1 + 8 + 16, 1 + 2 + 8 + 16, 4);
        t.w.lost_at = 0;
        memset(t.w.lost, 0, sizeof t.w.lost);
        world_view(&t.w);
        world_all_view(&t.w);
        push_all(32);
        check_all(1 + 8 + 16 + 32, 1 + 2 + 8 + 16 + 32, 4);
        close_all();
    }
}

/* Worker 1 pushes to server 1, which does it; no answer gets back. Key and value are the request's until it
 * ends. */
static uint64_t push_unheard(const uint64_t *key, const float *value)
{
    struct simnet_node *from, *to;
    struct simnet_link *answers;
    uint64_t ts;
    assert_int_equal(world_pull(&t.w, 1, SPARSE, key, 1, t.vals, 1, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&t.w, 1, ts), PARAMO_OK);
    assert_int_equal(simnet_node(t.w.net, "s1", &from), PARAMO_OK);
    assert_int_equal(simnet_node(t.w.net, "w1", &to), PARAMO_OK);
    assert_int_equal(simnet_link(t.w.net, from, to, &answers), PARAMO_OK);
    answers->cut = true;
    assert_int_equal(world_push(&t.w, 1, SPARSE, key, 1, value, 1, &ts), PARAMO_OK);
    pass(ENV_SEC);
    return ts;
}

/* A follower has done a push whose answer is lost, is promoted, saved, and dies, before it comes again: what
 * it has noted is in the checkpoint. */
static void notes_come_back(void **state)
{
    (void)state;
    float four = 4;
    begin(1);
    push_all(1);
    save(TABLES);
    uint64_t key = key_to_be_lost();
    uint64_t ts = push_unheard(&key, &four);
    world_server_stop(&t.w, 1);
    t.gone[1] = true;
    losses();
    world_view(&t.w);
    for (unsigned s = 0; s < SERVERS; s++)
        if (!t.gone[s])
            world_server_view(&t.w, s);
    assert_int_equal(each(restore_one), PARAMO_OK); /* the table without copies */
    save(TABLES);
    world_server_stop(&t.w, 2);
    t.gone[2] = true;
    view_of_loss();
    assert_int_equal(each(restore_one), PARAMO_OK);
    assert_int_equal(world_wait(&t.w, 1, ts), PARAMO_OK);
    t.unanswered = key;
    check_all(1, 1, 4);
    close_all();
}

/* The scheduler drops a member from chains, and before it says so their owner dies: they have no member left. The
 * member gets these partitions by the same view. It has followed them until then, and what it has noted was done on
 * rows that are gone. */
static void dropped_and_given_by_one_view(void **state)
{
    (void)state;
    float four = 4;
    begin(1);
    push_all(1);
    save(TABLES);
    uint64_t key = key_to_be_lost();
    uint64_t ts = push_unheard(&key, &four);
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        if (t.w.ring.owner[a] == 1 && t.w.follower[1].owner[a] == 2)
            t.w.follower[1].owner[a] = RING_NONE;
    world_server_stop(&t.w, 1);
    t.gone[1] = true;
    losses();
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        if (t.lowest[a] == RING_LEVELS)
            t.w.ring.owner[a] = 2;
    t.w.chain_changed[2] = t.w.partitions_changed[2] = t.w.number + 1;
    world_view(&t.w);
    world_all_view(&t.w);
    assert_int_equal(each(restore_one), PARAMO_OK);
    assert_int_equal(world_wait(&t.w, 1, ts), PARAMO_OK);
    t.unanswered = key;
    check_all(1, 1, 4);
    close_all();
}

/* A push that a follower may lack is in the records: the shard's part does not end before he has it. */
static void followers_have_what_is_saved(void **state)
{
    (void)state;
    struct simnet_node *from, *to;
    struct simnet_link *chain;
    uint64_t key, ts;
    float four = 4;
    begin(1);
    push_all(1);
    key = key_to_be_lost();
    assert_int_equal(simnet_node(t.w.net, "s1", &from), PARAMO_OK);
    assert_int_equal(simnet_node(t.w.net, "s2", &to), PARAMO_OK);
    assert_int_equal(simnet_link(t.w.net, from, to, &chain), PARAMO_OK);
    chain->cut = true;
    assert_int_equal(world_push(&t.w, 1, SPARSE, &key, 1, &four, 1, &ts), PARAMO_OK);
    pass(50 * ENV_MS);
    t.number = 1;
    unsigned all = each_begins(save_one);
    pass(3 * ENV_SEC);
    assert_int_equal(t.done, SERVERS - 1);
    assert_non_null(t.w.servers[1].shard->saves->current);
    chain->cut = false;
    assert_int_equal(each_ends(all), PARAMO_OK);
    assert_int_equal(world_wait(&t.w, 1, ts), PARAMO_OK);
    close_all();
}

static void moved(void *arg, paramo_err err)
{
    (void)arg;
    assert_int_equal(err, PARAMO_OK);
}

static void migrate_one(void *arg)
{
    unsigned partition = partition_of(SPARSE, key_to_be_lost());
    struct migration_order m = {.id = 1,
                                .first = (uint16_t)partition,
                                .partitions = 1,
                                .from = {.node = PARAMO_ID_SERVER(1)},
                                .to = {.node = PARAMO_ID_SERVER(0)},
                                .had = MIGRATION_NO_LEVEL};
    shard_migration_order(((struct world_server *)arg)->shard, ORDER_MIGRATION_SOURCE, &m, moved, NULL);
}

/* The target of a migration follows no owner before the commit: a checkpoint does not wait for it. */
static void targets_of_migrations_do_not_count(void **state)
{
    (void)state;
    struct simnet_node *from, *to;
    struct simnet_link *chain;
    begin(0);
    push_all(1);
    assert_int_equal(simnet_node(t.w.net, "s1", &from), PARAMO_OK);
    assert_int_equal(simnet_node(t.w.net, "s0", &to), PARAMO_OK);
    assert_int_equal(simnet_link(t.w.net, from, to, &chain), PARAMO_OK);
    chain->cut = true;
    world_on_lane(t.w.servers[1].lane, migrate_one, &t.w.servers[1]);
    assert_non_null(t.w.servers[1].shard->chain->migration_source);
    save(TABLES);
    assert_non_null(t.w.servers[1].shard->chain->migration_source);
    close_all();
}

/* The whole is being loaded when one dies: the servers that get its partitions do not load these, and they stay lost
 * until they are restored. */
static void lost_while_loading(void **state)
{
    (void)state;
    begin(0);
    push_all(1);
    save(TABLES);
    push_all(2);
    t.gone[1] = true;
    unsigned loads = each_begins(load_one);
    world_server_stop(&t.w, 1);
    view_of_loss();
    assert_int_equal(each_ends(loads), PARAMO_OK);
    assert_int_equal(each(restore_one), PARAMO_OK);
    t.unanswered = N;
    check_all(1, 1, 0);
    close_all();
}

/* What cannot be restored stays lost, and waits: a damaged file, a table that the checkpoint has not. Then
 * it is tried again; or the view says that it does not come back. */
static void cannot_come_back(void **state)
{
    (void)state;
    for (int without = 0; without < 2; without++) {
        uint64_t ts;
        begin(0);
        push_all(1);
        save(without ? TABLES - 1 : TABLES);
        world_server_stop(&t.w, 1);
        t.gone[1] = true;
        view_of_loss();
        push_begin(SPARSE, 8, &ts);
        if (!without)
            assert_true(simfs_flip(t.disk, "/d/ckpt/00000001/blocks-1", 500, 1));
        assert_int_equal(each(restore_one), without ? PARAMO_E_NOT_FOUND : PARAMO_E_CORRUPT);
        assert_int_equal(client_wait(t.w.clients[0].client, ts, 1000), PARAMO_E_TIMEOUT);
        if (!without) {
            assert_true(simfs_flip(t.disk, "/d/ckpt/00000001/blocks-1", 500, 1));
            assert_int_equal(each(restore_one), PARAMO_OK);
            assert_int_equal(world_wait(&t.w, 0, ts), PARAMO_OK);
        } else {
            t.w.lost_at = 0;
            world_view(&t.w);
            world_all_view(&t.w);
            assert_int_equal(world_wait(&t.w, 0, ts), PARAMO_E_DATA_LOST);
        }
        close_all();
    }
}

/* ---- from seeds --------------------------------------------------------------------------------------- */

enum { FEW = 192, DIGITS = 12, STEPS = 60, KEYS_EACH = 12, OPS = 2 * STEPS };

/* A push adds 4 to the power of how many its key has had before, so a row tells of each. */
struct op {
    unsigned client, table, n;
    uint64_t keys[KEYS_EACH], ts, began, ended; /* 0: not yet */
    uint8_t nth[KEYS_EACH];
    float vals[KEYS_EACH];
};

static struct {
    uint64_t random;
    struct op ops[OPS];
    unsigned ops_count;
    uint8_t had[TABLES][FEW];
    uint64_t saved_from, saved_to;
    uint64_t died, died_last;                              /* since the last view: the first, the last */
    uint64_t lost_from[TABLES][FEW], lost_to[TABLES][FEW]; /* the last time, so; 0: never */
    uint64_t server_at[SERVERS], client_at[2], order_at[SERVERS], known_at; /* 0: nothing is due */
    bool restored[SERVERS];
    struct order {
        struct world_server *server;
        bool answered;
    } orders[200], *order[SERVERS]; /* the last that was given */
    unsigned orders_count;
} r;

static uint64_t draw(uint64_t below)
{
    r.random = r.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (r.random >> 33) % below;
}

static uint64_t soon(uint64_t most)
{
    return sim_now(t.w.sim) + 1 + draw(draw(3) ? most / 10 : most);
}

static void push_some(void)
{
    struct op *op = &r.ops[r.ops_count];
    *op = (struct op){.client = (unsigned)draw(2), .table = (unsigned)draw(TABLES)};
    for (unsigned key = (unsigned)draw(FEW / 2); key < FEW && op->n < KEYS_EACH;
         key += 1 + (unsigned)draw(8)) {
        uint8_t *had = &r.had[op->table][key];
        if (*had == DIGITS)
            continue;
        op->keys[op->n] = key;
        op->nth[op->n] = *had;
        op->vals[op->n++] = (float)(UINT32_C(1) << (2 * (*had)++));
    }
    if (!op->n)
        return;
    op->began = sim_now(t.w.sim);
    assert_int_equal(world_push(&t.w, op->client, op->table, op->keys, op->n, op->vals, op->n, &op->ts),
                     PARAMO_OK);
    r.ops_count++;
}

static void ops_check(void)
{
    for (unsigned i = 0; i < r.ops_count; i++) {
        struct op *op = &r.ops[i];
        if (op->ended)
            continue;
        paramo_err err = client_wait(t.w.clients[op->client].client, op->ts, 1);
        if (err != PARAMO_E_TIMEOUT) {
            assert_int_equal(err, PARAMO_OK);
            op->ended = sim_now(t.w.sim);
        }
    }
}

/* All take the view after some time; then the owners of lost rows get their orders. */
static void view_out(void)
{
    world_view(&t.w);
    for (unsigned s = 0; s < SERVERS; s++) {
        r.server_at[s] = t.gone[s] ? 0 : soon(200 * ENV_MS);
        r.order_at[s] = t.gone[s] || !t.w.lost_at ? 0 : r.server_at[s] + draw(300 * ENV_MS);
    }
    for (unsigned c = 0; c < 2; c++)
        r.client_at[c] = soon(300 * ENV_MS);
}

static void order_done(void *arg, paramo_err status, const struct ckpt_file *file)
{
    struct order *o = arg;
    size_t s = (size_t)(o->server - t.w.servers);
    (void)file;
    o->answered = true;
    if (r.order[s] != o || t.gone[s])
        return; /* more has been lost since */
    r.restored[s] = status == PARAMO_OK;
    if (status)
        r.order_at[s] = soon(100 * ENV_MS);
}

static void order_one(void *arg)
{
    struct world_server *s = arg;
    struct shard_save_config config = config_of(s);
    assert_in_range(r.orders_count, 0, 199);
    struct order *o = &r.orders[r.orders_count++];
    *o = (struct order){.server = s};
    config.arg = o;
    config.done = order_done;
    r.order[s - t.w.servers] = o;
    assert_int_equal(shard_restore(s->shard, &config), PARAMO_OK);
}

static bool due(uint64_t *at)
{
    bool is = *at && *at <= sim_now(t.w.sim);
    *at = is ? 0 : *at;
    return is;
}

static void dies(unsigned s)
{
    ops_check();
    world_server_stop(&t.w, s);
    t.gone[s] = true;
    r.server_at[s] = r.order_at[s] = 0;
    r.died_last = sim_now(t.w.sim);
    r.died = r.died ? r.died : r.died_last;
    r.known_at = r.known_at ? r.known_at : soon(300 * ENV_MS);
}

static void deaths_known(void)
{
    losses();
    for (unsigned table = 0; table < TABLES; table++)
        for (unsigned key = 0; key < FEW; key++)
            if (is_lost(table, key)) {
                r.lost_from[table][key] = r.died;
                r.lost_to[table][key] = r.died_last;
            }
    r.died = 0;
    memset(r.restored, 0, sizeof r.restored);
    memset(r.order, 0, sizeof r.order);
    view_out();
}

/* What the scheduler does, by the time that it is. */
static bool calm(void)
{
    bool all = true, views = true;
    if (due(&r.known_at))
        deaths_known();
    for (unsigned s = 0; s < SERVERS; s++) {
        if (due(&r.server_at[s]))
            world_server_view(&t.w, s);
        bool waits = r.server_at[s] || (r.order[s] && !r.order[s]->answered && draw(2));
        if (!waits && due(&r.order_at[s]))
            world_on_lane(t.w.servers[s].lane, order_one, &t.w.servers[s]);
        all &= t.gone[s] || r.restored[s];
        views &= !r.server_at[s];
    }
    for (unsigned c = 0; c < 2; c++) {
        if (due(&r.client_at[c]))
            world_client_view(&t.w, c);
        views &= !r.client_at[c];
    }
    if (t.w.lost_at && all && !r.died) {
        t.w.lost_at = 0;
        memset(t.w.lost, 0, sizeof t.w.lost);
        view_out();
        return false;
    }
    return !t.w.lost_at && !r.died && views;
}

static void check_row(unsigned table, uint64_t key, uint32_t row)
{
    for (unsigned i = 0; i < r.ops_count; i++) {
        const struct op *op = &r.ops[i];
        for (unsigned k = 0; k < op->n && op->table == table; k++) {
            uint32_t times = row >> (2 * op->nth[k]) & 3;
            uint64_t from = r.lost_from[table][key], to = r.lost_to[table][key];
            if (op->keys[k] != key)
                continue;
            bool in = !to || op->ended <= r.saved_from || op->began >= to;
            bool out = to && op->began >= r.saved_to && op->ended <= from;
            if (times > !out || times < in)
                fail_msg("table %u, key %u: push %u of it is there %u times", table, (unsigned)key,
                         op->nth[k], times);
        }
    }
}

static void one_seed(uint64_t seed)
{
    unsigned save_at = 8 + (unsigned)(seed % 5), ends = 0;
    memset(&r, 0, sizeof r);
    r.random = seed;
    begin((unsigned)(seed % 2));
    struct simnet_link *l = simnet_defaults(t.w.net);
    l->loss_ppm = seed % 3 ? 20000 : 0;
    l->repeat_ppm = 20000;
    l->late_ppm = 50000;
    l->late_ns = 100 * ENV_MS;
    for (unsigned s = 0; s < SERVERS; s++)
        van_sim_set_faulty(t.w.servers[s].van,
                           1u << VAN_REQUEST | 1u << VAN_ANSWER | (seed % 4 < 2 ? 1u << VAN_CHAIN : 0));
    for (unsigned c = 0; c < 2; c++)
        van_sim_set_faulty(t.w.clients[c].van,
                           1u << VAN_REQUEST | 1u << VAN_ANSWER | (seed % 4 < 2 ? 1u << VAN_CHAIN : 0));
    for (unsigned step = 0; step < STEPS; step++) {
        if (r.ops_count < OPS)
            push_some();
        pass(draw(40 * ENV_MS));
        if (step == save_at) {
            ops_check();
            r.saved_from = sim_now(t.w.sim);
            save(TABLES);
            r.saved_to = sim_now(t.w.sim);
        }
        (void)calm();
        if (step > save_at + 4 && ends < SERVERS - 1 && draw(12) == 0)
            for (unsigned n = 1 + (unsigned)draw(2); n && ends < SERVERS - 1; n--, ends++) {
                unsigned s = (unsigned)draw(SERVERS);
                while (t.gone[s])
                    s = (s + 1) % SERVERS;
                dies(s);
            }
    }
    for (unsigned n = 0; !calm(); n++) {
        assert_in_range(n, 0, 1000);
        pass(20 * ENV_MS);
    }
    for (unsigned i = 0; i < r.ops_count; i++)
        if (!r.ops[i].ended) {
            assert_int_equal(world_wait(&t.w, r.ops[i].client, r.ops[i].ts), PARAMO_OK);
            r.ops[i].ended = sim_now(t.w.sim);
        }
    for (unsigned table = 0; table < TABLES; table++) {
        uint64_t ts;
        assert_int_equal(world_pull(&t.w, 0, table, t.keys, FEW, t.vals, FEW, &ts), PARAMO_OK);
        assert_int_equal(world_wait(&t.w, 0, ts), PARAMO_OK);
        for (unsigned key = 0; key < FEW; key++)
            check_row(table, key, (uint32_t)t.vals[key]);
    }
    close_all();
}

/* Servers die one after the other, some in the middle of it, frames are lost, views and orders come late. */
static void one_after_the_other(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= UNIT_SEEDS(60); seed++)
        one_seed(seed);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(comes_back),
                                       cmocka_unit_test(cannot_come_back),
                                       cmocka_unit_test(lost_while_loading),
                                       cmocka_unit_test(targets_of_migrations_do_not_count),
                                       cmocka_unit_test(notes_come_back),
                                       cmocka_unit_test(dropped_and_given_by_one_view),
                                       cmocka_unit_test(followers_have_what_is_saved),
                                       cmocka_unit_test(one_after_the_other)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
