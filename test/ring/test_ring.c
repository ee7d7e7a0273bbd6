#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "ring/ring.h"

static uint64_t seed = 1;

static uint64_t draw(void)
{
    seed += UINT64_C(0x9e3779b97f4a7c15);
    return mix64(seed);
}

static unsigned owner_of(const struct ring *ring, const struct ring_placement *placement, uint64_t key)
{
    return ring->owner[ring_partition(ring_position(placement, key))];
}

static size_t count_partitions(const struct ring *ring, size_t i)
{
    size_t count = 0;
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        count += ring->owner[a] == i;
    return count;
}

static size_t count_runs(const struct ring *ring)
{
    size_t runs = 1;
    for (size_t a = 1; a < RING_PARTITIONS; a++)
        runs += ring->owner[a] != ring->owner[a - 1];
    return runs;
}

static void check_shares(const struct ring *ring, const uint32_t *weights, size_t n)
{
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += weights ? weights[i] : 1;
    for (size_t i = 0; i < n; i++) {
        double due = RING_PARTITIONS * (weights ? weights[i] : 1) / total;
        double off = (double)count_partitions(ring, i) - due;
        assert_true(off < 1 && off > -1);
    }
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        assert_true(ring->owner[a] < n);
}

static void test_shares_in_order(void **state)
{
    (void)state;
    struct ring ring;
    for (size_t n = 1; n <= 300; n++) {
        assert_int_equal(ring_assign(NULL, n, NULL, &ring), PARAMO_OK);
        check_shares(&ring, NULL, n);
        assert_int_equal(count_runs(&ring), n);
        for (size_t a = 1; a < RING_PARTITIONS; a++)
            assert_true(ring.owner[a] >= ring.owner[a - 1]);
    }
    uint32_t weights[50];
    for (int round = 0; round < 100; round++) {
        for (size_t i = 0; i < 50; i++)
            weights[i] = (uint32_t)(draw() % 5 == 0 ? 0 : draw() % 1000);
        weights[7] = 1;
        assert_int_equal(ring_assign(weights, 50, NULL, &ring), PARAMO_OK);
        check_shares(&ring, weights, 50);
    }
}

/* With equal weights, a shard that comes takes about 1/(n+1) of the partitions and nothing else moves; one
 * that goes gives what it had, and nothing else moves. */
static void test_least_movement(void **state)
{
    (void)state;
    for (size_t n = 1; n <= 64; n++) {
        struct ring before, after, back;
        assert_int_equal(ring_assign(NULL, n, NULL, &before), PARAMO_OK);
        assert_int_equal(ring_assign(NULL, n + 1, &before, &after), PARAMO_OK);
        check_shares(&after, NULL, n + 1);
        for (size_t a = 0; a < RING_PARTITIONS; a++)
            assert_true(after.owner[a] == before.owner[a] || after.owner[a] == n);
        assert_true(count_runs(&after) <= 3 * n + 2);
        assert_int_equal(ring_assign(NULL, n, &after, &back), PARAMO_OK);
        check_shares(&back, NULL, n);
        for (size_t a = 0; a < RING_PARTITIONS; a++)
            assert_true(back.owner[a] == after.owner[a] || after.owner[a] == n);
        assert_int_equal(ring_assign(NULL, n, &before, &back), PARAMO_OK);
        assert_memory_equal(&back, &before, sizeof back);
    }
}

/* Any weights, any history: what moves is exactly what shares within one partition demand. */
static void test_movement_bound(void **state)
{
    (void)state;
    struct ring ring = {{0}}, next;
    for (int round = 0; round < 300; round++) {
        size_t n = 1 + draw() % 40;
        uint32_t weights[40];
        uint64_t total = 0;
        for (size_t i = 0; i < n; i++)
            total += weights[i] = 1 + (uint32_t)(draw() % 20);
        assert_int_equal(ring_assign(weights, n, &ring, &next), PARAMO_OK);
        check_shares(&next, weights, n);
        size_t moved = 0, kept_least = 0, may_round_up = RING_PARTITIONS;
        for (size_t a = 0; a < RING_PARTITIONS; a++)
            moved += next.owner[a] != ring.owner[a];
        for (size_t i = 0; i < n; i++)
            may_round_up -= weights[i] * (uint64_t)RING_PARTITIONS / total;
        for (size_t i = 0; i < n; i++) {
            size_t floor = weights[i] * (uint64_t)RING_PARTITIONS / total, have = count_partitions(&ring, i);
            int fraction = weights[i] * (uint64_t)RING_PARTITIONS % total != 0;
            if (have > floor && fraction && may_round_up) {
                may_round_up--;
                floor++;
            }
            kept_least += have < floor ? have : floor;
        }
        assert_int_equal(moved, RING_PARTITIONS - kept_least);
        ring = next;
    }
}

