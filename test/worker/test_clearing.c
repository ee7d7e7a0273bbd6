/* Rows that go many at a time: CLEAR with copies, and partitions that leave. They are gone at once, and
 * removed in steps with everything else between these. */
#include "server/replication/chain_impl.h"
#include "server/shard/clearing.h"
#include "server/shard/shard_tables.h"
#include "unit.h"

#include <string.h>

#include "worker/support_world.h"

enum { N = 400, STEP = 8, SMALL, WIDE, VAR, DENSE, OTHER, TABLES, FIRST = SMALL };

static struct world w;
static uint64_t keys[N];
static float vals[4 * N];
static uint32_t lens[N];

static void begin(unsigned replicas, unsigned servers)
{
    memset(&w, 0, sizeof w);
    world_init(&w, true, 5);
    w.replicas = replicas;
    w.migrations = true;
    w.scan_keys = STEP;
    w.timeout_ms = 60000;
    world_table(&w, PARAMO_TABLE_SPARSE, 1);
    world_table(&w, PARAMO_TABLE_SPARSE, 4);
    world_table(&w, PARAMO_TABLE_VAR, 1);
    world_table(&w, PARAMO_TABLE_DENSE, 1)->rows = 3 * N;
    world_table(&w, PARAMO_TABLE_SPARSE, 1);
    world_start(&w, servers, servers, 2);
    world_pass(&w, ENV_SEC);
    for (unsigned i = 0; i < N; i++) {
        keys[i] = 3 * i;
        lens[i] = 1;
    }
    for (unsigned i = 0; i < 4 * N; i++)
        vals[i] = 1;
}

static unsigned dim(unsigned table)
{
    return table == WIDE ? 4 : 1;
}

static uint64_t issue(unsigned client, unsigned kind, unsigned table, size_t n, struct client_stats *stats)
{
    uint64_t ts;
    paramo_kv kv = {.size = sizeof kv,
                    .keys = keys,
                    .n = n,
                    .vals = vals,
                    .vals_len = n * dim(table),
                    .lens = table == VAR ? lens : NULL};
    struct client_call call = {.kind = kind,
                               .table = &w.tables[table - FIRST],
                               .kv = kind == REQUEST_PUSH ? &kv : NULL,
                               .stats = stats};
    assert_int_equal(client_issue(w.clients[client].client, &call, &ts), PARAMO_OK);
    return ts;
}

static void done(unsigned client, unsigned kind, unsigned table, size_t n, struct client_stats *stats)
{
    assert_int_equal(world_wait(&w, client, issue(client, kind, table, n, stats)), PARAMO_OK);
}

static bool clears(unsigned server)
{
    return w.servers[server].shard->clearing->tables > 0;
}

static bool is_clear(void *world)
{
    (void)world;
    bool any = false;
    for (unsigned s = 0; s < w.servers_count; s++)
        any |= w.servers[s].up && clears(s);
    return !any;
}

static uint64_t rows_here(unsigned server, unsigned table)
{
    return table_rows(shard_table_find(w.servers[server].shard, table - FIRST + 1)->table);
}

static uint64_t nonzero(unsigned client, unsigned table)
{
    struct client_stats stats;
    done(client, REQUEST_STAT, table, 0, &stats);
    return stats.nonzero;
}

/* Changes that come after a CLEAR find nothing of what was before, whatever has been removed by then, and are not
 * removed with it; other tables continue. */
static void cleared(void **state)
{
    (void)state;
    for (unsigned replicas = 0; replicas < 3; replicas++)
        for (unsigned table = FIRST; table < OTHER; table++) {
            begin(replicas, 3);
            done(0, REQUEST_PUSH, table, N, NULL);
            done(0, REQUEST_CLEAR, table, 0, NULL);
            bool steps = replicas > 0; /* without copies a store is taken away whole */
            assert_true(!steps || clears(0) || clears(1) || clears(2));
            done(1, REQUEST_PUSH, OTHER, N, NULL);
            assert_true(!steps || clears(0) || clears(1) || clears(2)); /* it has not waited */
            done(1, REQUEST_PUSH, table, N / 2, NULL);
            assert_int_equal(nonzero(0, table), (table == VAR ? 1 : dim(table)) * (N / 2));
            done(0, REQUEST_CLEAR, table, 0, NULL);
            done(0, REQUEST_CLEAR, table, 0, NULL);
            assert_int_equal(nonzero(0, table), 0);
            assert_true(sim_run(w.sim, is_clear, NULL, sim_now(w.sim) + 10 * ENV_SEC));
            world_pass(&w, ENV_SEC);
            for (unsigned s = 0; s < 3 && table != DENSE; s++)
                assert_int_equal(rows_here(s, table), 0);
            world_fini(&w);
        }
}

