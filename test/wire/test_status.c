/* Reports of shards and the answer to STATUS: what is written is read again; what is not right is refused. */
#include "unit.h"

#include <string.h>

#include "wire/status.h"

static struct shard_report shard(unsigned seed)
{
    struct shard_report m = {.rows = seed,
                             .table_bytes = seed + 1,
                             .senders = seed + 2,
                             .applied_window_notes = seed + 3,
                             .applied_window_bytes = seed + 6,
                             .requests = seed + 7,
                             .repeats = seed + 8};
    spread_add(&m.pauses, seed);
    spread_add(&m.pauses, 20000 * seed);
    return m;
}

static void same(const struct shard_report *a, const struct shard_report *b)
{
    assert_memory_equal(a, b, sizeof *a);
}

static void reports(void **state)
{
    (void)state;
    const struct shard_report m = shard(5);
    struct shard_report got;
    struct writer w = {0};
    shard_report_encode(&m, &w);
    assert_false(w.failed);
    struct reader r = reader_over(w.data, w.len);
    shard_report_decode(&r, &got);
    assert_true(reader_done(&r));
    same(&m, &got);
    for (size_t cut = 0; cut < w.len; cut++) {
        r = reader_over(w.data, cut);
        shard_report_decode(&r, &got);
        assert_true(r.failed);
    }
    writer_fini(&w);
}

static void spreads_that_lie(void **state)
{
    (void)state;
    static const uint8_t lies[][2 + 2 * 9] = {
        {2, 0, 5, 1, 0, 0, 0, 0, 0, 0, 0, 5, 1, 0, 0, 0, 0, 0, 0, 0}, /* a class twice */
        {2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 5, 1, 0, 0, 0, 0, 0, 0, 0}, /* an empty one */
        {2, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 6, 1, 0, 0, 0, 0, 0, 0, 0}, /* the greatest is 5 */
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct writer w = {0};
        struct spread got;
        write_u64(&w, 5);
        write_bytes(&w, lies[i], sizeof lies[i]);
        struct reader r = reader_over(w.data, w.len);
        spread_decode(&r, &got);
        assert_true(r.failed);
        writer_fini(&w);
    }
}

static void answers(void **state)
{
    (void)state;
    struct shard_report shards[] = {shard(1), shard(2), shard(3)};
    struct status_node nodes[] = {
        {.id = 1,
         .state = STATUS_JOINED,
         .heard_ms = 3,
         .reported_ms = STATUS_NEVER,
         .clocks = {.workers = 2, .lowest = 1ull << 40, .highest = 1ull << 41, .waits = 1, .waited_ms = 9}},
        {.id = 8, .state = STATUS_ABSENT, .reported_ms = 7, .shards = 2, .shard = shards},
        {.id = 9, .state = STATUS_DEAD, .reported_ms = STATUS_NEVER},
        {.id = 10, .state = STATUS_LEFT, .reported_ms = 1, .shards = 1, .shard = shards + 2}};
    struct status m = {
        .replicas = 2,
        .converged = true,
        .ckpt = {.now = STATUS_LOADING, .last = 4, .at = 1700000000, .dir = "/a/b"},
        .migrations_count = 2,
        .migration = {{.state = 2, .first = 5, .partitions = 7, .from = 1, .to = 2},
                      {.state = 3, .handover = true, .first = 4000, .partitions = 96, .from = 3}},
        .nodes_count = 4,
        .nodes = nodes,
        .view = "view",
        .view_len = 4};
    struct status got;
    spread_add(&m.pauses, 77);
    struct writer w = {0};
    status_encode(&m, &w);
    assert_false(w.failed);
    struct reader r = reader_over(w.data, w.len);
    assert_int_equal(status_decode(&r, &got), PARAMO_OK);
    assert_int_equal(got.replicas, 2);
    assert_true(got.converged);
    assert_memory_equal(&got.pauses, &m.pauses, sizeof m.pauses);
    assert_memory_equal(&got.ckpt, &m.ckpt, sizeof m.ckpt);
    assert_int_equal(got.migrations_count, 2);
    assert_memory_equal(got.migration, m.migration, sizeof m.migration);
    assert_int_equal(got.nodes_count, 4);
    assert_memory_equal(&got.nodes[0].clocks, &nodes[0].clocks, sizeof nodes[0].clocks);
    assert_int_equal(got.nodes[1].clocks.workers, 0);
    assert_int_equal(got.nodes[1].state, STATUS_ABSENT);
    assert_int_equal(got.nodes[1].shards, 2);
    same(&got.nodes[1].shard[1], &shards[1]);
    same(&got.nodes[3].shard[0], &shards[2]);
    assert_int_equal(got.nodes[2].reported_ms, STATUS_NEVER);
    assert_int_equal(got.view_len, 4);
    assert_memory_equal(got.view, "view", 4);
    status_fini(&got);
    for (size_t cut = 0; cut < w.len - 4; cut++) {
        r = reader_over(w.data, cut);
        assert_int_equal(status_decode(&r, &got), PARAMO_E_PROTOCOL);
    }
    writer_fini(&w);

    nodes[1].shards = 0; /* a report of nothing */
    status_encode(&m, &w);
    r = reader_over(w.data, w.len);
    assert_int_equal(status_decode(&r, &got), PARAMO_E_PROTOCOL);
    writer_fini(&w);
}

static void clocks_that_lie(void **state)
{
    (void)state;
    static const struct status_clocks lies[] = {
        {.workers = 1, .lowest = 2, .highest = 1},   /* upside down */
        {.highest = 1},                              /* of no worker */
        {.waits = 1},                                /* the same */
        {.workers = 1, .highest = 1, .waited_ms = 5} /* without a wait */
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct status_node node = {
            .id = 1, .state = STATUS_JOINED, .reported_ms = STATUS_NEVER, .clocks = lies[i]};
        struct status m = {.nodes_count = 1, .nodes = &node, .view = "view", .view_len = 4}, got;
        struct writer w = {0};
        status_encode(&m, &w);
        struct reader r = reader_over(w.data, w.len);
        assert_int_equal(status_decode(&r, &got), PARAMO_E_PROTOCOL);
        writer_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reports), cmocka_unit_test(spreads_that_lie),
                                       cmocka_unit_test(answers), cmocka_unit_test(clocks_that_lie)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
