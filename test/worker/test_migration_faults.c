/* Faults during migrations and in chains, each as a script: a connection lags, a side is silent, or an order comes
 * late. Seeds: test_migration_sim. The first argument names the one test to run. */
#include "server/migration/target.h"
#include "server/replication/chain_impl.h"
#include "server/replication/gate.h"
#include "server/shard/shard_tables.h"
#include "server/snapshot/loading.h"
#include "worker/support_scene.h"

#include <string.h>

/* ---- unfinished work of a chain ---- */

/* s1 has taken a push from s0, and the next member s2 has not. Then s1 leaves the chain, and is the first to get that
 * view. s0 must send the push to s2, so s1 does not acknowledge it. */
static void a_member_that_leaves_acknowledges_nothing(void **state)
{
    (void)state;
    scene_begin(2, 1, 2);
    scene_push(0, DENSE);
    uint64_t ts;
    scene_cut("s1", "s2", true);
    assert_int_equal(world_push(&scene.w, 0, DENSE, &scene_key, 1, &scene_one, 1, &ts), PARAMO_OK);
    scene_pass(100 * ENV_MS);
    scene_chain(0, 2, RING_NONE);
    for (unsigned s = 0; s < 3; s++)
        scene.w.chain_changed[s] = scene.w.number + 1;
    world_view(&scene.w);
    world_server_view(&scene.w, 1);
    float at_s2 = -1;
    if (client_wait(scene.w.clients[0].client, ts, 1000) != PARAMO_E_TIMEOUT)
        fail_msg("a push was acknowledged that a copy does not have");
    world_all_view(&scene.w);
    scene_cut("s1", "s2", false);
    assert_int_equal(world_wait(&scene.w, 0, ts), PARAMO_OK);
    assert_int_equal(table_get_rows(shard_table_find(scene.w.servers[2].shard, DENSE + 1)->table, &scene_key,
                                    1, false, &at_s2),
                     PARAMO_OK);
    assert_true(at_s2 == 2);
    world_fini(&scene.w);
}

static uint64_t row_of(unsigned server)
{
    struct ring_placement placement = {.kind = PARAMO_PLACE_DENSE, .rows = RING_PARTITIONS};
    for (uint64_t row = 0; row < RING_PARTITIONS; row++)
        if (scene.w.ring.owner[ring_partition(ring_position(&placement, row))] == server)
            return row;
    fail();
    return 0;
}

/* Chains s0 s1 s2 s3, and s1 s2 s3 s4. s0 dies; s2, which has not acknowledged what s1 had of it, dies, too; s3 has
 * it, but has not acknowledged all earlier entries of s1, since s4 does not answer. s3 gives its lease, and still s1
 * serves none of these rows before s3 has acknowledged all: the gate passes to the stream that gets s2's entries. */
