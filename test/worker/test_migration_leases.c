/* Leases of chains and migrations, each as a script: an owner that is cut off, or whose clock drifts, answers no read
 * when another server may have taken its place. Seeds: test_migration_sim, test_chain_sim. The first argument names
 * the one test to run. */
#include "server/snapshot/loading.h"
#include "server/snapshot/saving.h"
#include "worker/support_scene.h"

#include <string.h>

/* ---- a target without a lease ---- */

/* s2 is the only copy of s0's partitions since the scheduler's commit, which s0 does not learn of. */
static void commit_behind_the_back_of_s0(void)
{
    scene_begin(1, RING_NONE, RING_NONE);
    scene_push(0, DENSE);
    struct migration_order m = scene_migration(2, 1, MIGRATION_NO_LEVEL);
    scene_must(0, ORDER_MIGRATION_SOURCE, m);
    scene_must(2, ORDER_MIGRATION_TARGET, m);
    scene_must(0, ORDER_MIGRATION_PAUSE, m);
    assert_true(scene_pulled(1, DENSE) == 1); /* reads are answered */
    scene_chain(0, 2, RING_NONE);
    scene.w.moved[2] = m.id;
    scene.w.chain_changed[0] = scene.w.chain_changed[2] = scene.w.number + 1;
}

/* From PAUSED on the target may be in the chain, and become the owner when the source is declared dead: its lease
 * counts. */
static void a_paused_source_reads_by_the_target_s_lease(void **state)
{
    (void)state;
    commit_behind_the_back_of_s0();
    scene_part(true);
    scene_view_without_s0();
    scene_pass(10 * ENV_SEC);
    world_server_gone(&scene.w, 0);
    scene_view_without_s0();
    scene_push(0, DENSE);
    scene_pull_held(1, 2);
    world_fini(&scene.w);
}

/* The same, but s0 is declared dead at once, and its stream to s2 has ended: the answers of s2 still count. */
static void a_stream_that_ended_has_given_a_lease(void **state)
{
    (void)state;
    commit_behind_the_back_of_s0();
    scene_view_without_s0();
    van_sim_reset(scene.w.servers[2].van, UINT32_MAX);
    scene_part(true);
    scene_pass(10 * ENV_MS);
    world_server_gone(&scene.w, 0);
    scene_view_without_s0();
    scene_push(0, DENSE);
    scene_pull_held(1, 2);
    world_fini(&scene.w);
}

/* A target that is slow, and in no chain yet, delays reads for no longer than until it answers again. */
static void reads_go_on_when_the_target_answers(void **state)
{
    (void)state;
    commit_behind_the_back_of_s0();
    scene_cut("s0", "s2", true);
    uint64_t ts;
    float val = -1;
    scene_pass(ENV_SEC);
    assert_int_equal(world_pull(&scene.w, 1, DENSE, &scene_key, 1, &val, 1, &ts), PARAMO_OK);
    assert_int_equal(client_wait(scene.w.clients[1].client, ts, 300), PARAMO_E_TIMEOUT);
    scene_cut("s0", "s2", false);
    assert_int_equal(client_wait(scene.w.clients[1].client, ts, 2000), PARAMO_OK);
    assert_true(val == 1);
    world_fini(&scene.w);
}

/* The first members of a chain are cut off with a client: as many as there are replicas, so another member is left,
 * and takes their place. The first has leases from those that are with it, and none from that one. */
static void two_that_are_cut_off_together_read_nothing(void **state)
{
    (void)state;
    for (unsigned replicas = 2; replicas <= 3; replicas++)
        for (int views = 0; views < 2;
             views++) { /* all are declared dead in one view, or one after the other */
            scene_begin(replicas, 1, 2);
            scene_push(0, DENSE);
            assert_true(scene_pulled(1, DENSE) == 1);
            scene_apart(replicas, true);
            for (unsigned s = 0; s < replicas; s++) {
                world_server_gone(&scene.w, s);
                if (views || s + 1 == replicas)
                    scene_view_from(replicas);
            }
            scene_push(0, DENSE);
            scene_pull_held(1, 2);
            world_fini(&scene.w);
        }
}

