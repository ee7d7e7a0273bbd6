/* Pushes of a clock to an aggregated table go down the chain as one change (docs/CONSISTENCY.md, section 5): how
 * many, when, with which sums, and that each counts once when an owner dies. */
#include "server/replication/chain_impl.h"
#include "server/shard/collecting.h"
#include "server/shard/table_map.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "wire/capability.h"
#include "worker/client_impl.h"
#include "worker/support_world.h"

enum { SUMS, NONE, KEYS = 200, DIM = 3, MS = ENV_MS };

struct clocked {
    struct client *client;
    uint64_t minimum;
    uint32_t workers;
};

static void reach(void *arg)
{
    const struct clocked *c = arg;
    client_clock_reached(c->client, c->minimum, c->workers);
}

/* Each of replicas + 1 servers owns a part, and follows the others. */
static void world_make(struct world *w, unsigned clients, unsigned replicas, uint64_t capabilities)
{
    memset(w, 0, sizeof *w);
    world_init(w, true, 5);
    w->replicas = replicas;
    w->capabilities = capabilities;
    paramo_table_options *o = world_table(w, PARAMO_TABLE_SPARSE, DIM);
    o->optimizer = PARAMO_OPT_ADD;
    o->aggregate = PARAMO_AGGREGATE_SUM;
    o = world_table(w, PARAMO_TABLE_SPARSE, DIM);
    o->optimizer = PARAMO_OPT_ADD;
    o->aggregate = PARAMO_AGGREGATE_SUM;
    o->replicas = replicas ? 0 : PARAMO_REPLICAS_OF_JOB;
    world_start(w, replicas + 1, replicas + 1, clients);
    world_pass(w, 200 * MS); /* the chains are connected */
}

/* All workers have ended `minimum` iterations. */
static void all_reach(struct world *w, uint64_t minimum, uint32_t workers)
{
    for (unsigned i = 0; i < w->clients_count; i++) {
        struct clocked c = {.client = w->clients[i].client, .minimum = minimum, .workers = workers};
        world_on_lane(w->clients[i].lane, reach, &c);
    }
}

static float value(uint64_t clock, unsigned client, uint64_t key, unsigned column)
{
    return (float)(key + 1) * 0x1p-10f + (float)(column + 3 * client) * 0x1p-14f + (float)clock;
}

/* Client i pushes each key that i + 1 divides, and multiples of 5. */
static bool pushes(unsigned client, uint64_t key)
{
    return key % (client + 1) == 0 || key % 5 == 0;
}

static uint64_t push_to(struct world *w, unsigned table, unsigned client, uint64_t clock)
{
    static uint64_t keys[WORLD_CLIENTS][KEYS];
    static float vals[WORLD_CLIENTS][KEYS * DIM];
    size_t n = 0;
    uint64_t ts;
    for (uint64_t k = 0; k < KEYS; k++) {
        if (!pushes(client, k))
            continue;
        for (unsigned c = 0; c < DIM; c++)
            vals[client][n * DIM + c] = value(clock, client, k, c);
        keys[client][n++] = k << 48;
    }
    paramo_request_options options = {.size = sizeof options, .flags = PARAMO_COPY};
    paramo_kv kv = {
        .size = sizeof kv, .keys = keys[client], .n = n, .vals = vals[client], .vals_len = n * DIM};
    struct client_call call = {.kind = REQUEST_PUSH,
                               .table = &w->tables[table],
                               .kv = &kv,
                               .options = &options,
                               .clocked = true,
                               .clock = clock};
    assert_ok(client_issue(w->clients[client].client, &call, &ts));
    return ts;
}

static uint64_t push(struct world *w, unsigned client, uint64_t clock)
{
    return push_to(w, SUMS, client, clock);
}

static uint64_t combined(const struct world *w)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < w->servers_count; i++)
        count += w->servers[i].up ? w->servers[i].shard->counters.combined : 0;
    return count;
}

static uint64_t chain_bytes(const struct world *w)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < w->servers_count; i++)
        bytes += w->servers[i].up ? w->servers[i].shard->counters.chain_bytes : 0;
    return bytes;
}

