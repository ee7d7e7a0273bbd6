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

/* Any other length of the name, any name that cannot be, and more parameters than there may be are refused. */
static void functions_of_the_application(void **state)
{
    (void)state;
    struct transform what = {.function = PARAMO_TRANSFORM_USER, .two = true, .other = 9}, back;
    static uint8_t body[TRANSFORM_BODY_MAX + 1];
    uint8_t params[PARAMO_FUNCTION_PARAMS_MAX] = "parameters";
    assert_int_equal(user_call_make(&what.user, "clip", params, 10), PARAMO_OK);
    size_t len = transform_body_bytes(&what);
    assert_int_equal(len, TRANSFORM_BODY_BYTES + 1 + 4 + 10);
    transform_encode(&what, body);
    assert_int_equal(transform_decode(body, len, &back), PARAMO_OK);
    assert_string_equal(back.user.name, "clip");
    assert_int_equal(back.user.params_bytes, 10);
    assert_memory_equal(back.user.params, params, 10);
    assert_true(back.two && back.other == 9);
    assert_int_equal(transform_decode(body, len - 10, &back), PARAMO_OK); /* no parameters */
    for (size_t less = 11; less < len; less++)
        assert_int_equal(transform_decode(body, len - less, &back), PARAMO_E_PROTOCOL);
    for (unsigned size = 0; size < 256; size += 5) { /* of a name that does not end there, or is none */
        body[TRANSFORM_BODY_BYTES] = (uint8_t)size;
        paramo_err err = transform_decode(body, len, &back);
        assert_int_equal(err, size && size < 15 ? PARAMO_OK : PARAMO_E_PROTOCOL);
    }
    body[TRANSFORM_BODY_BYTES] = 4;
    body[TRANSFORM_BODY_BYTES + 1] = 'C';
    assert_int_equal(transform_decode(body, len, &back), PARAMO_E_PROTOCOL);
    assert_int_equal(user_call_make(&what.user, "a_name_of_thirty_one_characters", params, sizeof params),
                     PARAMO_OK);
    assert_int_equal(transform_body_bytes(&what), TRANSFORM_BODY_MAX);
    transform_encode(&what, body);
    assert_int_equal(transform_decode(body, TRANSFORM_BODY_MAX, &back), PARAMO_OK);
    assert_int_equal(transform_decode(body, TRANSFORM_BODY_MAX + 1, &back), PARAMO_E_PROTOCOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bodies),
                                       cmocka_unit_test(functions_of_the_application)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
