/* Reductions through clients and shards: the same bits on any number of servers; what is refused; servers without the
 * capability; tables that change owners and lose rows while a reduction runs. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "unit.h"
#include "wire/capability.h"
#include "worker/client_impl.h"
#include "worker/support_world.h"

enum { DENSE, SPARSE, VAR, USER, SECOND, ROWS = 4000, DIM = 3 };

static void world_make(struct world *w, unsigned servers, size_t scan_keys, uint64_t capabilities)
{
    world_init(w, true, 7);
    w->scan_keys = scan_keys;
    w->migrations = true;
    w->capabilities = capabilities;
    world_table(w, PARAMO_TABLE_DENSE, DIM)->rows = ROWS;
    world_table(w, PARAMO_TABLE_SPARSE, DIM);
    world_table(w, PARAMO_TABLE_VAR, 1);
    world_table(w, PARAMO_TABLE_USER, 1);
    world_table(w, PARAMO_TABLE_SPARSE, DIM);
    world_start(w, servers, servers, 1);
}

static void fill(struct world *w, unsigned table, uint64_t step)
{
    static uint64_t keys[ROWS];
    static float vals[ROWS * DIM];
    uint64_t ts;
    for (size_t i = 0; i < ROWS; i++)
        keys[i] = i * step;
    for (size_t i = 0; i < sizeof vals / sizeof *vals; i++)
        vals[i] = (float)(mix64(i + table) % 100003) / 977 - 50; /* sums are not exact floats */
    assert_ok(world_push(w, 0, table, keys, ROWS, vals, ROWS * DIM, &ts));
    assert_ok(world_wait(w, 0, ts));
}

static paramo_err begin(struct world *w, unsigned table, int other, paramo_reduction *r, uint64_t *ts)
{
    struct client_call call = {.kind = REQUEST_REDUCE,
                               .table = &w->tables[table],
                               .reduction = r,
                               .other = other >= 0 ? &w->tables[other] : NULL};
    return client_issue(w->clients[0].client, &call, ts);
}

static paramo_err reduce(struct world *w, unsigned table, int other, paramo_reduction *r)
{
    uint64_t ts;
    paramo_err err = begin(w, table, other, r, &ts);
    return err ? err : client_wait(w->clients[0].client, ts, 0);
}

static void same_bits_on_any_layout(void **state)
{
    (void)state;
    double first[PARAMO_REDUCE_FUNCTIONS] = {0};
    paramo_entry best[20];
    for (unsigned servers = 1; servers <= 4; servers++)
        for (unsigned steps = 0; steps < 2; steps++) {
            struct world w;
            world_make(&w, servers, steps ? 300 : 0, UINT64_MAX);
            fill(&w, SPARSE, 12345);
            fill(&w, SECOND, 12345);
            for (unsigned f = 0; f < PARAMO_REDUCE_FUNCTIONS; f++) {
                paramo_entry entries[20];
                paramo_reduction r = {.size = sizeof r, .function = (paramo_reduce_function)f};
                r.begin = 12345;
                r.end = 12345 * (ROWS - 1);
                if (f == PARAMO_REDUCE_TOP) {
                    r.entries = entries;
                    r.most = 20;
                }
                assert_ok(reduce(&w, SPARSE, f == PARAMO_REDUCE_DOT ? SECOND : -1, &r));
                assert_int_equal(r.rows, ROWS - 2);
                assert_int_equal(r.values, (ROWS - 2) * DIM);
                if (servers == 1 && !steps) {
                    first[f] = r.value;
                    memcpy(best, entries, f == PARAMO_REDUCE_TOP ? sizeof best : 0);
                }
                assert_memory_equal(&r.value, &first[f], sizeof r.value);
                if (f == PARAMO_REDUCE_TOP)
                    assert_memory_equal(entries, best, sizeof best);
            }
            world_fini(&w);
        }
    assert_true(first[PARAMO_REDUCE_MIN] < -49 && first[PARAMO_REDUCE_MAX] > 50 &&
                first[PARAMO_REDUCE_NORM1] > 1e5);
    assert_true(best[0].value == first[PARAMO_REDUCE_MAX] || best[0].value == first[PARAMO_REDUCE_MIN]);
}