/* The same, but the member that is left became one by a commit that the others do not learn of. */
static void a_source_and_its_follower_read_by_the_target_s_lease(void **state)
{
    (void)state;
    scene_begin(2, 1, RING_NONE);
    scene_push(0, DENSE);
    struct migration_order m = scene_migration(2, 2, MIGRATION_NO_LEVEL);
    scene_must(0, ORDER_MIGRATION_SOURCE, m);
    scene_must(2, ORDER_MIGRATION_TARGET, m);
    scene_must(0, ORDER_MIGRATION_PAUSE, m);
    assert_true(scene_pulled(1, DENSE) == 1);
    scene_chain(0, 1, 2);
    scene.w.moved[2] = m.id;
    for (unsigned s = 0; s < 3; s++)
        scene.w.chain_changed[s] = scene.w.number + 1;
    scene_apart(2, true);
    scene_view_from(2);
    scene_pass(10 * ENV_SEC);
    world_server_gone(&scene.w, 0);
    world_server_gone(&scene.w, 1);
    scene_view_from(2);
    scene_push(0, DENSE);
    scene_pull_held(1, 2);
    world_fini(&scene.w);
}

/* s1 takes the place of s0, which is cut off with client 1, and gets the order to migrate it to s2 at once: s2 waits,
 * too. */
static void a_target_waits_for_a_dead_owner_s_lease(void **state)
{
    (void)state;
    static const uint32_t whats[] = {ORDER_MIGRATION_SOURCE, ORDER_MIGRATION_TARGET, ORDER_MIGRATION_PAUSE};
    scene_begin(1, 1, RING_NONE);
    scene_push(0, DENSE);
    scene_part(true);
    world_server_gone(&scene.w, 0);
    scene_view_without_s0();
    struct migration_order m = scene_migration(2, 0, MIGRATION_NO_LEVEL);
    m.from.node = PARAMO_ID_SERVER(1);
    m.takes_over = true;
    for (unsigned i = 0; i < 3; i++) {
        const struct scene_order *o = scene_order(i == 1 ? 2 : 1, whats[i], m);
        for (unsigned ms = 0; ms < 2000 && !o->done; ms++)
            scene_pass(ENV_MS);
        assert_true(o->done && o->status == PARAMO_OK);
    }
    scene_chain(2, RING_NONE, RING_NONE);
    scene.w.moved[2] = m.id;
    scene_changed(1);
    scene_changed(2);
    scene_view_without_s0();
    scene_push(0, DENSE);
    scene_pull_held(1, 2);
    world_fini(&scene.w);
}

/* ---- an owner that has given its partitions away ---- */

/* s0 is paused, and `to` gets its partitions: as a member that has all rows, or as one that is new. */
static void hand_over(unsigned to)
{
    struct migration_order m = scene_migration(to, 0, to == 1 ? 1 : MIGRATION_NO_LEVEL);
    m.takes_over = true;
    m.handover = to == 1;
    if (!m.handover) {
        scene_must(0, ORDER_MIGRATION_SOURCE, m);
        scene_must(to, ORDER_MIGRATION_TARGET, m);
        scene.w.moved[to] = m.id;
    }
    scene_must(0, ORDER_MIGRATION_PAUSE, m);
    scene_changed(0);
    scene_changed(to);
}

/* It leaves, and the new owner learns of the migration and of that in one view. No lease delays its requests. */
static void an_owner_that_has_left_leaves_no_lease(void **state)
{
    (void)state;
    for (unsigned to = 1; to <= 2; to++) {
        uint64_t ts;
        float val = -1;
        scene_begin(1, 1, RING_NONE);
        scene_push(0, DENSE);
        hand_over(to);
        scene_chain((uint16_t)to, to == 1 ? RING_NONE : 1, RING_NONE);
        world_server_gone(&scene.w, 0);
        scene_view_from(1);
        assert_int_equal(world_pull(&scene.w, 0, DENSE, &scene_key, 1, &val, 1, &ts), PARAMO_OK);
        assert_int_equal(client_wait(scene.w.clients[0].client, ts, 100), PARAMO_OK);
        assert_true(val == 1);
        world_fini(&scene.w);
    }
}

/* ---- a load of a checkpoint, and a lease ---- */