static void the_gate_outlives_the_next(void **state)
{
    (void)state;
    uint64_t pushed, before, pull;
    float val = 0;
    memset(&scene, 0, sizeof scene);
    world_init(&scene.w, true, 3);
    scene.w.replicas = 3;
    scene.w.timeout_ms = 60000;
    world_table(&scene.w, PARAMO_TABLE_DENSE, 1)->rows = RING_PARTITIONS;
    world_start(&scene.w, 5, 5, 2);
    for (unsigned a = 0; a < RING_PARTITIONS; a++) /* each is followed by the three after it */
        for (unsigned level = 1; level <= 3; level++)
            scene.w.follower[level].owner[a] = (uint16_t)((scene.w.ring.owner[a] + level) % 5);
    for (unsigned s = 0; s < 5; s++)
        scene.w.chain_changed[s] = scene.w.number + 1;
    world_view(&scene.w);
    world_all_view(&scene.w);
    const uint64_t of_s0 = row_of(0), of_s1 = row_of(1);
    assert_int_equal(world_push(&scene.w, 0, DENSE, &of_s0, 1, &scene_one, 1, &pushed), PARAMO_OK);
    assert_int_equal(world_wait(&scene.w, 0, pushed), PARAMO_OK);
    assert_int_equal(world_push(&scene.w, 1, DENSE, &of_s1, 1, &scene_one, 1, &before), PARAMO_OK);
    assert_int_equal(world_wait(&scene.w, 1, before), PARAMO_OK);
    scene_cut("s1", "s2", true);
    scene_cut("s3", "s4", true);
    assert_int_equal(world_push(&scene.w, 1, DENSE, &of_s1, 1, &scene_one, 1, &before), PARAMO_OK);
    assert_int_equal(world_push(&scene.w, 0, DENSE, &of_s0, 1, &scene_one, 1, &pushed), PARAMO_OK);
    scene_pass(50 * ENV_MS);
    world_server_stop(&scene.w, 0);
    world_server_gone(&scene.w, 0);
    world_all_view(&scene.w);
    scene_pass(50 * ENV_MS);
    world_server_stop(&scene.w, 2);
    world_server_gone(&scene.w, 2);
    world_all_view(&scene.w);
    scene_pass(2 * ENV_SEC);
    assert_int_equal(world_pull(&scene.w, 1, DENSE, &of_s0, 1, &val, 1, &pull), PARAMO_OK);
    scene_pass(ENV_SEC);
    const struct chain_stream *st = scene.w.servers[1].shard->chain->streams;
    while (st && st->to.node != PARAMO_ID_SERVER(3))
        st = st->next;
    assert_true(st && chain_leased(st));
    if (client_wait(scene.w.clients[1].client, pull, 1000) != PARAMO_E_TIMEOUT)
        fail_msg("a successor serves before its next member has the entries of the one between");
    scene_cut("s3", "s4", false);
    assert_int_equal(world_wait(&scene.w, 1, pull), PARAMO_OK);
    assert_int_equal(world_wait(&scene.w, 0, pushed), PARAMO_OK);
    assert_int_equal(world_wait(&scene.w, 1, before), PARAMO_OK);
    assert_true(val == 2);
    world_fini(&scene.w);
}

/* ---- one connection lags ---- */

static void lag(uint64_t ns)
{
    struct simnet_link *link = scene_link("s0", "s1");
    link->late_ppm = ns ? 1000000 : 0;
    link->late_ns = ns;
}

/* s1 follows s0 and will be the owner, also of a table without copies. A push to it is in flight in the chain, and is
 * lost with s0. The records that count the push as applied have come on the migration's connection. */
static void records_that_are_ahead_of_their_updates(void **state)
{
    (void)state;
    scene_begin(1, 1, RING_NONE);
    scene_push(0, DENSE);
    scene_push(0, NONE);
    struct migration_order m = scene_migration(1, 0, 1);
    scene_must(0, ORDER_MIGRATION_SOURCE, m);
    scene_must(1, ORDER_MIGRATION_TARGET, m);
    uint64_t ts, order_before = scene.w.servers[0].shard->chain->order;
    lag(ENV_SEC);
    assert_int_equal(world_push(&scene.w, 0, DENSE, &scene_key, 1, &scene_one, 1, &ts), PARAMO_OK);
    while (scene.w.servers[0].shard->chain->order == order_before)
        scene_pass(10 * ENV_US);
    lag(0);
    m.takes_over = true;
    (void)scene_order(0, ORDER_MIGRATION_PAUSE, m);
    scene_pass(20 * ENV_MS);
    assert_true(migration_target_complete(scene.w.servers[1].shard->chain));
    world_server_stop(&scene.w, 0);
    world_server_gone(&scene.w, 0);
    world_all_view(&scene.w);
    assert_int_equal(world_wait(&scene.w, 0, ts), PARAMO_OK);
    if (scene_pulled(1, DENSE) != 2)
        fail_msg("a push was acknowledged, and is lost: its record was taken before its update");
    world_fini(&scene.w);
}

