/* Moves of partitions in which one connection lags behind another, a side is silent, or an order comes late,
 * each as a script: the test is the scheduler. Seeds: test_migration_sim. The first
 * argument names the one test to run. */
#include "server/migration/target.h"
#include "server/replication/chain_impl.h"
#include "server/replication/gate.h"
#include "server/shard/shard_tables.h"
#include "server/snapshot/loading.h"
#include "server/snapshot/saving.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "wire/order.h"
#include "worker/support_world.h"

/* Row i of DENSE lies on partition i; of NONE there are no copies, of ONE one. s0 owns the partitions below
 * PARTITIONS. */
enum { DENSE, NONE, ONE, TABLES, SERVERS = 4, CLIENTS = 2, PARTITIONS = 256, KEY = 5 };

struct asked {
    struct world_server *server;
    uint32_t what;
    struct migration_order fields;
    bool done;
    paramo_err status;
};

static struct {
    struct world w;
    struct asked orders[16];
    unsigned asked;
    unsigned apart; /* servers of the side that is cut off */
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

static struct simnet_link *link_of(const char *from, const char *to)
{
    struct simnet_node *a, *b;
    struct simnet_link *link;
    assert_int_equal(simnet_node(t.w.net, from, &a), PARAMO_OK);
    assert_int_equal(simnet_node(t.w.net, to, &b), PARAMO_OK);
    assert_int_equal(simnet_link(t.w.net, a, b, &link), PARAMO_OK);
    return link;
}

static void cut(const char *a, const char *b, bool is)
{
    link_of(a, b)->cut = link_of(b, a)->cut = is;
}

/* So many servers from s0 on, and client 1, on one side, everything else on the other. */
static void apart(unsigned servers, bool is)
{
    t.apart = servers;
    for (unsigned a = 0; a < servers; a++) {
        char one[] = {'s', (char)('0' + a), 0};
        cut("w0", one, is);
        for (unsigned b = servers; b < SERVERS; b++) {
            char other[] = {'s', (char)('0' + b), 0};
            cut(one, other, is);
            cut("w1", other, is);
        }
    }
}

/* s0 and client 1 on one side, everything else on the other. */
static void part(bool is)
{
    apart(1, is);
}

/* ---- the scheduler ---- */

static void answered(void *arg, paramo_err status)
{
    struct asked *o = arg;
    o->done = true;
    o->status = status;
}

static void carry_out(void *arg)
{
    struct asked *o = arg;
    shard_migration_order(o->server->shard, o->what, &o->fields, answered, o);
}

static struct asked *order(unsigned server, uint32_t what, struct migration_order fields)
{
    assert_true(t.asked < sizeof t.orders / sizeof *t.orders);
    struct asked *o = &t.orders[t.asked++];
    *o = (struct asked){.server = &t.w.servers[server], .what = what, .fields = fields};
    world_on_lane(o->server->lane, carry_out, o);
    return o;
}

static void must_do(unsigned server, uint32_t what, struct migration_order fields)
{
    const struct asked *o = order(server, what, fields);
    pass(500 * ENV_MS);
    assert_true(o->done);
    assert_int_equal(o->status, PARAMO_OK);
}

static struct migration_order migration_of(unsigned to, uint8_t level, uint8_t had)
{
    return (struct migration_order){.id = (UINT64_C(1) << 32) + 1,
                                    .partitions = PARTITIONS,
                                    .from = {.node = PARAMO_ID_SERVER(0)},
                                    .to = {.node = PARAMO_ID_SERVER(to)},
                                    .level = level,
                                    .had = had};
}

/* The chains of partitions below PARTITIONS in the next view. */
static void chain(uint16_t owner, uint16_t first, uint16_t second)
{
    for (unsigned a = 0; a < PARTITIONS; a++) {
        t.w.ring.owner[a] = owner;
        t.w.follower[1].owner[a] = first;
        t.w.follower[2].owner[a] = second;
    }
}

static void changed(unsigned server)
{
    t.w.partitions_changed[server] = t.w.chain_changed[server] = t.w.number + 1;
}

static void begin(unsigned replicas, uint16_t first, uint16_t second)
{
    memset(&t, 0, sizeof t);
    world_init(&t.w, true, 7);
    t.w.replicas = replicas;
    t.w.migrations = true;
    t.w.timeout_ms = 60000;
    for (unsigned table = 0; table < TABLES; table++)
        world_table(&t.w, PARAMO_TABLE_DENSE, 1)->rows = RING_PARTITIONS;
    t.w.options[NONE].replicas = 0;
    t.w.options[ONE].replicas = 1;
    world_start(&t.w, SERVERS, SERVERS, CLIENTS);
    for (unsigned a = 0; a < RING_PARTITIONS; a++) {
        t.w.ring.owner[a] = 3;
        t.w.follower[1].owner[a] = 2;
        t.w.follower[2].owner[a] = replicas > 1 ? 1 : RING_NONE;
        t.w.follower[3].owner[a] = replicas > 2 ? (a < PARTITIONS ? 3 : 0) : RING_NONE;
    }
    chain(0, first, second);
    for (unsigned s = 0; s < SERVERS; s++)
        changed(s);
    world_view(&t.w);
    world_all_view(&t.w);
    pass(ENV_SEC);
}

/* The servers from this one on, and client 0, take the next view. */
static void view_from(unsigned server)
{
    world_view(&t.w);
    for (unsigned s = server; s < SERVERS; s++)
        world_server_view(&t.w, s);
    world_client_view(&t.w, 0);
}

static void view_for_all_but_the_partial(void)
{
    view_from(1);
}

/* ---- requests ---- */

static const uint64_t key = KEY;
static const float one = 1;

static void push(unsigned client, unsigned table)
{
    uint64_t ts;
    assert_int_equal(world_push(&t.w, client, table, &key, 1, &one, 1, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&t.w, client, ts), PARAMO_OK);
}

static float pulled(unsigned client, unsigned table)
{
    uint64_t ts;
    float val = -1;
    assert_int_equal(world_pull(&t.w, client, table, &key, 1, &val, 1, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&t.w, client, ts), PARAMO_OK);
    return val;
}

/* Nobody whom the client reaches answers it; later it gets what there is. */
static void pulls_in_vain(unsigned client, float later)
{
    static float val;
    uint64_t ts;
    val = -1;
    assert_int_equal(world_pull(&t.w, client, DENSE, &key, 1, &val, 1, &ts), PARAMO_OK);
    if (client_wait(t.w.clients[client].client, ts, 3000) != PARAMO_E_TIMEOUT)
        fail_msg("a stale read: %g, but %g is acknowledged", (double)val, (double)later);
    apart(t.apart, false);
    pass(ENV_SEC);
    world_all_view(&t.w);
    assert_int_equal(world_wait(&t.w, client, ts), PARAMO_OK);
    assert_true(val == later);
}

/* ---- a target without a lease ---- */

/* s2 is the only copy of what s0 owns since the scheduler's commit, of which s0 does not hear. */
static void commit_behind_the_back_of_s0(void)
{
    begin(1, RING_NONE, RING_NONE);
    push(0, DENSE);
    struct migration_order m = migration_of(2, 1, MIGRATION_NO_LEVEL);
    must_do(0, ORDER_MIGRATION_SOURCE, m);
    must_do(2, ORDER_MIGRATION_TARGET, m);
    must_do(0, ORDER_MIGRATION_PAUSE, m);
    assert_true(pulled(1, DENSE) == 1); /* reads go on */
    chain(0, 2, RING_NONE);
    t.w.moved[2] = m.id;
    t.w.chain_changed[0] = t.w.chain_changed[2] = t.w.number + 1;
}

/* From PAUSED on the target may be in the chain, and become the owner when we are taken for dead: its lease
 * counts. */
static void a_paused_source_reads_by_the_target_s_lease(void **state)
{
    (void)state;
    commit_behind_the_back_of_s0();
    part(true);
    view_for_all_but_the_partial();
    pass(10 * ENV_SEC);
    world_server_gone(&t.w, 0);
    view_for_all_but_the_partial();
    push(0, DENSE);
    pulls_in_vain(1, 2);
    world_fini(&t.w);
}

/* The same, but s0 is declared dead at once, and its stream to s2 has ended: what s2 answered counts. */
static void a_stream_that_ended_has_given_a_lease(void **state)
{
    (void)state;
    commit_behind_the_back_of_s0();
    view_for_all_but_the_partial();
    van_sim_reset(t.w.servers[2].van, UINT32_MAX);
    part(true);
    pass(10 * ENV_MS);
    world_server_gone(&t.w, 0);
    view_for_all_but_the_partial();
    push(0, DENSE);
    pulls_in_vain(1, 2);
    world_fini(&t.w);
}

/* A target that is slow, and in no chain yet, delays reads for no longer than until it answers again. */
static void reads_go_on_when_the_target_answers(void **state)
{
    (void)state;
    commit_behind_the_back_of_s0();
    cut("s0", "s2", true);
    uint64_t ts;
    float val = -1;
    pass(ENV_SEC);
    assert_int_equal(world_pull(&t.w, 1, DENSE, &key, 1, &val, 1, &ts), PARAMO_OK);
    assert_int_equal(client_wait(t.w.clients[1].client, ts, 300), PARAMO_E_TIMEOUT);
    cut("s0", "s2", false);
    assert_int_equal(client_wait(t.w.clients[1].client, ts, 2000), PARAMO_OK);
    assert_true(val == 1);
    world_fini(&t.w);
}

/* The first members of a chain are cut off with a client: as many as there are replicas, so another member is left,
 * and takes their place. The first has leases from those that are with it, and none from that one. */
static void two_that_are_cut_off_together_read_nothing(void **state)
{
    (void)state;
    for (unsigned replicas = 2; replicas <= 3; replicas++)
        for (int views = 0; views < 2;
             views++) { /* all are declared dead in one view, or one after the other */
            begin(replicas, 1, 2);
            push(0, DENSE);
            assert_true(pulled(1, DENSE) == 1);
            apart(replicas, true);
            for (unsigned s = 0; s < replicas; s++) {
                world_server_gone(&t.w, s);
                if (views || s + 1 == replicas)
                    view_from(replicas);
            }
            push(0, DENSE);
            pulls_in_vain(1, 2);
            world_fini(&t.w);
        }
}

/* The same, but the member that is left is one by a commit of which the others do not hear. */
static void a_source_and_its_follower_read_by_the_target_s_lease(void **state)
{
    (void)state;
    begin(2, 1, RING_NONE);
    push(0, DENSE);
    struct migration_order m = migration_of(2, 2, MIGRATION_NO_LEVEL);
    must_do(0, ORDER_MIGRATION_SOURCE, m);
    must_do(2, ORDER_MIGRATION_TARGET, m);
    must_do(0, ORDER_MIGRATION_PAUSE, m);
    assert_true(pulled(1, DENSE) == 1);
    chain(0, 1, 2);
    t.w.moved[2] = m.id;
    for (unsigned s = 0; s < 3; s++)
        t.w.chain_changed[s] = t.w.number + 1;
    apart(2, true);
    view_from(2);
    pass(10 * ENV_SEC);
    world_server_gone(&t.w, 0);
    world_server_gone(&t.w, 1);
    view_from(2);
    push(0, DENSE);
    pulls_in_vain(1, 2);
    world_fini(&t.w);
}

/* s1 takes the place of s0, which is cut off with client 1, and is told to give it to s2 at once: s2 waits, too. */
static void a_target_waits_for_a_dead_owner_s_lease(void **state)
{
    (void)state;
    static const uint32_t whats[] = {ORDER_MIGRATION_SOURCE, ORDER_MIGRATION_TARGET, ORDER_MIGRATION_PAUSE};
    begin(1, 1, RING_NONE);
    push(0, DENSE);
    part(true);
    world_server_gone(&t.w, 0);
    view_for_all_but_the_partial();
    struct migration_order m = migration_of(2, 0, MIGRATION_NO_LEVEL);
    m.from.node = PARAMO_ID_SERVER(1);
    m.takes_over = true;
    for (unsigned i = 0; i < 3; i++) {
        const struct asked *o = order(i == 1 ? 2 : 1, whats[i], m);
        for (unsigned ms = 0; ms < 2000 && !o->done; ms++)
            pass(ENV_MS);
        assert_true(o->done && o->status == PARAMO_OK);
    }
    chain(2, RING_NONE, RING_NONE);
    t.w.moved[2] = m.id;
    changed(1);
    changed(2);
    view_for_all_but_the_partial();
    push(0, DENSE);
    pulls_in_vain(1, 2);
    world_fini(&t.w);
}

/* ---- a load of a checkpoint, and a lease ---- */

static void held(void *arg, paramo_err status, const struct ckpt_file *file)
{
    (void)file;
    answered(arg, status);
}

static void hold(void *arg)
{
    struct asked *o = arg;
    struct shard_save_config config = {.id = 1, .order = 1, .hold_ms = 60000, .done = held, .arg = o};
    assert_int_equal(shard_load_hold(o->server->shard, &config), PARAMO_OK);
}

static void go(void *arg)
{
    struct asked *o = arg;
    assert_int_equal(shard_load_go(o->server->shard, 1, 2), PARAMO_OK);
}

/* s0 is cut off with client 1 and declared dead, and a checkpoint is loaded. When all shards hold, rows may be
 * replaced, and the load end, at any moment: s0 must not answer with what they were. */
static void a_load_waits_for_a_dead_owner_s_lease(void **state)
{
    (void)state;
    uint64_t ts;
    float val = -1;
    begin(1, 1, RING_NONE);
    push(0, DENSE);
    assert_true(pulled(1, DENSE) == 1);
    part(true);
    world_server_gone(&t.w, 0);
    view_for_all_but_the_partial();
    struct asked *o = &t.orders[t.asked++];
    *o = (struct asked){.server = &t.w.servers[1]};
    world_on_lane(o->server->lane, hold, o);
    for (unsigned ms = 0; ms < 1000 && !o->done; ms++)
        pass(ENV_MS);
    assert_true(o->done && o->status == PARAMO_OK);
    assert_int_equal(world_pull(&t.w, 1, DENSE, &key, 1, &val, 1, &ts), PARAMO_OK);
    if (client_wait(t.w.clients[1].client, ts, 300) != PARAMO_E_TIMEOUT)
        fail_msg("a stale read: %g, of rows that a checkpoint may have replaced", (double)val);
    world_on_lane(o->server->lane, go, o);
    part(false);
    world_all_view(&t.w);
    assert_int_equal(world_wait(&t.w, 1, ts), PARAMO_OK);
    assert_true(val == 1);
    world_fini(&t.w);
}

/* ---- what a chain has left to do ---- */

/* s1 has taken a push from s0, and s2, which is next, has not; then s1 leaves the chain, and is the first to
 * know. What it has not passed on is s0's to pass on: it does not acknowledge it. */
static void a_member_that_leaves_acknowledges_nothing(void **state)
{
    (void)state;
    begin(2, 1, 2);
    push(0, DENSE);
    uint64_t ts;
    cut("s1", "s2", true);
    assert_int_equal(world_push(&t.w, 0, DENSE, &key, 1, &one, 1, &ts), PARAMO_OK);
    pass(100 * ENV_MS);
    chain(0, 2, RING_NONE);
    for (unsigned s = 0; s < 3; s++)
        t.w.chain_changed[s] = t.w.number + 1;
    world_view(&t.w);
    world_server_view(&t.w, 1);
    float at_s2 = -1;
    if (client_wait(t.w.clients[0].client, ts, 1000) != PARAMO_E_TIMEOUT)
        fail_msg("a push was acknowledged that a copy does not have");
    world_all_view(&t.w);
    cut("s1", "s2", false);
    assert_int_equal(world_wait(&t.w, 0, ts), PARAMO_OK);
    assert_int_equal(
        table_get_rows(shard_table_find(t.w.servers[2].shard, DENSE + 1)->table, &key, 1, false, &at_s2),
        PARAMO_OK);
    assert_true(at_s2 == 2);
    world_fini(&t.w);
}

static uint64_t row_of(unsigned server)
{
    struct ring_placement placement = {.kind = PARAMO_PLACE_DENSE, .rows = RING_PARTITIONS};
    for (uint64_t row = 0; row < RING_PARTITIONS; row++)
        if (t.w.ring.owner[ring_partition(ring_position(&placement, row))] == server)
            return row;
    fail();
    return 0;
}

/* Chains s0 s1 s2 s3, and s1 s2 s3 s4. s0 dies; s2, which has not acknowledged what s1 had of it, dies, too;
 * s3 has it, but not all that s1 said before, since s4 does not answer. s3's lease is there, and still s1
 * serves none of it before s3 has acknowledged all: the gate goes with what s2 was to have. */
static void the_gate_outlives_the_next(void **state)
{
    (void)state;
    uint64_t pushed, before, pull;
    float val = 0;
    memset(&t, 0, sizeof t);
    world_init(&t.w, true, 3);
    t.w.replicas = 3;
    t.w.timeout_ms = 60000;
    world_table(&t.w, PARAMO_TABLE_DENSE, 1)->rows = RING_PARTITIONS;
    world_start(&t.w, 5, 5, 2);
    for (unsigned a = 0; a < RING_PARTITIONS; a++) /* each is followed by the three behind it */
        for (unsigned level = 1; level <= 3; level++)
            t.w.follower[level].owner[a] = (uint16_t)((t.w.ring.owner[a] + level) % 5);
    for (unsigned s = 0; s < 5; s++)
        t.w.chain_changed[s] = t.w.number + 1;
    world_view(&t.w);
    world_all_view(&t.w);
    const uint64_t of_s0 = row_of(0), of_s1 = row_of(1);
    assert_int_equal(world_push(&t.w, 0, DENSE, &of_s0, 1, &one, 1, &pushed), PARAMO_OK);
    assert_int_equal(world_wait(&t.w, 0, pushed), PARAMO_OK);
    assert_int_equal(world_push(&t.w, 1, DENSE, &of_s1, 1, &one, 1, &before), PARAMO_OK);
    assert_int_equal(world_wait(&t.w, 1, before), PARAMO_OK);
    cut("s1", "s2", true);
    cut("s3", "s4", true);
    assert_int_equal(world_push(&t.w, 1, DENSE, &of_s1, 1, &one, 1, &before), PARAMO_OK);
    assert_int_equal(world_push(&t.w, 0, DENSE, &of_s0, 1, &one, 1, &pushed), PARAMO_OK);
    pass(50 * ENV_MS);
    world_server_stop(&t.w, 0);
    world_server_gone(&t.w, 0);
    world_all_view(&t.w);
    pass(50 * ENV_MS);
    world_server_stop(&t.w, 2);
    world_server_gone(&t.w, 2);
    world_all_view(&t.w);
    pass(2 * ENV_SEC);
    assert_int_equal(world_pull(&t.w, 1, DENSE, &of_s0, 1, &val, 1, &pull), PARAMO_OK);
    pass(ENV_SEC);
    const struct chain_stream *st = t.w.servers[1].shard->chain->streams;
    while (st && st->to.node != PARAMO_ID_SERVER(3))
        st = st->next;
    assert_true(st && chain_leased(st));
    if (client_wait(t.w.clients[1].client, pull, 1000) != PARAMO_E_TIMEOUT)
        fail_msg("a successor serves before its next has what the one between was to have");
    cut("s3", "s4", false);
    assert_int_equal(world_wait(&t.w, 1, pull), PARAMO_OK);
    assert_int_equal(world_wait(&t.w, 0, pushed), PARAMO_OK);
    assert_int_equal(world_wait(&t.w, 1, before), PARAMO_OK);
    assert_true(val == 2);
    world_fini(&t.w);
}

/* The owner of chains of four reaches all members but the last, which may take its place: it answers no read without that
 * member's lease. */
static void the_last_member_gives_the_lease(void **state)
{
    (void)state;
    uint64_t ts;
    float val = 0;
    memset(&t, 0, sizeof t);
    world_init(&t.w, true, 3);
    t.w.replicas = 3;
    t.w.timeout_ms = 60000;
    world_table(&t.w, PARAMO_TABLE_DENSE, 1)->rows = RING_PARTITIONS;
    world_start(&t.w, 4, 4, 2);
    for (unsigned a = 0; a < RING_PARTITIONS; a++) {
        t.w.ring.owner[a] = 0;
        for (unsigned level = 1; level <= 3; level++)
            t.w.follower[level].owner[a] = (uint16_t)level;
    }
    for (unsigned s = 0; s < 4; s++)
        t.w.partitions_changed[s] = t.w.chain_changed[s] = t.w.number + 1;
    world_view(&t.w);
    world_all_view(&t.w);
    push(0, DENSE);
    cut("s0", "s3", true);
    pass(2 * ENV_SEC);
    assert_int_equal(world_pull(&t.w, 1, DENSE, &key, 1, &val, 1, &ts), PARAMO_OK);
    if (client_wait(t.w.clients[1].client, ts, 1000) != PARAMO_E_TIMEOUT)
        fail_msg("an owner reads without the lease of the last member");
    cut("s0", "s3", false);
    assert_int_equal(world_wait(&t.w, 1, ts), PARAMO_OK);
    assert_true(val == 1);
    world_fini(&t.w);
}

/* ---- clocks that do not run alike ---- */

/* s0 and its clients on one side, its follower s1 on the other, by whose view it is dead. Client 1 pulls all
 * the time: what it asked for after client 0's push was acknowledged is no older. The push comes so many ms
 * after the cut: one that has to wait waits for s1's next tick, too. */
static void owner_and_successor(int32_t owner_ppm, int32_t successor_ppm, unsigned ms)
{
    begin(1, 1, RING_NONE);
    push(0, DENSE);
    push(1, DENSE);
    sim_host_drift(t.w.servers[0].clock, owner_ppm);
    sim_host_drift(t.w.servers[1].clock, successor_ppm);
    pass(ENV_SEC);
    part(true);
    world_server_gone(&t.w, 0);
    view_for_all_but_the_partial();
    uint64_t pushed = 0, pulls = 0, ts = 0;
    static float val;
    bool after = false;
    int done = 1, acknowledged = 0;
    for (unsigned i = 0; i < 7000; i++) {
        if (i == 10 * ms)
            assert_int_equal(world_push(&t.w, 0, DENSE, &key, 1, &one, 1, &pushed), PARAMO_OK);
        if (i >= 10 * ms && !acknowledged)
            assert_int_equal(client_test(t.w.clients[0].client, pushed, &acknowledged), PARAMO_OK);
        if (done) {
            pulls++;
            after = acknowledged;
            assert_int_equal(world_pull(&t.w, 1, DENSE, &key, 1, &val, 1, &ts), PARAMO_OK);
        }
        pass(100 * ENV_US);
        assert_int_equal(client_test(t.w.clients[1].client, ts, &done), PARAMO_OK);
        if (done && after && val < 3)
            fail_msg("a stale read: %g, but 3 is acknowledged", (double)val);
    }
    assert_true(acknowledged && pulls > 100 && !done);
    part(false);
    world_all_view(&t.w);
    assert_int_equal(world_wait(&t.w, 1, ts), PARAMO_OK);
    assert_true(val == 3);
    world_fini(&t.w);
}

/* As far as docs/FAULTS.md promises it, in each direction. */
static void clocks_drift(void **state)
{
    (void)state;
    for (unsigned ms = 380; ms < 540; ms += 5)
        owner_and_successor(-20000, 20000, ms);
    owner_and_successor(20000, -20000, 0);
    owner_and_successor(-20000, -20000, 0);
}

/* Beyond that it is said what happens: an owner whose clock stands still reads on, and acknowledges nothing;
 * when its clock goes on its lease is over. */
static void a_clock_stands_still(void **state)
{
    (void)state;
    begin(1, 1, RING_NONE);
    push(0, DENSE);
    (void)pulled(1, DENSE);
    sim_host_drift(t.w.servers[0].clock, -999999);
    part(true);
    world_server_gone(&t.w, 0);
    view_for_all_but_the_partial();
    push(0, DENSE);
    assert_true(pulled(1, DENSE) == 1);
    uint64_t ts;
    assert_int_equal(world_push(&t.w, 1, DENSE, &key, 1, &one, 1, &ts), PARAMO_OK);
    assert_int_equal(client_wait(t.w.clients[1].client, ts, 5000), PARAMO_E_TIMEOUT);
    sim_host_drift(t.w.servers[0].clock, 0);
    pass(ENV_SEC);
    pulls_in_vain(1, 3);
    assert_int_equal(world_wait(&t.w, 1, ts), PARAMO_OK);
    world_fini(&t.w);
}

/* ---- one connection lags ---- */

static void lag(uint64_t ns)
{
    struct simnet_link *link = link_of("s0", "s1");
    link->late_ppm = ns ? 1000000 : 0;
    link->late_ns = ns;
}

/* s1 follows s0 and is to be the owner, of a table without copies, too. A push is on its way to it by the
 * chain, and is lost there with s0; the records that say it is done have come on the move's connection. */
static void records_that_are_ahead_of_their_updates(void **state)
{
    (void)state;
    begin(1, 1, RING_NONE);
    push(0, DENSE);
    push(0, NONE);
    struct migration_order m = migration_of(1, 0, 1);
    must_do(0, ORDER_MIGRATION_SOURCE, m);
    must_do(1, ORDER_MIGRATION_TARGET, m);
    uint64_t ts, order_before = t.w.servers[0].shard->chain->order;
    lag(ENV_SEC);
    assert_int_equal(world_push(&t.w, 0, DENSE, &key, 1, &one, 1, &ts), PARAMO_OK);
    while (t.w.servers[0].shard->chain->order == order_before)
        pass(10 * ENV_US);
    lag(0);
    m.takes_over = true;
    (void)order(0, ORDER_MIGRATION_PAUSE, m);
    pass(20 * ENV_MS);
    assert_true(migration_target_complete(t.w.servers[1].shard->chain));
    world_server_stop(&t.w, 0);
    world_server_gone(&t.w, 0);
    world_all_view(&t.w);
    assert_int_equal(world_wait(&t.w, 0, ts), PARAMO_OK);
    if (pulled(1, DENSE) != 2)
        fail_msg("a push was acknowledged, and is lost: its record was taken before its update");
    world_fini(&t.w);
}

/* Part of a table is not the table: what came of one goes when the target becomes owner by a death. */
static void rows_that_came_for_nothing(void **state)
{
    (void)state;
    begin(1, 1, RING_NONE);
    push(0, NONE);
    struct migration_order m = migration_of(1, 0, 1);
    must_do(0, ORDER_MIGRATION_SOURCE, m);
    must_do(1, ORDER_MIGRATION_TARGET, m);
    struct table *table = shard_table_find(t.w.servers[1].shard, NONE + 1)->table;
    float row = -1;
    assert_int_equal(table_get_rows(table, &key, 1, false, &row), PARAMO_OK);
    assert_true(row == 1);
    world_server_stop(&t.w, 0);
    world_server_gone(&t.w, 0);
    world_all_view(&t.w);
    uint64_t ts;
    assert_int_equal(world_pull(&t.w, 1, NONE, &key, 1, &row, 1, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&t.w, 1, ts), PARAMO_E_DATA_LOST);
    assert_int_equal(table_get_rows(table, &key, 1, false, &row), PARAMO_OK);
    assert_true(row == 0);
    world_fini(&t.w);
}

/* The same, when the owner's death leaves the target where it was on the first of the partitions, and makes
 * it the owner of others: END comes behind the view, and must not touch what the view says is lost. */
static void partitions_of_a_migration_that_fare_differently(void **state)
{
    (void)state;
    const uint64_t far = PARTITIONS - 1;
    begin(2, 2, 1);
    for (unsigned a = PARTITIONS / 2; a < PARTITIONS; a++)
        t.w.follower[1].owner[a] = RING_NONE;
    for (unsigned s = 0; s < 3; s++)
        changed(s);
    world_view(&t.w);
    world_all_view(&t.w);
    pass(ENV_SEC);
    uint64_t ts;
    assert_int_equal(world_push(&t.w, 0, NONE, &far, 1, &one, 1, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&t.w, 0, ts), PARAMO_OK);
    struct migration_order m = migration_of(1, 0, 2);
    must_do(0, ORDER_MIGRATION_SOURCE, m);
    must_do(1, ORDER_MIGRATION_TARGET, m);
    world_server_stop(&t.w, 0);
    world_server_gone(&t.w, 0);
    for (unsigned a = 0; a < PARTITIONS / 2; a++) { /* nobody at level 1: ONE's rows are not at s1 */
        t.w.follower[1].owner[a] = RING_NONE;
        t.w.follower[2].owner[a] = 1;
    }
    world_view(&t.w);
    world_all_view(&t.w);
    must_do(1, ORDER_MIGRATION_END, m);
    float row = -1;
    assert_int_equal(world_pull(&t.w, 1, NONE, &far, 1, &row, 1, &ts), PARAMO_OK);
    if (world_wait(&t.w, 1, ts) != PARAMO_E_DATA_LOST)
        fail_msg("what is lost reads as %g", (double)row);
    world_fini(&t.w);
}

/* s0 has done a pushpull, and its answer is lost. The partitions move to s2, which dies with the only rows;
 * s0 owns them again, and still knows that the push is done. What it reads for the repeat are no zeros. */
static void a_repeat_reads_what_is_lost(void **state)
{
    (void)state;
    begin(1, 2, RING_NONE);
    uint64_t ts;
    float val = one;
    paramo_kv kv = {.size = sizeof kv, .keys = &key, .n = 1, .vals = &val, .vals_len = 1};
    struct client_call call = {.kind = REQUEST_PUSHPULL, .table = &t.w.tables[NONE], .kv = &kv};
    push(0, NONE);
    link_of("s0", "w0")->cut = true;
    assert_int_equal(client_issue(t.w.clients[0].client, &call, &ts), PARAMO_OK);
    pass(ENV_SEC);
    assert_true(pulled(1, NONE) == 2);
    cut("w0", "s0", true);
    van_sim_reset(t.w.clients[0].van, UINT32_MAX);
    struct migration_order m = migration_of(2, 0, 1);
    must_do(0, ORDER_MIGRATION_SOURCE, m);
    must_do(2, ORDER_MIGRATION_TARGET, m);
    m.takes_over = true;
    must_do(0, ORDER_MIGRATION_PAUSE, m);
    chain(2, 0, RING_NONE);
    t.w.moved[2] = m.id;
    changed(0);
    changed(2);
    world_view(&t.w);
    for (unsigned s = 0; s < SERVERS; s++)
        world_server_view(&t.w, s);
    world_client_view(&t.w, 1);
    assert_true(pulled(1, NONE) == 2);
    world_server_stop(&t.w, 2);
    world_server_gone(&t.w, 2);
    world_all_view(&t.w);
    cut("w0", "s0", false);
    if (world_wait(&t.w, 0, ts) != PARAMO_E_DATA_LOST)
        fail_msg("what is lost reads as %g", (double)val);
    world_fini(&t.w);
}

/* ---- what was given up ---- */

/* The target acknowledges nothing for a while, so the owner gives the move up; then the PAUSE comes. */
static void pause_of_an_aborted_migration(uint8_t level, uint8_t had, unsigned to, unsigned table)
{
    push(0, table);
    struct migration_order m = migration_of(to, level, had);
    must_do(0, ORDER_MIGRATION_SOURCE, m);
    must_do(to, ORDER_MIGRATION_TARGET, m);
    uint64_t ts;
    link_of(to == 1 ? "s1" : "s2", "s0")->cut = true;
    assert_int_equal(world_push(&t.w, 0, table, &key, 1, &one, 1, &ts), PARAMO_OK);
    pass(7 * ENV_SEC);
    assert_null(t.w.servers[0].shard->chain->migration_source);
    link_of(to == 1 ? "s1" : "s2", "s0")->cut = false;
    pass(2 * ENV_SEC);
    m.takes_over = level == 0;
    const struct asked *late = order(0, ORDER_MIGRATION_PAUSE, m);
    pass(ENV_SEC);
    assert_true(late->done);
    if (late->status != PARAMO_E_NOT_FOUND)
        fail_msg("an owner pauses for a move that it has given up: %s", err_name(late->status));
    must_do(0, ORDER_MIGRATION_END, m);
    must_do(to, ORDER_MIGRATION_END, m);
    assert_int_equal(world_wait(&t.w, 0, ts), PARAMO_OK);
    assert_true(pulled(1, table) == 2);
    world_fini(&t.w);
}

static void a_late_pause_for_a_table_without_copies(void **state)
{
    (void)state;
    begin(1, 1, RING_NONE);
    pause_of_an_aborted_migration(0, 1, 1, NONE);
}

/* s2 is to come nearer to the owner, where nobody is since a death. */
static void a_late_pause_for_a_table_with_one(void **state)
{
    (void)state;
    begin(2, RING_NONE, 2);
    pause_of_an_aborted_migration(1, 2, 2, ONE);
}

/* What lacks the end is no member, whatever a view says. */
static unsigned failures;

static void failed(void *arg, paramo_err status)
{
    (void)arg;
    failures += status == PARAMO_E_PROTOCOL;
}

static void a_commit_of_what_has_not_come(void **state)
{
    (void)state;
    begin(1, RING_NONE, RING_NONE);
    t.w.servers[2].shard->config.failed = failed;
    failures = 0;
    push(0, DENSE);
    struct migration_order m = migration_of(2, 1, MIGRATION_NO_LEVEL);
    must_do(0, ORDER_MIGRATION_SOURCE, m);
    must_do(2, ORDER_MIGRATION_TARGET, m);
    chain(0, 2, RING_NONE);
    t.w.moved[2] = m.id;
    t.w.chain_changed[0] = t.w.chain_changed[2] = t.w.number + 1;
    world_view(&t.w);
    world_server_view(&t.w, 2);
    assert_int_equal(failures, 1);
    world_fini(&t.w);
}

static paramo_err reads(unsigned client, unsigned table, float *val)
{
    uint64_t ts;
    assert_int_equal(world_pull(&t.w, client, table, &key, 1, val, 1, &ts), PARAMO_OK);
    return world_wait(&t.w, client, ts);
}

/* s0 gives its partitions to s2, and follows it if it is to. What died with their owner before is not lost
 * again. */
static void give_to_s2(unsigned replicas, unsigned table)
{
    begin(replicas, RING_NONE, RING_NONE);
    push(0, table);
    struct migration_order m = migration_of(2, 0, MIGRATION_NO_LEVEL);
    must_do(0, ORDER_MIGRATION_SOURCE, m);
    must_do(2, ORDER_MIGRATION_TARGET, m);
    m.takes_over = true;
    must_do(0, ORDER_MIGRATION_PAUSE, m);
    chain(2, replicas ? 0 : RING_NONE, RING_NONE);
    for (unsigned a = 0; a < PARTITIONS; a++)
        t.w.owner_gone[a] = t.w.number;
    t.w.moved[2] = m.id;
    changed(0);
    changed(2);
    world_view(&t.w);
    for (unsigned s = replicas ? 0 : 1; s < SERVERS; s++)
        world_server_view(&t.w, s);
    world_client_view(&t.w, 0);
    push(0, table);
    assert_true(pulled(0, table) == 2);
    world_server_stop(&t.w, 2);
}

enum { STAYS, MOVES, GIVEN_UP, ENDS, HELD_COUNT = 8 };

/* How the migration ends for s0, which has paused. */
static void migration_ends(int end, struct migration_order m)
{
    if (end == GIVEN_UP) {
        must_do(0, ORDER_MIGRATION_END, m);
        must_do(2, ORDER_MIGRATION_END, m);
        return;
    }
    chain(end == MOVES ? 2 : 0, end == MOVES ? 0 : 2, RING_NONE);
    t.w.moved[2] = m.id;
    changed(0);
    changed(2);
    world_view(&t.w);
    world_all_view(&t.w);
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
        begin(1, RING_NONE, RING_NONE);
        push(0, DENSE);
        struct migration_order m = migration_of(2, end == MOVES ? 0 : 1, MIGRATION_NO_LEVEL);
        must_do(0, ORDER_MIGRATION_SOURCE, m);
        must_do(2, ORDER_MIGRATION_TARGET, m);
        m.takes_over = end == MOVES;
        must_do(0, ORDER_MIGRATION_PAUSE, m);
        for (unsigned i = 0; i < HELD_COUNT; i++) {
            vals[i] = -1;
            assert_int_equal(world_push(&t.w, 0, DENSE, &key, 1, &one, 1, &pushes[i]), PARAMO_OK);
            assert_int_equal(world_pull(&t.w, 0, DENSE, &key, 1, &vals[i], 1, &pulls[i]), PARAMO_OK);
        }
        pass(ENV_SEC);
        if (run % 2)
            van_sim_reset(t.w.clients[0].van, UINT32_MAX);
        pass(ENV_SEC);
        assert_int_equal(client_wait(t.w.clients[0].client, pushes[0], 300), PARAMO_E_TIMEOUT);
        assert_true(end == MOVES || pulled(1, DENSE) == 1);
        migration_ends(end, m);
        for (unsigned i = 0; i < HELD_COUNT; i++) {
            assert_int_equal(world_wait(&t.w, 0, pushes[i]), PARAMO_OK);
            assert_int_equal(world_wait(&t.w, 0, pulls[i]), PARAMO_OK);
            assert_true(vals[i] == (float)(i + 2));
        }
        assert_true(pulled(1, DENSE) == HELD_COUNT + 1);
        world_fini(&t.w);
    }
}

