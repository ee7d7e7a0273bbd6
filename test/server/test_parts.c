#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/parts.h"

static const uint64_t *arcs(unsigned first, unsigned last)
{
    static uint64_t bits[2][RING_ARCS / 64];
    static unsigned turn;
    turn = !turn;
    memset(bits[turn], 0, sizeof bits[turn]);
    for (unsigned a = first; a <= last; a++)
        bits[turn][a / 64] |= UINT64_C(1) << (a % 64);
    return bits[turn];
}

static bool has(const struct part *parts, uint64_t number, unsigned arc)
{
    const struct part *part = parts_find(parts, number);
    return part && part->arcs[arc / 64] >> (arc % 64) & 1;
}

static void parts_of_a_chunk_are_one_note(void **state)
{
    (void)state;
    struct part *parts = NULL, *apart = NULL;
    assert_int_equal(parts_note(&parts, 7, arcs(0, 9)), PARAMO_OK);
    assert_int_equal(parts_note(&parts, 7, arcs(100, 100)), PARAMO_OK);
    assert_int_equal(parts_note(&parts, 8, arcs(4095, 4095)), PARAMO_OK);
    assert_int_equal(parts_note(&apart, 8, arcs(64, 64)), PARAMO_OK);
    parts_join(&parts, apart);
    assert_true(has(parts, 7, 0) && has(parts, 7, 9) && has(parts, 7, 100) && !has(parts, 7, 10));
    assert_true(has(parts, 8, 4095) && has(parts, 8, 64) && !has(parts, 8, 0));
    assert_null(parts_find(parts, 9));
    parts_raise(&parts, 8);
    assert_null(parts_find(parts, 7));
    assert_true(has(parts, 8, 64));
    parts_fini(&parts);
    assert_null(parts);
}

static void they_go_with_their_arcs(void **state)
{
    (void)state;
    struct part *from = NULL, *to = NULL;
    assert_int_equal(parts_note(&from, 1, arcs(0, 99)), PARAMO_OK);
    assert_int_equal(parts_note(&from, 2, arcs(50, 59)), PARAMO_OK);
    assert_int_equal(parts_note(&to, 2, arcs(0, 0)), PARAMO_OK);
    assert_int_equal(parts_pass(&from, &to, arcs(50, 69)), PARAMO_OK);
    assert_true(has(from, 1, 49) && !has(from, 1, 50) && has(from, 1, 70));
    assert_null(parts_find(from, 2)); /* nothing was left of it */
    assert_true(has(to, 1, 50) && has(to, 1, 69) && !has(to, 1, 70));
    assert_true(has(to, 2, 0) && has(to, 2, 55) && !has(to, 2, 60));
    parts_drop(&to, arcs(0, 59));
    assert_null(parts_find(to, 2));
    assert_true(!has(to, 1, 59) && has(to, 1, 60));
    parts_fini(&from);
    parts_fini(&to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_a_chunk_are_one_note),
        cmocka_unit_test(they_go_with_their_arcs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