/* What all copies must have after these clocks: each push once. */
static void copies_have(struct world *w, unsigned table, unsigned clients, uint64_t clocks)
{
    for (unsigned server = 0; server < w->servers_count; server++) {
        struct shard *s = w->servers[server].up && w->servers[server].alive ? w->servers[server].shard : NULL;
        struct shard_table *t = s ? shard_table_find(s, w->tables[table].id) : NULL;
        for (uint64_t k = 0; k < KEYS && t; k++) {
            uint64_t key = k << 48;
            float got[DIM];
            int level = s->chain->level[ring_partition(ring_position(&t->placement, key))];
            if (level < 0 || (unsigned)level > t->replicas)
                continue;
            assert_ok(table_pull(t->table, &key, 1, got, false));
            for (unsigned c = 0; c < DIM; c++) {
                double want = 0;
                for (uint64_t clock = 0; clock < clocks; clock++)
                    for (unsigned i = 0; i < clients; i++)
                        want += pushes(i, k) ? (double)value(clock, i, k, c) : 0;
                if (fabs((double)got[c] - want) > 1e-4 * fabs(want))
                    fail_msg("server %u, key %d: %g, not %g", server, (int)k, (double)got[c], want);
            }
        }
    }
}

/* One change a clock, however many workers; rows are those of the sums. */
static void once_a_clock(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 3, 2, UINT64_MAX);
    for (uint64_t clock = 0; clock < 5; clock++) {
        uint64_t ts[3], began = sim_now(w.sim);
        all_reach(&w, clock, 3);
        for (unsigned i = 0; i < 3; i++)
            ts[i] = push(&w, i, clock);
        for (unsigned i = 0; i < 3; i++)
            assert_ok(world_wait(&w, i, ts[i]));
        assert_true(sim_now(w.sim) - began < COLLECTING_MS * MS); /* none waited for the time */
        assert_int_equal(combined(&w), 3 * (clock + 1));
    }
    copies_have(&w, SUMS, 3, 5);
    world_fini(&w);
}

/* Two of three push: the third has no keys, or has joined amid the clock. */
static void by_time(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 2, 1, UINT64_MAX);
    all_reach(&w, 0, 3);
    uint64_t began = sim_now(w.sim), ts[2] = {push(&w, 0, 0), push(&w, 1, 0)};
    for (unsigned i = 0; i < 2; i++)
        assert_ok(world_wait(&w, i, ts[i]));
    uint64_t took = sim_now(w.sim) - began;
    assert_in_range(took, COLLECTING_MS * MS, (COLLECTING_MS + 10) * MS);
    assert_int_equal(combined(&w), 2);
    copies_have(&w, SUMS, 2, 1);
    world_fini(&w);
}

/* A clock is not waited for longer than the one before had pushes; with another push it is later. */
static void as_before(void **state)
{
    (void)state;
    static const unsigned pushers[] = {2, 2, 2, 3, 3, 2, 2};
    static const bool waits[] = {true, false, false, false, false, true, false};
    struct world w;
    world_make(&w, 3, 1, UINT64_MAX);
    for (uint64_t clock = 0; clock < 7; clock++) {
        uint64_t ts[3], began = sim_now(w.sim);
        all_reach(&w, clock, 3);
        for (unsigned i = 0; i < pushers[clock]; i++)
            ts[i] = push(&w, i, clock);
        for (unsigned i = 0; i < pushers[clock]; i++)
            assert_ok(world_wait(&w, i, ts[i]));
        assert_int_equal(sim_now(w.sim) - began >= COLLECTING_MS * MS, waits[clock]);
        assert_in_range(combined(&w), 2 * (clock + 1), 2 * (clock + 1));
    }
    world_fini(&w);
}

/* Without copies, with one worker, and with a member of an older build each push goes by itself, at once. */
static void not_collected(void **state)
{
    (void)state;
    struct world w;
    for (unsigned i = 0; i < 3; i++) {
        unsigned table = i == 0 ? NONE : SUMS;
        world_make(&w, 2, 1, i == 2 ? ~CAPABILITY_AGGREGATE : UINT64_MAX);
        all_reach(&w, 0, i == 1 ? 1 : 3);
        uint64_t began = sim_now(w.sim), ts[2] = {push_to(&w, table, 0, 0), push_to(&w, table, 1, 0)};
        for (unsigned k = 0; k < 2; k++)
            assert_ok(world_wait(&w, k, ts[k]));
        assert_true(sim_now(w.sim) - began < COLLECTING_MS * MS);
        assert_int_equal(combined(&w), 0);
        copies_have(&w, table, 2, 1);
        world_fini(&w);
    }
}