static void test_refuses(void **state)
{
    (void)state;
    struct ring ring;
    uint32_t nothing[3] = {0, 0, 0};
    assert_int_equal(ring_assign(NULL, 0, NULL, &ring), PARAMO_E_INVALID);
    assert_int_equal(ring_assign(nothing, 3, NULL, &ring), PARAMO_E_INVALID);
    assert_int_equal(ring_assign(NULL, RING_NONE, NULL, &ring), PARAMO_E_INVALID);
    assert_int_equal(ring_assign(NULL, 5000, NULL, &ring), PARAMO_OK);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static size_t draw_keys(uint64_t *keys, size_t n, uint64_t below)
{
    for (size_t i = 0; i < n; i++)
        keys[i] = below ? draw() % below : draw();
    keys[0] = 0;
    keys[n - 1] = below ? below - 1 : UINT64_MAX;
    qsort(keys, n, sizeof *keys, by_value);
    size_t unique = 1;
    for (size_t i = 1; i < n; i++)
        if (keys[i] != keys[unique - 1])
            keys[unique++] = keys[i];
    return unique;
}

/* Runs name the owner of each key, each key once, maximal runs, order kept. */
static void test_runs(void **state)
{
    (void)state;
    enum { N = 3000, SHARDS = 9 };
    static uint64_t keys[N];
    static struct ring_run runs[N];
    struct ring ring, mixed_up;
    assert_int_equal(ring_assign(NULL, SHARDS - 1, NULL, &mixed_up), PARAMO_OK);
    assert_int_equal(ring_assign(NULL, SHARDS, &mixed_up, &ring), PARAMO_OK);
    const struct ring_placement placements[] = {{PARAMO_PLACE_UNIFORM, 0},
                                                {PARAMO_PLACE_RANGE, 0},
                                                {PARAMO_PLACE_DENSE, 1},
                                                {PARAMO_PLACE_DENSE, 5},
                                                {PARAMO_PLACE_DENSE, 4096},
                                                {PARAMO_PLACE_DENSE, 100003},
                                                {PARAMO_PLACE_DENSE, UINT64_C(1) << 32},
                                                {PARAMO_PLACE_DENSE, UINT64_MAX}};
    for (size_t p = 0; p < sizeof placements / sizeof *placements; p++)
        for (size_t want = 2; want <= N; want = want * 3 + 1) {
            size_t n = draw_keys(keys, want, placements[p].rows), count = 0, at = 0;
            assert_int_equal(ring_runs(&ring, &placements[p], keys, n, runs, N, &count), PARAMO_OK);
            for (size_t r = 0; r < count; r++) {
                assert_int_equal(runs[r].first, at);
                assert_true(runs[r].count > 0);
                if (r)
                    assert_true(runs[r].shard != runs[r - 1].shard);
                for (size_t i = 0; i < runs[r].count; i++, at++)
                    assert_int_equal(owner_of(&ring, &placements[p], keys[at]), runs[r].shard);
            }
            assert_int_equal(at, n);
            if (count > 1)
                assert_int_equal(ring_runs(&ring, &placements[p], keys, n, runs, count - 1, &count),
                                 PARAMO_E_TOO_LARGE);
        }
    for (size_t p = 0; p < sizeof placements / sizeof *placements; p++) { /* keys that follow each other */
        uint64_t rows = placements[p].rows, n = rows && rows < N ? rows : N;
        size_t whole;
        uint64_t most = rows ? rows - n : UINT64_MAX - (n - 1);
        static struct ring_run same[N];
        for (unsigned at = 0; at < 4; at++) {
            uint64_t begin = at < 2 ? at * most : draw() % (most + !!(most + 1));
            size_t count = 0;
            for (size_t i = 0; i < n; i++)
                keys[i] = begin + i;
            assert_int_equal(ring_runs(&ring, &placements[p], keys, n, runs, N, &whole), PARAMO_OK);
            assert_int_equal(ring_range_runs(&ring, &placements[p], begin, n, same, N, &count), PARAMO_OK);
            assert_int_equal(count, whole);
            assert_memory_equal(runs, same, count * sizeof *runs);
        }
    }
    const struct ring_placement mixed = {PARAMO_PLACE_MIXED, 0};
    size_t count;
    assert_int_equal(ring_runs(&ring, &mixed, keys, 2, runs, N, &count), PARAMO_E_INVALID);
}

static void test_positions(void **state)
{
    (void)state;
    const struct ring_placement uniform = {PARAMO_PLACE_UNIFORM, 0};
    assert_int_equal(ring_partition(ring_position(&uniform, 0)), 0);
    assert_int_equal(ring_partition(ring_position(&uniform, UINT64_MAX)), RING_PARTITIONS - 1);
    const uint64_t sizes[] = {1, 2, 3, 4095, 4096, 4097, 1000000, (UINT64_C(1) << 32) - 1, UINT64_MAX};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const struct ring_placement dense = {PARAMO_PLACE_DENSE, sizes[s]};
        assert_int_equal(ring_first_row(&dense, 0), 0);
        assert_true(ring_first_row(&dense, RING_PARTITIONS) == sizes[s]);
        for (unsigned a = 0; a < RING_PARTITIONS; a++) {
            uint64_t first = ring_first_row(&dense, a), end = ring_first_row(&dense, a + 1);
            assert_true(first <= end);
            if (first == end)
                continue;
            assert_int_equal(ring_partition(ring_position(&dense, first)), a);
            assert_int_equal(ring_partition(ring_position(&dense, end - 1)), a);
            uint64_t share = sizes[s] / RING_PARTITIONS;
            assert_true(end - first >= share && end - first <= share + 1);
        }
    }
    const struct ring_placement mixed = {PARAMO_PLACE_MIXED, 0};
    struct ring ring;
    size_t counts[10] = {0};
    assert_int_equal(ring_assign(NULL, 10, NULL, &ring), PARAMO_OK);
    for (uint64_t key = 0; key < 20000; key++)
        counts[owner_of(&ring, &mixed, key)]++;
    for (size_t s = 0; s < 10; s++) /* 2000 expected, deviation about 42 */
        assert_true(counts[s] > 1750 && counts[s] < 2250);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares_in_order),
        cmocka_unit_test(test_least_movement),
        cmocka_unit_test(test_movement_bound),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_positions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
