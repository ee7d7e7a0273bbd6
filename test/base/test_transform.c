/* The arithmetic of functions that change values, for each type. */
#include <math.h>
#include <string.h>

#include "base/transform.h"
#include "unit.h"

static struct transform of(unsigned function, double a)
{
    return (struct transform){.function = (uint8_t)function, .two = transform_takes_two(function), .a = a};
}

static void floats(void **state)
{
    (void)state;
    float y[3] = {1, -2, 0.5f}, x[3] = {10, 20, 30};
    struct transform t = of(PARAMO_TRANSFORM_AXPY, 0.25);
    assert_int_equal(transform_check(&t, PARAMO_F32), PARAMO_OK);
    assert_int_equal(transform_values(&t, PARAMO_F32, y, x, 3), PARAMO_OK);
    assert_true(y[0] == 3.5f && y[1] == 3 && y[2] == 8);
    t = of(PARAMO_TRANSFORM_SCALE, -2);
    assert_int_equal(transform_values(&t, PARAMO_F32, y, NULL, 3), PARAMO_OK);
    assert_true(y[0] == -7 && y[1] == -6 && y[2] == -16);
    t = of(PARAMO_TRANSFORM_ADD, 1);
    assert_int_equal(transform_values(&t, PARAMO_F32, y, NULL, 2), PARAMO_OK);
    assert_true(y[0] == -6 && y[1] == -5 && y[2] == -16);
    t = of(PARAMO_TRANSFORM_FILL, 0.1);
    assert_int_equal(transform_values(&t, PARAMO_F32, y, NULL, 3), PARAMO_OK);
    assert_true(y[0] == 0.1f && y[2] == 0.1f);
    t = of(PARAMO_TRANSFORM_COPY, 0);
    assert_int_equal(transform_values(&t, PARAMO_F32, y, x, 3), PARAMO_OK);
    assert_memory_equal(y, x, sizeof y);
    t = of(PARAMO_TRANSFORM_SCALE, 1e300);
    assert_int_equal(transform_values(&t, PARAMO_F32, y, NULL, 3), PARAMO_E_NUMERIC);
    double z[1] = {1e300};
    t = of(PARAMO_TRANSFORM_SCALE, 1e300);
    assert_int_equal(transform_values(&t, PARAMO_F64, z, NULL, 1), PARAMO_E_NUMERIC);
    z[0] = NAN;
    t = of(PARAMO_TRANSFORM_FILL, 3);
    assert_int_equal(transform_values(&t, PARAMO_F64, z, NULL, 1), PARAMO_OK);
    assert_true(z[0] == 3);
}

static void integers(void **state)
{
    (void)state;
    int64_t y[2] = {(INT64_C(1) << 60) + 1, -5}, x[2] = {3, -4};
    struct transform t = of(PARAMO_TRANSFORM_AXPY, 2);
    assert_int_equal(transform_check(&t, PARAMO_I64), PARAMO_OK);
    assert_int_equal(transform_values(&t, PARAMO_I64, y, x, 2), PARAMO_OK);
    assert_true(y[0] == (INT64_C(1) << 60) + 7 && y[1] == -13); /* more digits than a double has */
    t = of(PARAMO_TRANSFORM_ADD, -8);
    assert_int_equal(transform_values(&t, PARAMO_I64, y, NULL, 2), PARAMO_OK);
    assert_true(y[0] == (INT64_C(1) << 60) - 1 && y[1] == -21);
    int32_t w[2] = {INT32_MAX, -1};
    t = of(PARAMO_TRANSFORM_ADD, 1);
    assert_int_equal(transform_values(&t, PARAMO_I32, w, NULL, 2), PARAMO_OK);
    assert_true(w[0] == INT32_MIN && w[1] == 0);
    uint8_t b[2] = {200, 3};
    t = of(PARAMO_TRANSFORM_SCALE, -3);
    assert_int_equal(transform_values(&t, PARAMO_U8, b, NULL, 2), PARAMO_OK);
    assert_true(b[0] == (uint8_t)(200 * 253) && b[1] == (uint8_t)(3 * 253));
}

static void refused(void **state)
{
    (void)state;
    struct transform t = of(PARAMO_TRANSFORM_FUNCTIONS, 1);
    assert_int_equal(transform_check(&t, PARAMO_F32), PARAMO_E_INVALID);
    t = of(PARAMO_TRANSFORM_ADD, NAN);
    assert_int_equal(transform_check(&t, PARAMO_F32), PARAMO_E_INVALID);
    t.a = INFINITY;
    assert_int_equal(transform_check(&t, PARAMO_F64), PARAMO_E_INVALID);
    t.a = 1e300;
    assert_int_equal(transform_check(&t, PARAMO_F64), PARAMO_OK);
    assert_int_equal(transform_check(&t, PARAMO_I64), PARAMO_E_INVALID);
    t.a = 0.5;
    assert_int_equal(transform_check(&t, PARAMO_I64), PARAMO_E_INVALID);
    t.a = -0x1p63;
    assert_int_equal(transform_check(&t, PARAMO_I64), PARAMO_OK);
    t.a = 1;
    t.two = true;
    assert_int_equal(transform_check(&t, PARAMO_F32), PARAMO_E_INVALID);
    t = of(PARAMO_TRANSFORM_AXPY, 1);
    t.two = false;
    assert_int_equal(transform_check(&t, PARAMO_F32), PARAMO_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(floats), cmocka_unit_test(integers),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