/* A request that reads or changes the table finds the pushes that came before it done. */
static void before_others(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 3, 1, UINT64_MAX);
    all_reach(&w, 0, 3);
    uint64_t began = sim_now(w.sim), ts[2] = {push(&w, 0, 0), push(&w, 1, 0)}, keys[KEYS], other;
    world_pass(&w, 5 * MS);
    float got[KEYS * DIM];
    for (uint64_t k = 0; k < KEYS; k++)
        keys[k] = k << 48;
    assert_ok(world_pull(&w, 2, SUMS, keys, KEYS, got, KEYS * DIM, &other));
    assert_ok(world_wait(&w, 2, other));
    assert_true(got[0] == value(0, 0, 0, 0) + value(0, 1, 0, 0));
    for (unsigned i = 0; i < 2; i++)
        assert_ok(world_wait(&w, i, ts[i]));
    assert_true(sim_now(w.sim) - began < COLLECTING_MS * MS);
    ts[0] = push(&w, 0, 0);
    world_pass(&w, 5 * MS);
    struct client_call clear = {.kind = REQUEST_CLEAR, .table = &w.tables[SUMS]};
    assert_ok(client_issue(w.clients[2].client, &clear, &other));
    assert_ok(world_wait(&w, 2, other));
    assert_ok(world_wait(&w, 0, ts[0]));
    copies_have(&w, SUMS, 0, 0);
    world_fini(&w);
}

/* A push that is refused does not take the others with it. */
static void one_is_refused(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 3, 1, UINT64_MAX);
    all_reach(&w, 0, 3);
    uint64_t ts[2] = {push(&w, 0, 0), push(&w, 1, 0)}, key = 7, bad;
    float vals[DIM] = {1, 0x1p41f, 2};
    paramo_kv kv = {.size = sizeof kv, .keys = &key, .n = 1, .vals = vals, .vals_len = DIM};
    struct client_call call = {.kind = REQUEST_PUSH, .table = &w.tables[SUMS], .kv = &kv, .clocked = true};
    assert_ok(client_issue(w.clients[2].client, &call, &bad));
    assert_int_equal(world_wait(&w, 2, bad), PARAMO_E_NUMERIC);
    for (unsigned i = 0; i < 2; i++)
        assert_ok(world_wait(&w, i, ts[i]));
    assert_int_equal(combined(&w), 1); /* at the shard that does not have its key */
    copies_have(&w, SUMS, 2, 1);
    world_fini(&w);
}

/* Pushes of two fifths of COLLECTING_BYTES: two are one change, and the third is by itself. */
static void bounded(void **state)
{
    (void)state;
    enum { MANY = 4 * COLLECTING_BYTES / 5 / (8 + 4 * DIM) }; /* for two servers */
    static uint64_t keys[MANY];
    static float vals[MANY * DIM], got[MANY * DIM];
    struct world w;
    uint64_t ts[3], pulled;
    for (uint64_t k = 0; k < MANY; k++)
        keys[k] = k << 40;
    for (size_t i = 0; i < (size_t)MANY * DIM; i++)
        vals[i] = (float)i;
    world_make(&w, 3, 1, UINT64_MAX);
    all_reach(&w, 0, 3);
    for (unsigned i = 0; i < 3; i++) {
        paramo_kv kv = {
            .size = sizeof kv, .keys = keys, .n = MANY, .vals = vals, .vals_len = (size_t)MANY * DIM};
        struct client_call call = {
            .kind = REQUEST_PUSH, .table = &w.tables[SUMS], .kv = &kv, .clocked = true, .clock = 0};
        assert_ok(client_issue(w.clients[i].client, &call, &ts[i]));
    }
    for (unsigned i = 0; i < 3; i++)
        assert_ok(world_wait(&w, i, ts[i]));
    assert_int_equal(combined(&w), 2);
    assert_ok(world_pull(&w, 0, SUMS, keys, MANY, got, (size_t)MANY * DIM, &pulled));
    assert_ok(world_wait(&w, 0, pulled));
    for (size_t i = 0; i < (size_t)MANY * DIM; i++)
        assert_true(got[i] == 3 * vals[i]);
    world_fini(&w);
}