/* Part of a table is not the table: rows that have arrived are dropped when the target becomes owner by a death. */
static void rows_that_came_for_nothing(void **state)
{
    (void)state;
    scene_begin(1, 1, RING_NONE);
    scene_push(0, NONE);
    struct migration_order m = scene_migration(1, 0, 1);
    scene_must(0, ORDER_MIGRATION_SOURCE, m);
    scene_must(1, ORDER_MIGRATION_TARGET, m);
    struct table *table = shard_table_find(scene.w.servers[1].shard, NONE + 1)->table;
    float row = -1;
    assert_int_equal(table_get_rows(table, &scene_key, 1, false, &row), PARAMO_OK);
    assert_true(row == 1);
    world_server_stop(&scene.w, 0);
    world_server_gone(&scene.w, 0);
    world_all_view(&scene.w);
    uint64_t ts;
    assert_int_equal(world_pull(&scene.w, 1, NONE, &scene_key, 1, &row, 1, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&scene.w, 1, ts), PARAMO_E_DATA_LOST);
    assert_int_equal(table_get_rows(table, &scene_key, 1, false, &row), PARAMO_OK);
    assert_true(row == 0);
    world_fini(&scene.w);
}

/* The same, when the owner's death leaves the target where it was on the first of the partitions, and makes it the
 * owner of others: END comes after the view, and must not change rows that are lost by the view. */
static void partitions_of_a_migration_that_fare_differently(void **state)
{
    (void)state;
    const uint64_t far = PARTITIONS - 1;
    scene_begin(2, 2, 1);
    for (unsigned a = PARTITIONS / 2; a < PARTITIONS; a++)
        scene.w.follower[1].owner[a] = RING_NONE;
    for (unsigned s = 0; s < 3; s++)
        scene_changed(s);
    world_view(&scene.w);
    world_all_view(&scene.w);
    scene_pass(ENV_SEC);
    uint64_t ts;
    assert_int_equal(world_push(&scene.w, 0, NONE, &far, 1, &scene_one, 1, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&scene.w, 0, ts), PARAMO_OK);
    struct migration_order m = scene_migration(1, 0, 2);
    scene_must(0, ORDER_MIGRATION_SOURCE, m);
    scene_must(1, ORDER_MIGRATION_TARGET, m);
    world_server_stop(&scene.w, 0);
    world_server_gone(&scene.w, 0);
    for (unsigned a = 0; a < PARTITIONS / 2; a++) { /* level 1 is empty: ONE's rows are not at s1 */
        scene.w.follower[1].owner[a] = RING_NONE;
        scene.w.follower[2].owner[a] = 1;
    }
    world_view(&scene.w);
    world_all_view(&scene.w);
    scene_must(1, ORDER_MIGRATION_END, m);
    float row = -1;
    assert_int_equal(world_pull(&scene.w, 1, NONE, &far, 1, &row, 1, &ts), PARAMO_OK);
    if (world_wait(&scene.w, 1, ts) != PARAMO_E_DATA_LOST)
        fail_msg("a lost row reads as %g", (double)row);
    world_fini(&scene.w);
}

/* s0 has done a pushpull, and its answer is lost. The partitions move to s2, which dies with the only rows; s0 owns
 * them again, and still knows that the push is done. For the repeat it must not read zeros. */