/* Then s2 dies, and they are s0's again, without the rows that have no copies. */
static void partitions_come_back(void **state)
{
    (void)state;
    float val = -1;
    uint64_t ts;
    give_to_s2(1, NONE);
    world_server_gone(&t.w, 2);
    world_all_view(&t.w);
    pass(ENV_SEC);
    assert_int_equal(reads(0, NONE, &val), PARAMO_E_DATA_LOST);
    assert_int_equal(reads(0, DENSE, &val), PARAMO_OK);
    struct client_call clear = {.kind = REQUEST_CLEAR, .table = &t.w.tables[NONE]};
    assert_int_equal(client_issue(t.w.clients[0].client, &clear, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&t.w, 0, ts), PARAMO_OK);
    assert_int_equal(reads(0, NONE, &val), PARAMO_OK);
    assert_true(val == 0);
    world_fini(&t.w);
}

/* The same without copies, with --on-loss restore, and s0 has missed the view that gave them to s2: its rows
 * are from before, and are not what comes back from the checkpoint. */
static void partitions_come_back_by_the_next_view(void **state)
{
    (void)state;
    give_to_s2(0, DENSE);
    t.w.servers[2].alive = false;
    chain(0, RING_NONE, RING_NONE);
    changed(0);
    changed(2);
    t.w.lost_at = t.w.number + 1;
    for (unsigned a = 0; a < PARTITIONS; a++) {
        t.w.owner_gone[a] = t.w.lost_at;
        t.w.lost[a] = RING_LEVELS;
    }
    world_view(&t.w);
    world_all_view(&t.w);
    struct shard *s = t.w.servers[0].shard;
    const struct shard_table *dense = shard_table_find(s, DENSE + 1);
    assert_true(s->loads->restoring);
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        assert_true(partition_set_has(dense->lost_partitions, a) == (a < PARTITIONS));
    world_fini(&t.w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_paused_source_reads_by_the_target_s_lease),
                                       cmocka_unit_test(a_stream_that_ended_has_given_a_lease),
                                       cmocka_unit_test(a_target_waits_for_a_dead_owner_s_lease),
                                       cmocka_unit_test(reads_go_on_when_the_target_answers),
                                       cmocka_unit_test(two_that_are_cut_off_together_read_nothing),
                                       cmocka_unit_test(a_source_and_its_follower_read_by_the_target_s_lease),
                                       cmocka_unit_test(a_load_waits_for_a_dead_owner_s_lease),
                                       cmocka_unit_test(a_member_that_leaves_acknowledges_nothing),
                                       cmocka_unit_test(the_gate_outlives_the_next),
                                       cmocka_unit_test(the_last_member_gives_the_lease),
                                       cmocka_unit_test(clocks_drift),
                                       cmocka_unit_test(a_clock_stands_still),
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
        cmocka_set_test_filter(argv[1]); /* clocks_drift takes long */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