/* Pushes come twice while they wait, and a connection breaks then: the client sends its push again. */
static void again(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 3, 1, UINT64_MAX);
    all_reach(&w, 0, 3);
    van_sim_set_faulty(w.clients[1].van, 1u << VAN_REQUEST);
    world_link(&w, "w1", "s0")->repeat_ppm = 1000000;
    uint64_t ts[3] = {push(&w, 0, 0), push(&w, 1, 0)};
    world_pass(&w, 10 * MS);
    assert_true(world_link(&w, "w1", "s0")->repeated > 0);
    assert_non_null(w.servers[0].shard->collecting->first);
    van_sim_reset(w.clients[0].van, UINT32_MAX);
    world_pass(&w, 2 * MS);
    ts[2] = push(&w, 2, 0);
    for (unsigned i = 0; i < 3; i++)
        assert_ok(world_wait(&w, i, ts[i]));
    world_pass(&w, 100 * MS);
    copies_have(&w, SUMS, 3, 1);
    world_fini(&w);
}

/* The owner dies at each moment of two clocks; the workers send again what has no answer. */
static void owner_dies(void **state)
{
    (void)state;
    for (unsigned at = 0; at < 60; at++) {
        struct world w;
        struct world_death death;
        world_make(&w, 3, 2, UINT64_MAX);
        uint64_t ts[3];
        world_dies_in(&w, &death, 0, at * MS / 10);
        for (uint64_t clock = 0; clock < 2; clock++) {
            all_reach(&w, clock, 3);
            for (unsigned i = 0; i < 3; i++) {
                ts[i] = push(&w, i, clock);
                world_pass(&w, MS / 4);
            }
            for (unsigned i = 0; i < 3; i++)
                assert_ok(world_wait(&w, i, ts[i]));
        }
        while (!death.over)
            world_pass(&w, MS);
        world_pass(&w, 1500 * MS);
        copies_have(&w, SUMS, 3, 2);
        world_fini(&w);
    }
}

/* Bytes to followers with n workers, beside those of each push by itself. They push the same keys. */
static void traffic(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    static uint64_t keys[MANY];
    static float vals[MANY * DIM];
    for (uint64_t i = 0; i < MANY; i++)
        keys[i] = i << 40;
    for (unsigned n = 2; n <= WORLD_CLIENTS; n += 2) {
        uint64_t bytes[2];
        for (unsigned alone = 0; alone < 2; alone++) {
            struct world w;
            uint64_t ts[WORLD_CLIENTS];
            world_make(&w, n, 2, alone ? ~CAPABILITY_AGGREGATE : UINT64_MAX);
            all_reach(&w, 0, n);
            for (unsigned i = 0; i < n; i++) {
                for (unsigned k = 0; k < MANY * DIM; k++)
                    vals[k] = sinf((float)(k * n + i)) * 0.01f;
                paramo_request_options options = {.size = sizeof options, .flags = PARAMO_COPY};
                paramo_kv kv = {
                    .size = sizeof kv, .keys = keys, .n = MANY, .vals = vals, .vals_len = MANY * DIM};
                struct client_call call = {.kind = REQUEST_PUSH,
                                           .table = &w.tables[SUMS],
                                           .kv = &kv,
                                           .options = &options,
                                           .clocked = true};
                assert_ok(client_issue(w.clients[i].client, &call, &ts[i]));
            }
            for (unsigned i = 0; i < n; i++)
                assert_ok(world_wait(&w, i, ts[i]));
            bytes[alone] = chain_bytes(&w);
            world_fini(&w);
        }
        print_message("%u workers: %llu bytes, %llu one by one\n", n, (unsigned long long)bytes[0],
                      (unsigned long long)bytes[1]);
        assert_true(bytes[0] * n < bytes[1] * 3 / 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_a_clock),  cmocka_unit_test(by_time),       cmocka_unit_test(as_before),
        cmocka_unit_test(not_collected), cmocka_unit_test(before_others), cmocka_unit_test(one_is_refused),
        cmocka_unit_test(bounded),       cmocka_unit_test(again),         cmocka_unit_test(owner_dies),
        cmocka_unit_test(traffic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
