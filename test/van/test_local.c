/* This machine's own addresses; the resolver is asked only for localhost. */
#include <string.h>

#include "unit.h"
#include "van/local.h"

static void loopback_is_known(void **state)
{
    (void)state;
    assert_true(local_loopback("127.0.0.1"));
    assert_true(local_loopback("127.1.2.3"));
    assert_true(local_loopback("::1"));
    assert_true(local_loopback("localhost"));
    assert_false(local_loopback("0.0.0.0"));
    assert_false(local_loopback("*"));
    assert_false(local_loopback("10.0.0.5"));
    assert_false(local_loopback("::"));
}

static void the_way_to_loopback_is_loopback(void **state)
{
    (void)state;
    char text[ADDR_HOST_MAX];
    assert_int_equal(local_towards("127.0.0.1", text), PARAMO_OK);
    assert_string_equal(text, "127.0.0.1");
}

static void interfaces_have_addresses(void **state)
{
    (void)state;
    char text[ADDR_HOST_MAX];
    assert_int_equal(local_interface("lo", text), PARAMO_OK);
    assert_true(local_loopback(text));
    assert_int_equal(local_interface("no-such-interface", text), PARAMO_E_ADDRESS);
    assert_non_null(strstr(err_text(), "no-such-interface"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loopback_is_known),
        cmocka_unit_test(the_way_to_loopback_is_loopback),
        cmocka_unit_test(interfaces_have_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
