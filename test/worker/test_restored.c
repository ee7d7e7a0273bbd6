/* Servers die with rows that nobody else has, and these rows come back from a checkpoint (--on-loss restore):
 * the test is the scheduler. What was lost is as it was in the checkpoint, and no push that is in there, or
 * was under way, is done twice or not at all; everything else is as it is; nobody sees more of it than a
 * wait. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/mutant.h"
#include "env/simfs.h"
#include "ring/chains.h"
#include "server/chained.h"
#include "server/saving.h"
#include "worker/client_impl.h"
#include "worker/support_world.h"

enum { DENSE, SPARSE, NONE, TABLES, SERVERS = 4, N = 6000 };

static struct {
    struct world w;
    struct simfs *disk;
    struct chores *chores;
    struct ckpt_file file[SERVERS];
    unsigned done;
    paramo_err status; /* of the first that failed */
    uint64_t keys[N], unanswered;
    float vals[N], ones[N];
    bool gone[SERVERS];
    uint8_t lowest[RING_ARCS];
    struct ring_placement placement[TABLES];
} t;

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static void pass(uint64_t ns)
{
    (void)sim_run(t.w.sim, never, NULL, sim_now(t.w.sim) + ns);
}

static bool all_done(void *arg)
{
    return t.done == *(unsigned *)arg;
}

/* ---- the servers' disks -------------------------------------------------------------------------------- */

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
                                      .chores = t.chores,
                                      .dir = "/d/ckpt",
                                      .number = 1,
                                      .id = 101,
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

static paramo_err each(void (*fn)(void *arg))
{
    unsigned count = 0;
    t.done = 0;
    t.status = PARAMO_OK;
    for (unsigned s = 0; s < SERVERS; s++)
        if (!t.gone[s]) {
            world_on_lane(t.w.servers[s].lane, fn, &t.w.servers[s]);
            count++;
        }
    assert_true(sim_run(t.w.sim, all_done, &count, sim_now(t.w.sim) + 100 * ENV_SEC));
    return t.status;
}

static void save(unsigned tables)
{
    assert_int_equal(each(save_one), PARAMO_OK);
    struct ckpt_manifest m = {.number = 1,
                              .id = 101,
                              .job = 7,
                              .tables_count = tables,
                              .tables = t.w.view->tables,
                              .files_count = SERVERS,
                              .files = t.file};
    assert_int_equal(ckpt_commit(simfs_fs(t.disk), "/d/ckpt", &m), PARAMO_OK);
}

/* ---- the workers --------------------------------------------------------------------------------------- */

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

static unsigned arc_of(unsigned table, uint64_t key)
{
    return ring_arc(ring_position(&t.placement[table], key));
}

/* ---- the scheduler ------------------------------------------------------------------------------------- */

static void begin(unsigned replicas)
{
    memset(&t, 0, sizeof t);
    world_init(&t.w, true, 5);
    t.w.replicas = replicas;
    t.w.moves = true;
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
    assert_int_equal(chores_create(t.w.env, "files", &t.chores), PARAMO_OK);
}

static void close_all(void)
{
    for (unsigned s = 0; s < SERVERS; s++)
        world_server_stop(&t.w, s);
    chores_destroy(t.chores);
    world_fini(&t.w);
    simfs_destroy(t.disk);
}

/* Who follows a dead one owns its arcs, else others do; the view says what is lost with them. */
static void view_of_loss(void)
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
        if (touched[s] & RING_TOUCHED_ARCS)
            t.w.arcs_changed[s] = t.w.number + 1;
    }
    t.w.ring = c.level[0];
    for (unsigned level = 1; level < RING_LEVELS; level++)
        t.w.follower[level] = c.level[level];
    t.w.lost_at = t.w.number + 1;
    memcpy(t.w.lost, t.lowest, sizeof t.w.lost);
    world_view(&t.w);
    world_all_view(&t.w);
}

static bool is_lost(unsigned table, uint64_t key)
{
    uint8_t level = t.lowest[arc_of(table, key)];
    return level == RING_LEVELS || (level && table == NONE && t.w.replicas);
}

/* A key of SPARSE all of whose members die. */
static uint64_t key_to_be_lost(void)
{
    for (uint64_t key = 0; key < N; key++) {
        unsigned a = arc_of(SPARSE, key), next = t.w.follower[1].owner[a];
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

/* With an argument: that bug is planted (scripts/mutants). */
int main(int argc, char **argv)
{
    if (argc > 1 && !mutant_choose(argv[1]))
        return 2;
    const struct CMUnitTest tests[] = {cmocka_unit_test(comes_back), cmocka_unit_test(cannot_come_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