/* The owner dies while rows are removed: the next has none of them either, and what came after. */
static void owner_dies(void **state)
{
    (void)state;
    for (unsigned table = FIRST; table < OTHER; table++) {
        begin(2, 3);
        done(0, REQUEST_PUSH, table, N, NULL);
        done(0, REQUEST_CLEAR, table, 0, NULL);
        assert_true(clears(0));
        world_server_stop(&w, 0);
        world_server_gone(&w, 0);
        world_view(&w);
        world_all_view(&w);
        done(1, REQUEST_PUSH, table, N / 2, NULL);
        assert_int_equal(nonzero(0, table), (table == VAR ? 1 : dim(table)) * (N / 2));
        world_fini(&w);
    }
}

/* Partitions leave, and come back before their rows have been removed: they come with none. */
static void partitions_come_back(void **state)
{
    (void)state;
    for (unsigned table = FIRST; table < OTHER; table++) {
        begin(0, 2);
        struct ring before = w.ring;
        done(0, REQUEST_PUSH, table, N, NULL);
        for (unsigned round = 0; round < 2; round++) {
            for (unsigned a = 0; a < RING_PARTITIONS; a++)
                w.ring.owner[a] = round ? before.owner[a] : 1;
            for (unsigned s = 0; s < 2; s++)
                w.partitions_changed[s] = w.chain_changed[s] = w.number + 1;
            world_view(&w);
            world_all_view(&w);
            if (!round)
                assert_true(clears(0));
        }
        struct client_stats stats;
        done(1, REQUEST_STAT, table, 0, &stats);
        for (unsigned i = 0; i < N; i++)
            keys[i] = i; /* of either */
        done(1, REQUEST_PUSH, table, N, NULL);
        assert_true(sim_run(w.sim, is_clear, NULL, sim_now(w.sim) + 10 * ENV_SEC));
        assert_int_equal(nonzero(0, table) >= (uint64_t)N * (table == VAR ? 1 : dim(table)), 1);
        world_fini(&w);
    }
}

static uint64_t all_rows_here(unsigned server)
{
    uint64_t rows = 0;
    for (unsigned table = FIRST; table < TABLES; table++)
        rows += table == DENSE ? 0 : rows_here(server, table);
    return rows;
}

/* Partitions leave with rows of many tables: one step of the lane removes as many rows as it may, of all tables
 * together. */
static void tables_share_a_step(void **state)
{
    (void)state;
    begin(0, 2);
    for (unsigned table = FIRST; table < TABLES; table++)
        done(0, REQUEST_PUSH, table, N, NULL);
    uint64_t before = all_rows_here(0);
    assert_true(before > 4 * STEP);
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        w.ring.owner[a] = 1;
    for (unsigned s = 0; s < 2; s++)
        w.partitions_changed[s] = w.chain_changed[s] = w.number + 1;
    world_view(&w);
    world_server_view(&w, 0);
    assert_in_range(before - all_rows_here(0), 1, STEP);
    world_all_view(&w);
    assert_true(sim_run(w.sim, is_clear, NULL, sim_now(w.sim) + 10 * ENV_SEC));
    assert_int_equal(all_rows_here(0), 0);
    world_fini(&w);
}

static void all_belong_to(uint16_t owner)
{
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        w.ring.owner[a] = owner;
    for (unsigned s = 0; s < 2; s++)
        w.partitions_changed[s] = w.chain_changed[s] = w.number + 1;
    world_view(&w);
}

/* A table costs time beside its rows: of many tables with a row each, one step clears a few. */
static void small_tables_share_a_step(void **state)
{
    (void)state;
    begin(0, 2);
    all_belong_to(0);
    world_all_view(&w);
    for (unsigned table = FIRST; table < TABLES; table++)
        done(0, REQUEST_PUSH, table, 1, NULL);
    assert_int_equal(all_rows_here(0), TABLES - FIRST - 1); /* but for the dense one */
    all_belong_to(1);
    world_server_view(&w, 0);
    assert_in_range(all_rows_here(0), 1, TABLES - FIRST - 2);
    world_all_view(&w);
    assert_true(sim_run(w.sim, is_clear, NULL, sim_now(w.sim) + 10 * ENV_SEC));
    assert_int_equal(all_rows_here(0), 0);
    world_fini(&w);
}

static void dense_begin(unsigned replicas, unsigned servers)
{
    memset(&w, 0, sizeof w);
    world_init(&w, true, 5);
    w.replicas = replicas;
    w.migrations = true;
    w.scan_keys = STEP;
    w.timeout_ms = 60000;
    for (unsigned table = FIRST; table < TABLES; table++) {
        paramo_table_options *o = world_table(&w, PARAMO_TABLE_DENSE, 1);
        o->rows = 3 * N;
        o->init = PARAMO_INIT_CONSTANT;
        o->init_a = 7;
    }
    world_start(&w, servers, servers, 1);
    for (unsigned i = 0; i < N; i++)
        keys[i] = 3 * i;
}

static void next_view(void)
{
    for (unsigned s = 0; s < w.servers_count; s++)
        w.partitions_changed[s] = w.chain_changed[s] = w.number + 1;
    world_view(&w);
    world_all_view(&w);
}

static bool upper_half_is_cleared(void *world)
{
    (void)world;
    const struct shard_table *t = shard_table_find(w.servers[1].shard, 1);
    return t->clears && t->clear_at > 3 * N / 2;
}