static void held(void *arg, paramo_err status, const struct ckpt_file *file)
{
    (void)file;
    scene_answered(arg, status);
}

static void hold(void *arg)
{
    struct scene_order *o = arg;
    struct shard_save_config config = {.id = 1, .order = 1, .hold_ms = 60000, .done = held, .arg = o};
    assert_int_equal(shard_load_hold(o->server->shard, &config), PARAMO_OK);
}

static void go(void *arg)
{
    struct scene_order *o = arg;
    assert_int_equal(shard_load_go(o->server->shard, 1, 2), PARAMO_OK);
}

/* s0 is cut off with client 1 and declared dead, and a checkpoint is loaded. When all shards hold, rows may be
 * replaced, and the load end, at any moment: s0 must not answer with the old rows. */
static void a_load_waits_for_a_dead_owner_s_lease(void **state)
{
    (void)state;
    uint64_t ts;
    float val = -1;
    scene_begin(1, 1, RING_NONE);
    scene_push(0, DENSE);
    assert_true(scene_pulled(1, DENSE) == 1);
    scene_part(true);
    world_server_gone(&scene.w, 0);
    scene_view_without_s0();
    struct scene_order *o = &scene.orders[scene.asked++];
    *o = (struct scene_order){.server = &scene.w.servers[1]};
    world_on_lane(o->server->lane, hold, o);
    for (unsigned ms = 0; ms < 1000 && !o->done; ms++)
        scene_pass(ENV_MS);
    assert_true(o->done && o->status == PARAMO_OK);
    assert_int_equal(world_pull(&scene.w, 1, DENSE, &scene_key, 1, &val, 1, &ts), PARAMO_OK);
    if (client_wait(scene.w.clients[1].client, ts, 300) != PARAMO_E_TIMEOUT)
        fail_msg("a stale read: %g, of rows that a checkpoint may have replaced", (double)val);
    world_on_lane(o->server->lane, go, o);
    scene_part(false);
    world_all_view(&scene.w);
    assert_int_equal(world_wait(&scene.w, 1, ts), PARAMO_OK);
    assert_true(val == 1);
    world_fini(&scene.w);
}

/* The owner of chains of four reaches all members but the last, which may take its place: it answers no read without
 * that member's lease. */
static void the_last_member_gives_the_lease(void **state)
{
    (void)state;
    uint64_t ts;
    float val = 0;
    memset(&scene, 0, sizeof scene);
    world_init(&scene.w, true, 3);
    scene.w.replicas = 3;
    scene.w.timeout_ms = 60000;
    world_table(&scene.w, PARAMO_TABLE_DENSE, 1)->rows = RING_PARTITIONS;
    world_start(&scene.w, 4, 4, 2);
    for (unsigned a = 0; a < RING_PARTITIONS; a++) {
        scene.w.ring.owner[a] = 0;
        for (unsigned level = 1; level <= 3; level++)
            scene.w.follower[level].owner[a] = (uint16_t)level;
    }
    for (unsigned s = 0; s < 4; s++)
        scene.w.partitions_changed[s] = scene.w.chain_changed[s] = scene.w.number + 1;
    world_view(&scene.w);
    world_all_view(&scene.w);
    scene_push(0, DENSE);
    scene_cut("s0", "s3", true);
    scene_pass(2 * ENV_SEC);
    assert_int_equal(world_pull(&scene.w, 1, DENSE, &scene_key, 1, &val, 1, &ts), PARAMO_OK);
    if (client_wait(scene.w.clients[1].client, ts, 1000) != PARAMO_E_TIMEOUT)
        fail_msg("an owner reads without the lease of the last member");
    scene_cut("s0", "s3", false);
    assert_int_equal(world_wait(&scene.w, 1, ts), PARAMO_OK);
    assert_true(val == 1);
    world_fini(&scene.w);
}

/* ---- clocks of different speed ---- */

/* s0 and its clients on one side, its follower s1 on the other, by whose view it is dead. Client 1 pulls all the
 * time: a pull that begins after client 0's push was acknowledged must see it. The push comes `ms` after the cut, so
 * that it meets s1's tick at different times. */
