/* Rows that go many at a time: CLEAR with copies, and partitions that leave. They are gone at once, and
 * removed in steps with everything else between these. */
#include "server/replication/chain_impl.h"
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
    return w.servers[server].shard->clears > 0;
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

/* Changes that come behind a CLEAR find nothing of what was before, whatever has been removed by then, and
 * are not removed with it; other tables go on meanwhile. */
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

/* The owner dies while rows are removed: the next has none of them either, and what came behind. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cleared),
        cmocka_unit_test(owner_dies),
        cmocka_unit_test(partitions_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
