/* Sets of partitions: membership and iteration. */
#include "unit.h"

#include <string.h>

#include "ring/partition_set.h"

static void one_after_the_other(void **state)
{
    (void)state;
    static const unsigned in[] = {0, 1, 63, 64, 191, 1000, RING_PARTITIONS - 64, RING_PARTITIONS - 1};
    enum { N = sizeof in / sizeof *in };
    uint64_t partitions[PARTITION_WORDS] = {0};
    assert_int_equal(partition_set_next(partitions, 0), RING_PARTITIONS);
    for (unsigned i = 0; i < N; i++)
        partition_set_add(partitions, in[i]);
    unsigned n = 0;
    for (partition_set_each(a, partitions)) {
        assert_true(n < N);
        assert_int_equal(a, in[n++]);
    }
    assert_int_equal(n, N);
    for (unsigned a = 0, next = 0; a < RING_PARTITIONS; a++) {
        assert_int_equal(partition_set_has(partitions, a), a == in[next]);
        assert_int_equal(partition_set_next(partitions, a), in[next]);
        next += a == in[next] && next + 1 < N;
    }
    assert_int_equal(partition_set_next(partitions, RING_PARTITIONS), RING_PARTITIONS);
    memset(partitions, 0xff, sizeof partitions);
    n = 0;
    for (partition_set_each(a, partitions))
        assert_int_equal(a, n++);
    assert_int_equal(n, RING_PARTITIONS);
}

/* Each partition is in one run, and a run is all in the set or all out of it. */
static void runs_of_a_set(void **state)
{
    (void)state;
    static const unsigned edge[] = {
        0, 1, 5, 63, 64, 65, 128, 1000, RING_PARTITIONS - 64, RING_PARTITIONS - 1, RING_PARTITIONS};
    enum { N = sizeof edge / sizeof *edge };
    for (unsigned i = 0; i < N; i++)
        for (unsigned k = i; k < N; k++) {
            uint64_t partitions[PARTITION_WORDS] = {0}, begins[PARTITION_WORDS] = {0};
            unsigned next = 0, count = 0;
            partition_set_add_run(partitions, edge[i], edge[k]);
            for (unsigned a = 0; a < RING_PARTITIONS; a++)
                assert_int_equal(partition_set_has(partitions, a), a >= edge[i] && a < edge[k]);
            assert_int_equal(partition_set_next_absent(partitions, edge[i]), edge[k]);
            partition_set_run_starts(partitions, begins);
            for (partition_set_runs(a, end, begins)) {
                assert_int_equal(a, next);
                assert_true(end > a);
                for (unsigned b = a; b < end; b++)
                    assert_int_equal(partition_set_has(partitions, b), partition_set_has(partitions, a));
                next = end;
                count++;
            }
            assert_int_equal(next, RING_PARTITIONS);
            assert_int_equal(count, 1 + (k > i && edge[i] > 0) + (k > i && edge[k] < RING_PARTITIONS));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_after_the_other),
                                       cmocka_unit_test(runs_of_a_set)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