static void a_repeat_reads_what_is_lost(void **state)
{
    (void)state;
    scene_begin(1, 2, RING_NONE);
    uint64_t ts;
    float val = scene_one;
    paramo_kv kv = {.size = sizeof kv, .keys = &scene_key, .n = 1, .vals = &val, .vals_len = 1};
    struct client_call call = {.kind = REQUEST_PUSHPULL, .table = &scene.w.tables[NONE], .kv = &kv};
    scene_push(0, NONE);
    scene_link("s0", "w0")->cut = true;
    assert_int_equal(client_issue(scene.w.clients[0].client, &call, &ts), PARAMO_OK);
    scene_pass(ENV_SEC);
    assert_true(scene_pulled(1, NONE) == 2);
    scene_cut("w0", "s0", true);
    van_sim_reset(scene.w.clients[0].van, UINT32_MAX);
    struct migration_order m = scene_migration(2, 0, 1);
    scene_must(0, ORDER_MIGRATION_SOURCE, m);
    scene_must(2, ORDER_MIGRATION_TARGET, m);
    m.takes_over = true;
    scene_must(0, ORDER_MIGRATION_PAUSE, m);
    scene_chain(2, 0, RING_NONE);
    scene.w.moved[2] = m.id;
    scene_changed(0);
    scene_changed(2);
    world_view(&scene.w);
    for (unsigned s = 0; s < SERVERS; s++)
        world_server_view(&scene.w, s);
    world_client_view(&scene.w, 1);
    assert_true(scene_pulled(1, NONE) == 2);
    world_server_stop(&scene.w, 2);
    world_server_gone(&scene.w, 2);
    world_all_view(&scene.w);
    scene_cut("w0", "s0", false);
    if (world_wait(&scene.w, 0, ts) != PARAMO_E_DATA_LOST)
        fail_msg("a lost row reads as %g", (double)val);
    world_fini(&scene.w);
}

/* ---- migrations that were given up ---- */

/* The target acknowledges nothing for a while, so the owner aborts the migration; then the PAUSE comes. */
static void pause_of_an_aborted_migration(uint8_t level, uint8_t had, unsigned to, unsigned table)
{
    scene_push(0, table);
    struct migration_order m = scene_migration(to, level, had);
    scene_must(0, ORDER_MIGRATION_SOURCE, m);
    scene_must(to, ORDER_MIGRATION_TARGET, m);
    uint64_t ts;
    scene_link(to == 1 ? "s1" : "s2", "s0")->cut = true;
    assert_int_equal(world_push(&scene.w, 0, table, &scene_key, 1, &scene_one, 1, &ts), PARAMO_OK);
    scene_pass(7 * ENV_SEC);
    assert_null(scene.w.servers[0].shard->chain->migration_source);
    scene_link(to == 1 ? "s1" : "s2", "s0")->cut = false;
    scene_pass(2 * ENV_SEC);
    m.takes_over = level == 0;
    const struct scene_order *late = scene_order(0, ORDER_MIGRATION_PAUSE, m);
    scene_pass(ENV_SEC);
    assert_true(late->done);
    if (late->status != PARAMO_E_NOT_FOUND)
        fail_msg("an owner pauses for a migration that it has aborted: %s", err_name(late->status));
    scene_must(0, ORDER_MIGRATION_END, m);
    scene_must(to, ORDER_MIGRATION_END, m);
    assert_int_equal(world_wait(&scene.w, 0, ts), PARAMO_OK);
    assert_true(scene_pulled(1, table) == 2);
    world_fini(&scene.w);
}

static void a_late_pause_for_a_table_without_copies(void **state)
{
    (void)state;
    scene_begin(1, 1, RING_NONE);
    pause_of_an_aborted_migration(0, 1, 1, NONE);
}

/* s2 moves to the level next to the owner, which a death has left empty. */
static void a_late_pause_for_a_table_with_one(void **state)
{
    (void)state;
    scene_begin(2, RING_NONE, 2);
    pause_of_an_aborted_migration(1, 2, 2, ONE);
}

/* A target that has not received the end is no member, whatever a view says. */
static unsigned failures;

static void failed(void *arg, paramo_err status)
{
    (void)arg;
    failures += status == PARAMO_E_PROTOCOL;
}