/* Each row that the server has is as it begins. */
static void rows_are_made(unsigned server)
{
    for (unsigned table = FIRST; table < TABLES; table++) {
        const struct shard_table *t = shard_table_find(w.servers[server].shard, table - FIRST + 1);
        for (uint64_t key = 0; key < 3 * N; key++) {
            float value;
            if (!partition_set_has(t->held, ring_partition(ring_position(&t->placement, key))))
                continue;
            assert_int_equal(table_pull(t->table, &key, 1, &value, false), PARAMO_OK);
            assert_true(value == 7);
        }
    }
}

/* The rows of large dense tables get their values in steps. Until then requests wait. */
static void a_dense_table_is_made_in_steps(void **state)
{
    (void)state;
    for (unsigned replicas = 0; replicas < 3; replicas++) {
        dense_begin(replicas, 3);
        for (unsigned s = 0; s < 3; s++) {
            struct shard *shard = w.servers[s].shard;
            assert_int_equal(shard->clearing->tables, TABLES - FIRST); /* none has been made at once */
            for (unsigned table = FIRST; table < TABLES; table++)
                assert_int_equal(shard_table_find(shard, table - FIRST + 1)->clear_at, 0);
        }
        for (unsigned table = FIRST; table < TABLES; table++) {
            paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = N, .vals = vals, .vals_len = N};
            struct client_call call = {.kind = REQUEST_PULL, .table = &w.tables[table - FIRST], .kv = &kv};
            uint64_t ts;
            memset(vals, 0, sizeof vals);
            assert_int_equal(client_issue(w.clients[0].client, &call, &ts), PARAMO_OK);
            assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
            for (unsigned i = 0; i < N; i++)
                assert_true(vals[i] == 7);
        }
        assert_true(sim_run(w.sim, is_clear, NULL, sim_now(w.sim) + 10 * ENV_SEC));
        for (unsigned s = 0; s < 3; s++)
            rows_are_made(s);
        world_fini(&w);
    }
}

/* Partitions come to a table that is being cleared: their rows get their values, though the removal has passed them. */
static void rows_come_behind_a_removal(void **state)
{
    (void)state;
    dense_begin(0, 2);
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        w.ring.owner[a] = a >= RING_PARTITIONS / 2;
    next_view();
    assert_true(sim_run(w.sim, is_clear, NULL, sim_now(w.sim) + 10 * ENV_SEC));
    uint64_t ts = issue(0, REQUEST_CLEAR, FIRST, 0, NULL);
    assert_true(sim_run(w.sim, upper_half_is_cleared, NULL, sim_now(w.sim) + ENV_SEC));
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        w.ring.owner[a] = 1;
    next_view();
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    assert_true(sim_run(w.sim, is_clear, NULL, sim_now(w.sim) + 10 * ENV_SEC));
    rows_are_made(1);
    world_fini(&w);
}

/* The last rows of a table are deleted: each member of a chain frees the memory that the table had for them, whether
 * it has heard of the deletion from a client or from the member before. */
static void each_member_frees_memory(void **state)
{
    enum { MANY = 40000 };
    static uint64_t many[MANY];
    static float ones[MANY];
    uint64_t held[3], ts;
    (void)state;
    begin(2, 3);
    for (unsigned i = 0; i < MANY; i++) {
        many[i] = i * UINT64_C(0x1234567);
        ones[i] = 1;
    }
    paramo_kv kv = {.size = sizeof kv, .keys = many, .n = MANY, .vals = ones, .vals_len = MANY};
    struct client_call call = {.kind = REQUEST_PUSH, .table = &w.tables[SMALL - FIRST], .kv = &kv};
    assert_ok(client_issue(w.clients[0].client, &call, &ts));
    assert_ok(world_wait(&w, 0, ts));
    world_pass(&w, ENV_SEC);
    for (unsigned s = 0; s < 3; s++) {
        assert_int_equal(rows_here(s, SMALL), MANY);
        held[s] = shard_table_bytes(shard_table_find(w.servers[s].shard, 1));
    }
    call.kind = REQUEST_DELETE;
    kv.vals = NULL;
    kv.vals_len = 0;
    assert_ok(client_issue(w.clients[0].client, &call, &ts));
    assert_ok(world_wait(&w, 0, ts));
    world_pass(&w, ENV_SEC);
    for (unsigned s = 0; s < 3; s++) {
        assert_int_equal(rows_here(s, SMALL), 0);
        assert_in_range(shard_table_bytes(shard_table_find(w.servers[s].shard, 1)), 1, held[s] / 10);
    }
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_member_frees_memory),
        cmocka_unit_test(cleared),
        cmocka_unit_test(owner_dies),
        cmocka_unit_test(partitions_come_back),
        cmocka_unit_test(tables_share_a_step),
        cmocka_unit_test(small_tables_share_a_step),
        cmocka_unit_test(a_dense_table_is_made_in_steps),
        cmocka_unit_test(rows_come_behind_a_removal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
