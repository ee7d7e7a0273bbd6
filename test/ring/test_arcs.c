/* Sets of arcs: who is in, and one after the other. */
#include "unit.h"

#include <string.h>

#include "ring/arcs.h"

static void one_after_the_other(void **state)
{
    (void)state;
    static const unsigned in[] = {0, 1, 63, 64, 191, 1000, RING_ARCS - 64, RING_ARCS - 1};
    enum { N = sizeof in / sizeof *in };
    uint64_t arcs[ARCS_WORDS] = {0};
    assert_int_equal(arcs_from(arcs, 0), RING_ARCS);
    for (unsigned i = 0; i < N; i++)
        arcs_add(arcs, in[i]);
    unsigned n = 0;
    for (arcs_each(a, arcs)) {
        assert_true(n < N);
        assert_int_equal(a, in[n++]);
    }
    assert_int_equal(n, N);
    for (unsigned a = 0, next = 0; a < RING_ARCS; a++) {
        assert_int_equal(arcs_has(arcs, a), a == in[next]);
        assert_int_equal(arcs_from(arcs, a), in[next]);
        next += a == in[next] && next + 1 < N;
    }
    assert_int_equal(arcs_from(arcs, RING_ARCS), RING_ARCS);
    memset(arcs, 0xff, sizeof arcs);
    n = 0;
    for (arcs_each(a, arcs))
        assert_int_equal(a, n++);
    assert_int_equal(n, RING_ARCS);
}

/* Each arc is in one run, and a run is all in the set or all out of it. */
static void runs_of_a_set(void **state)
{
    (void)state;
    static const unsigned edge[] = {0, 1, 5, 63, 64, 65, 128, 1000, RING_ARCS - 64, RING_ARCS - 1, RING_ARCS};
    enum { N = sizeof edge / sizeof *edge };
    for (unsigned i = 0; i < N; i++)
        for (unsigned k = i; k < N; k++) {
            uint64_t arcs[ARCS_WORDS] = {0}, begins[ARCS_WORDS] = {0};
            unsigned next = 0, count = 0;
            arcs_add_run(arcs, edge[i], edge[k]);
            for (unsigned a = 0; a < RING_ARCS; a++)
                assert_int_equal(arcs_has(arcs, a), a >= edge[i] && a < edge[k]);
            assert_int_equal(arcs_until(arcs, edge[i]), edge[k]);
            arcs_begins(arcs, begins);
            for (arcs_runs(a, end, begins)) {
                assert_int_equal(a, next);
                assert_true(end > a);
                for (unsigned b = a; b < end; b++)
                    assert_int_equal(arcs_has(arcs, b), arcs_has(arcs, a));
                next = end;
                count++;
            }
            assert_int_equal(next, RING_ARCS);
            assert_int_equal(count, 1 + (k > i && edge[i] > 0) + (k > i && edge[k] < RING_ARCS));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_after_the_other),
                                       cmocka_unit_test(runs_of_a_set)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