static void a_commit_of_what_has_not_come(void **state)
{
    (void)state;
    scene_begin(1, RING_NONE, RING_NONE);
    scene.w.servers[2].shard->config.failed = failed;
    failures = 0;
    scene_push(0, DENSE);
    struct migration_order m = scene_migration(2, 1, MIGRATION_NO_LEVEL);
    scene_must(0, ORDER_MIGRATION_SOURCE, m);
    scene_must(2, ORDER_MIGRATION_TARGET, m);
    scene_chain(0, 2, RING_NONE);
    scene.w.moved[2] = m.id;
    scene.w.chain_changed[0] = scene.w.chain_changed[2] = scene.w.number + 1;
    world_view(&scene.w);
    world_server_view(&scene.w, 2);
    assert_int_equal(failures, 1);
    world_fini(&scene.w);
}

static paramo_err reads(unsigned client, unsigned table, float *val)
{
    uint64_t ts;
    assert_int_equal(world_pull(&scene.w, client, table, &scene_key, 1, val, 1, &ts), PARAMO_OK);
    return world_wait(&scene.w, client, ts);
}

/* s0 gives its partitions to s2, and follows it if there are replicas. Rows that died with an earlier owner are not
 * lost again. */
static void give_to_s2(unsigned replicas, unsigned table)
{
    scene_begin(replicas, RING_NONE, RING_NONE);
    scene_push(0, table);
    struct migration_order m = scene_migration(2, 0, MIGRATION_NO_LEVEL);
    scene_must(0, ORDER_MIGRATION_SOURCE, m);
    scene_must(2, ORDER_MIGRATION_TARGET, m);
    m.takes_over = true;
    scene_must(0, ORDER_MIGRATION_PAUSE, m);
    scene_chain(2, replicas ? 0 : RING_NONE, RING_NONE);
    for (unsigned a = 0; a < PARTITIONS; a++)
        scene.w.owner_gone[a] = scene.w.number;
    scene.w.moved[2] = m.id;
    scene_changed(0);
    scene_changed(2);
    world_view(&scene.w);
    for (unsigned s = replicas ? 0 : 1; s < SERVERS; s++)
        world_server_view(&scene.w, s);
    world_client_view(&scene.w, 0);
    scene_push(0, table);
    assert_true(scene_pulled(0, table) == 2);
    world_server_stop(&scene.w, 2);
}

enum { STAYS, MOVES, GIVEN_UP, ENDS, HELD_COUNT = 8 };

/* How the migration ends for s0, which has paused. */
static void migration_ends(int end, struct migration_order m)
{
    if (end == GIVEN_UP) {
        scene_must(0, ORDER_MIGRATION_END, m);
        scene_must(2, ORDER_MIGRATION_END, m);
        return;
    }
    scene_chain(end == MOVES ? 2 : 0, end == MOVES ? 0 : 2, RING_NONE);
    scene.w.moved[2] = m.id;
    scene_changed(0);
    scene_changed(2);
    world_view(&scene.w);
    world_all_view(&scene.w);
}

/* Changes that a pause holds are made after it, once, and in order, with the reads between them: by s0, or by the next
 * owner; also if they were sent again during the pause. */
