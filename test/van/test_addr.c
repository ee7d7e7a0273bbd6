#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "van/addr.h"

static void test_split(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host;
        uint16_t port;
    } good[] = {{"10.0.0.5:8000", "10.0.0.5", 8000},
                {"[::1]:0", "::1", 0},
                {"host.example:65535", "host.example", 65535},
                {"*:80", "*", 80},
                {"[fe80::1]:9", "fe80::1", 9}};
    static const char *const bad[] = {"",           "host",     "host:",   ":80",
                                      "host:65536", "host:8x",  "::1:8",   "[::1]",
                                      "[::1]8",     "[]:8",     "[::1:8",  "host:-1",
                                      "a:b:1",      "host: 80", "host:1 ", "host:99999999999999999999"};
    char host[ADDR_HOST_MAX];
    uint16_t port;
    for (unsigned i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(addr_split(good[i].text, host, &port), PARAMO_OK);
        assert_string_equal(host, good[i].host);
        assert_int_equal(port, good[i].port);
    }
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(addr_split(bad[i], host, &port), PARAMO_E_ADDRESS);
        assert_non_null(strstr(err_text(), bad[i]));
    }
    char longest[ADDR_HOST_MAX + 8];
    memset(longest, 'a', sizeof longest);
    memcpy(longest + ADDR_HOST_MAX, ":80", 4);
    assert_int_equal(addr_split(longest, host, &port), PARAMO_E_ADDRESS);
    assert_int_equal(addr_split(longest + 1, host, &port), PARAMO_OK);
}

static void test_literals_and_text(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"10.0.0.5", "10.0.0.5:7"}, {"::1", "[::1]:7"}, {"*", "0.0.0.0:7"}, {"FE80::0:1", "[fe80::1]:7"}};
    struct addr addr;
    char text[ADDR_TEXT_MAX];
    for (unsigned i = 0; i < 4; i++) {
        assert_true(addr_literal(texts[i][0], 7, &addr));
        addr_format(&addr, text);
        assert_string_equal(text, texts[i][1]);
    }
    assert_false(addr_literal("localhost", 7, &addr));
    assert_false(addr_literal("10.0.0", 7, &addr));
}

static void test_resolve(void **state)
{
    (void)state;
    struct addr_list list;
    assert_int_equal(addr_resolve("localhost", 7, &list), PARAMO_OK);
    assert_true(list.count >= 1);
    assert_int_equal(addr_resolve("no-such-host.invalid", 7, &list), PARAMO_E_ADDRESS);
    assert_non_null(strstr(err_text(), "no-such-host.invalid"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_split), cmocka_unit_test(test_literals_and_text),
                                       cmocka_unit_test(test_resolve)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
