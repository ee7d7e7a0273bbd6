/* Sets of arcs: who is in, and one after the other. */
#include "unit.h"

#include <string.h>

#include "server/arcs.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_after_the_other)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
