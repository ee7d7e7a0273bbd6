/* TRANSFORM's body as bytes. */
#include <string.h>

#include "unit.h"
#include "wire/transform_body.h"

static void bodies(void **state)
{
    (void)state;
    struct transform what = {.function = PARAMO_TRANSFORM_AXPY, .two = true, .other = 9, .a = -0.5}, back;
    uint8_t body[TRANSFORM_BODY_BYTES];
    uint32_t other;
    transform_encode(&what, body);
    assert_int_equal(transform_decode(body, sizeof body, &back), PARAMO_OK);
    assert_true(back.function == what.function && back.two && back.other == 9 && back.a == -0.5);
    assert_true(transform_other(body, &other));
    assert_int_equal(other, 9);
    assert_int_equal(transform_decode(body, sizeof body - 1, &back), PARAMO_E_PROTOCOL);
    for (unsigned at = 0; at < 4; at++) {
        uint8_t changed[TRANSFORM_BODY_BYTES];
        memcpy(changed, body, sizeof body);
        changed[at] = 0xff;
        assert_int_equal(transform_decode(changed, sizeof changed, &back), PARAMO_E_PROTOCOL);
    }
    body[1] = 0; /* no second table, but its id */
    assert_int_equal(transform_decode(body, sizeof body, &back), PARAMO_E_PROTOCOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bodies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
