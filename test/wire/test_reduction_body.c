/* REDUCE and its answer as bytes. */
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "wire/reduction_body.h"

static void requests(void **state)
{
    (void)state;
    struct reduction what = {.function = PARAMO_REDUCE_DOT, .two = true, .other = 7, .begin = 3, .last = 9},
                     back;
    uint8_t body[REDUCTION_BODY_BYTES];
    uint32_t other;
    reduction_encode(&what, body);
    assert_int_equal(reduction_decode(body, sizeof body, &back), PARAMO_OK);
    assert_int_equal(back.function, PARAMO_REDUCE_DOT);
    assert_int_equal(back.last, 9);
    assert_true(reduction_other(body, &other));
    assert_int_equal(other, 7);
    assert_int_equal(reduction_decode(body, sizeof body - 1, &back), PARAMO_E_PROTOCOL);
    for (unsigned at = 0; at < sizeof body; at++) { /* no field is ignored; keys and ids may be any */
        uint8_t changed[REDUCTION_BODY_BYTES];
        bool field = at < 4 || at >= 24;
        memcpy(changed, body, sizeof body);
        changed[at] = 0xff;
        paramo_err err = reduction_decode(changed, sizeof changed, &back);
        assert_int_equal(err, field || back.begin > back.last ? PARAMO_E_PROTOCOL : PARAMO_OK);
    }
}

static void results(void **state)
{
    (void)state;
    struct reduction sum = {.function = PARAMO_REDUCE_SUM, .last = UINT64_MAX};
    struct reduction top = {.function = PARAMO_REDUCE_TOP, .begin = 4, .last = 20, .most = 3};
    struct reduced found, back;
    uint8_t bytes[512];
    assert_int_equal(reduced_init(&found, &sum), PARAMO_OK);
    assert_int_equal(reduced_init(&back, &sum), PARAMO_OK);
    reduced_add(&found, 0, 0, PARAMO_F64, (double[]){-1e300, 1e-300, 5}, PARAMO_F64, NULL, 3);
    found.rows = 11;
    size_t len = reduced_body_bytes(&found);
    reduced_encode(&found, bytes);
    assert_int_equal(reduced_decode(bytes, len, &back), PARAMO_OK);
    assert_memory_equal(back.sum.chunk, found.sum.chunk, sizeof back.sum.chunk);
    assert_int_equal(back.rows, 11);
    assert_int_equal(back.values, 3);
    assert_int_equal(reduced_decode(bytes, len - 1, &back), PARAMO_E_PROTOCOL);
    assert_int_equal(reduced_decode(bytes, len + 1, &back), PARAMO_E_PROTOCOL);
    bytes[len - 1] ^= 1; /* beyond any sum */
    assert_int_equal(reduced_decode(bytes, len, &back), PARAMO_E_PROTOCOL);
    reduced_fini(&found);
    reduced_fini(&back);

    assert_int_equal(reduced_init(&found, &top), PARAMO_OK);
    assert_int_equal(reduced_init(&back, &top), PARAMO_OK);
    reduced_add(&found, 5, 0, PARAMO_F32, (float[]){1, -2}, PARAMO_F32, NULL, 2);
    reduced_sort(&found);
    len = reduced_body_bytes(&found);
    reduced_encode(&found, bytes);
    assert_int_equal(reduced_decode(bytes, len, &back), PARAMO_OK);
    assert_int_equal(back.n, 2);
    assert_memory_equal(back.entries, found.entries, 2 * sizeof *back.entries);
    paramo_entry first = found.entries[0];
    found.entries[0] = found.entries[1]; /* out of order: twice the same */
    reduced_encode(&found, bytes);
    assert_int_equal(reduced_decode(bytes, len, &back), PARAMO_E_PROTOCOL);
    found.entries[0] = first;
    found.entries[0].key = 21; /* outside the range */
    reduced_encode(&found, bytes);
    assert_int_equal(reduced_decode(bytes, len, &back), PARAMO_E_PROTOCOL);
    reduced_fini(&found);
    reduced_fini(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(requests), cmocka_unit_test(results)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