static void changes_that_a_pause_holds(void **state)
{
    (void)state;
    for (int run = 0; run < 2 * ENDS; run++) {
        int end = run / 2;
        uint64_t pushes[HELD_COUNT], pulls[HELD_COUNT];
        float vals[HELD_COUNT];
        scene_begin(1, RING_NONE, RING_NONE);
        scene_push(0, DENSE);
        struct migration_order m = scene_migration(2, end == MOVES ? 0 : 1, MIGRATION_NO_LEVEL);
        scene_must(0, ORDER_MIGRATION_SOURCE, m);
        scene_must(2, ORDER_MIGRATION_TARGET, m);
        m.takes_over = end == MOVES;
        scene_must(0, ORDER_MIGRATION_PAUSE, m);
        for (unsigned i = 0; i < HELD_COUNT; i++) {
            vals[i] = -1;
            assert_int_equal(world_push(&scene.w, 0, DENSE, &scene_key, 1, &scene_one, 1, &pushes[i]),
                             PARAMO_OK);
            assert_int_equal(world_pull(&scene.w, 0, DENSE, &scene_key, 1, &vals[i], 1, &pulls[i]),
                             PARAMO_OK);
        }
        scene_pass(ENV_SEC);
        if (run % 2)
            van_sim_reset(scene.w.clients[0].van, UINT32_MAX);
        scene_pass(ENV_SEC);
        assert_int_equal(client_wait(scene.w.clients[0].client, pushes[0], 300), PARAMO_E_TIMEOUT);
        assert_true(end == MOVES || scene_pulled(1, DENSE) == 1);
        migration_ends(end, m);
        for (unsigned i = 0; i < HELD_COUNT; i++) {
            assert_int_equal(world_wait(&scene.w, 0, pushes[i]), PARAMO_OK);
            assert_int_equal(world_wait(&scene.w, 0, pulls[i]), PARAMO_OK);
            assert_true(vals[i] == (float)(i + 2));
        }
        assert_true(scene_pulled(1, DENSE) == HELD_COUNT + 1);
        world_fini(&scene.w);
    }
}

/* Then s2 dies, and they are s0's again, without the rows that have no copies. */
static void partitions_come_back(void **state)
{
    (void)state;
    float val = -1;
    uint64_t ts;
    give_to_s2(1, NONE);
    world_server_gone(&scene.w, 2);
    world_all_view(&scene.w);
    scene_pass(ENV_SEC);
    assert_int_equal(reads(0, NONE, &val), PARAMO_E_DATA_LOST);
    assert_int_equal(reads(0, DENSE, &val), PARAMO_OK);
    struct client_call clear = {.kind = REQUEST_CLEAR, .table = &scene.w.tables[NONE]};
    assert_int_equal(client_issue(scene.w.clients[0].client, &clear, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&scene.w, 0, ts), PARAMO_OK);
    assert_int_equal(reads(0, NONE, &val), PARAMO_OK);
    assert_true(val == 0);
    world_fini(&scene.w);
}

/* The same without copies, with --on-loss restore, and s0 has missed the view that gave them to s2: its rows are old,
 * and are replaced by those of the checkpoint. */
static void partitions_come_back_by_the_next_view(void **state)
{
    (void)state;
    give_to_s2(0, DENSE);
    scene.w.servers[2].alive = false;
    scene_chain(0, RING_NONE, RING_NONE);
    scene_changed(0);
    scene_changed(2);
    scene.w.lost_at = scene.w.number + 1;
    for (unsigned a = 0; a < PARTITIONS; a++) {
        scene.w.owner_gone[a] = scene.w.lost_at;
        scene.w.lost[a] = RING_LEVELS;
    }
    world_view(&scene.w);
    world_all_view(&scene.w);
    struct shard *s = scene.w.servers[0].shard;
    const struct shard_table *dense = shard_table_find(s, DENSE + 1);
    assert_true(s->loads->restoring);
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        assert_true(partition_set_has(dense->lost_partitions, a) == (a < PARTITIONS));
    world_fini(&scene.w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_member_that_leaves_acknowledges_nothing),
                                       cmocka_unit_test(the_gate_outlives_the_next),
                                       cmocka_unit_test(records_that_are_ahead_of_their_updates),
                                       cmocka_unit_test(rows_that_came_for_nothing),
                                       cmocka_unit_test(partitions_of_a_migration_that_fare_differently),
                                       cmocka_unit_test(a_repeat_reads_what_is_lost),
                                       cmocka_unit_test(a_late_pause_for_a_table_without_copies),
                                       cmocka_unit_test(a_late_pause_for_a_table_with_one),
                                       cmocka_unit_test(a_commit_of_what_has_not_come),
                                       cmocka_unit_test(changes_that_a_pause_holds),
                                       cmocka_unit_test(partitions_come_back),
                                       cmocka_unit_test(partitions_come_back_by_the_next_view)};
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