static void owner_and_successor(int32_t owner_ppm, int32_t successor_ppm, unsigned ms)
{
    scene_begin(1, 1, RING_NONE);
    scene_push(0, DENSE);
    scene_push(1, DENSE);
    sim_host_drift(scene.w.servers[0].clock, owner_ppm);
    sim_host_drift(scene.w.servers[1].clock, successor_ppm);
    scene_pass(ENV_SEC);
    scene_part(true);
    world_server_gone(&scene.w, 0);
    scene_view_without_s0();
    uint64_t pushed = 0, pulls = 0, ts = 0;
    static float val;
    bool after = false;
    int done = 1, acknowledged = 0;
    for (unsigned i = 0; i < 7000; i++) {
        if (i == 10 * ms)
            assert_int_equal(world_push(&scene.w, 0, DENSE, &scene_key, 1, &scene_one, 1, &pushed),
                             PARAMO_OK);
        if (i >= 10 * ms && !acknowledged)
            assert_int_equal(client_test(scene.w.clients[0].client, pushed, &acknowledged), PARAMO_OK);
        if (done) {
            pulls++;
            after = acknowledged;
            assert_int_equal(world_pull(&scene.w, 1, DENSE, &scene_key, 1, &val, 1, &ts), PARAMO_OK);
        }
        scene_pass(100 * ENV_US);
        assert_int_equal(client_test(scene.w.clients[1].client, ts, &done), PARAMO_OK);
        if (done && after && val < 3)
            fail_msg("a stale read: %g, but 3 is acknowledged", (double)val);
    }
    assert_true(acknowledged && pulls > 100 && !done);
    scene_part(false);
    world_all_view(&scene.w);
    assert_int_equal(world_wait(&scene.w, 1, ts), PARAMO_OK);
    assert_true(val == 3);
    world_fini(&scene.w);
}

/* As much as docs/FAULTS.md allows, in each direction. */
static void clocks_drift(void **state)
{
    (void)state;
    for (unsigned ms = 380; ms < 540; ms += 5)
        owner_and_successor(-20000, 20000, ms);
    owner_and_successor(20000, -20000, 0);
    owner_and_successor(-20000, -20000, 0);
}

/* docs/FAULTS.md also says what happens beyond that: an owner whose clock stands still answers reads, and
 * acknowledges nothing. When its clock runs again, its lease is over. */
static void a_clock_stands_still(void **state)
{
    (void)state;
    scene_begin(1, 1, RING_NONE);
    scene_push(0, DENSE);
    (void)scene_pulled(1, DENSE);
    sim_host_drift(scene.w.servers[0].clock, -999999);
    scene_part(true);
    world_server_gone(&scene.w, 0);
    scene_view_without_s0();
    scene_push(0, DENSE);
    assert_true(scene_pulled(1, DENSE) == 1);
    uint64_t ts;
    assert_int_equal(world_push(&scene.w, 1, DENSE, &scene_key, 1, &scene_one, 1, &ts), PARAMO_OK);
    assert_int_equal(client_wait(scene.w.clients[1].client, ts, 5000), PARAMO_E_TIMEOUT);
    sim_host_drift(scene.w.servers[0].clock, 0);
    scene_pass(ENV_SEC);
    scene_pull_held(1, 3);
    assert_int_equal(world_wait(&scene.w, 1, ts), PARAMO_OK);
    world_fini(&scene.w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_paused_source_reads_by_the_target_s_lease),
                                       cmocka_unit_test(a_stream_that_ended_has_given_a_lease),
                                       cmocka_unit_test(reads_go_on_when_the_target_answers),
                                       cmocka_unit_test(two_that_are_cut_off_together_read_nothing),
                                       cmocka_unit_test(a_source_and_its_follower_read_by_the_target_s_lease),
                                       cmocka_unit_test(a_target_waits_for_a_dead_owner_s_lease),
                                       cmocka_unit_test(an_owner_that_has_left_leaves_no_lease),
                                       cmocka_unit_test(a_load_waits_for_a_dead_owner_s_lease),
                                       cmocka_unit_test(the_last_member_gives_the_lease),
                                       cmocka_unit_test(clocks_drift),
                                       cmocka_unit_test(a_clock_stands_still)};
    if (argc > 1)
        cmocka_set_test_filter(argv[1]); /* clocks_drift takes long */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