static void dense_rows_are_all_there(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 3, 300, UINT64_MAX);
    paramo_reduction r = {.size = sizeof r, .function = PARAMO_REDUCE_SUM};
    assert_ok(reduce(&w, DENSE, -1, &r));
    assert_int_equal(r.rows, ROWS);
    assert_true(r.value == 0);
    fill(&w, DENSE, 1);
    r.begin = 10;
    r.end = 20;
    assert_ok(reduce(&w, DENSE, -1, &r));
    assert_int_equal(r.rows, 10);
    assert_int_equal(r.values, 30);
    r = (paramo_reduction){.size = sizeof r, .function = PARAMO_REDUCE_COUNT};
    assert_ok(reduce(&w, VAR, -1, &r));
    assert_int_equal(r.rows, 0);
    world_fini(&w);
}

static void refused(void **state)
{
    (void)state;
    struct world w;
    paramo_entry one;
    world_make(&w, 2, 0, UINT64_MAX);
    paramo_reduction r = {.size = sizeof r, .function = PARAMO_REDUCE_SUM};
    assert_int_equal(reduce(&w, USER, -1, &r), PARAMO_E_UNSUPPORTED);
    r.begin = r.end = 5;
    assert_int_equal(reduce(&w, SPARSE, -1, &r), PARAMO_E_INVALID);
    r.end = 0;
    assert_int_equal(reduce(&w, SPARSE, SECOND, &r), PARAMO_E_INVALID);
    r.function = PARAMO_REDUCE_DOT;
    assert_int_equal(reduce(&w, SPARSE, -1, &r), PARAMO_E_INVALID);
    assert_int_equal(reduce(&w, SPARSE, DENSE, &r), PARAMO_E_SIZE_MISMATCH);
    assert_non_null(strstr(err_text(), "placement"));
    assert_int_equal(reduce(&w, SPARSE, VAR, &r), PARAMO_E_UNSUPPORTED);
    r.function = PARAMO_REDUCE_TOP;
    assert_int_equal(reduce(&w, SPARSE, -1, &r), PARAMO_E_INVALID);
    r.most = 1;
    assert_int_equal(reduce(&w, SPARSE, -1, &r), PARAMO_E_INVALID);
    r.entries = &one;
    assert_ok(reduce(&w, SPARSE, -1, &r));
    assert_int_equal(r.n, 0);
    world_fini(&w);
    world_make(&w, 2, 0, UINT64_MAX & ~CAPABILITY_REDUCE);
    assert_int_equal(reduce(&w, SPARSE, -1, &r), PARAMO_E_UNSUPPORTED);
    assert_non_null(strstr(err_text(), "older version"));
    fill(&w, SPARSE, 3); /* the connection stays open */
    world_fini(&w);
}

/* Each shard begins again when it gets other partitions, and so does the client. */
static void owners_change_amid(void **state)
{
    (void)state;
    for (uint64_t wait = 0; wait < 40; wait++) {
        struct world w;
        uint64_t ts;
        paramo_reduction r = {.size = sizeof r, .function = PARAMO_REDUCE_COUNT};
        world_make(&w, 2, 40, UINT64_MAX);
        assert_ok(begin(&w, DENSE, -1, &r, &ts));
        world_pass(&w, wait * 20 * ENV_US);
        for (unsigned a = 0; a < RING_PARTITIONS; a++)
            w.ring.owner[a] = (uint16_t)(a % 2); /* dense tables have rows of any partition at once */
        w.partitions_changed[0] = w.partitions_changed[1] = ++w.number;
        world_view(&w);
        world_all_view(&w);
        assert_ok(client_wait(w.clients[0].client, ts, 0));
        assert_int_equal(r.rows, ROWS);
        world_fini(&w);
    }
}

/* A clear that takes steps: nothing of it is seen in the middle. */
static void cleared_amid(void **state)
{
    (void)state;
    for (uint64_t wait = 0; wait < 10; wait++) {
        struct world w;
        uint64_t clear, ts;
        paramo_reduction r = {.size = sizeof r, .function = PARAMO_REDUCE_NORM1};
        world_make(&w, 1, 300, UINT64_MAX);
        fill(&w, DENSE, 1);
        struct client_call call = {.kind = REQUEST_CLEAR, .table = &w.tables[DENSE]};
        assert_ok(begin(&w, DENSE, -1, &r, &ts));
        world_pass(&w, wait * ENV_MS);
        assert_ok(client_issue(w.clients[0].client, &call, &clear));
        assert_ok(client_wait(w.clients[0].client, clear, 0));
        assert_ok(client_wait(w.clients[0].client, ts, 0));
        assert_int_equal(r.rows, ROWS);
        assert_ok(reduce(&w, DENSE, -1, &r));
        assert_true(r.value == 0);
        world_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits_on_any_layout),
                                       cmocka_unit_test(dense_rows_are_all_there), cmocka_unit_test(refused),
                                       cmocka_unit_test(owners_change_amid), cmocka_unit_test(cleared_amid)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
