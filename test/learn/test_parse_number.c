/* Numbers against strtof and strtoull, digit by digit. */
#include "learn/data/number.h"
#include "learn/support_text.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t state = 88172645463325252u;
static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static void check_u64(const char *text)
{
    char *t = text_padded(text, strlen(text));
    uint64_t v = 0;
    const char *end = number_u64(t, &v);
    assert_non_null(end);
    assert_int_equal(end - t, strspn(text, "0123456789"));
    assert_true(v == strtoull(text, NULL, 10));
    free(t);
}

static void integers_of_every_length(void **s)
{
    (void)s;
    char text[64];
    for (int i = 0; i < 20000; i++) {
        uint64_t v = next_random() >> (next_random() % 64);
        (void)snprintf(text, sizeof text, "%" PRIu64 "%s", v, i % 3 == 0 ? ":1 2" : i % 3 == 1 ? "\t9" : "");
        check_u64(text);
    }
    check_u64("0");
    check_u64("18446744073709551615");
    check_u64("000000000000000000000000000007");
    check_u64("12345678");
    check_u64("123456789");
    check_u64("1/");
    check_u64("1:");
}

static void integers_refused(void **s)
{
    (void)s;
    static const char *const bad[] = {
        "", "x1", "-1", "+1", " 1", ":", "/", "18446744073709551616", "99999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *t = text_padded(bad[i], strlen(bad[i]));
        uint64_t v;
        assert_null(number_u64(t, &v));
        free(t);
    }
}

/* One character is no digit, from the first to the last of those that are looked at. */
static void stops_of_every_character(void **s)
{
    (void)s;
    char text[16];
    for (int c = 0; c < 256; c++) {
        for (unsigned i = 0; i < sizeof text; i++) {
            memset(text, i % 2 ? '9' : '0', sizeof text);
            text[i] = (char)c;
            assert_int_equal(number_stops(text), c >= '0' && c <= '9' ? 0 : 1u << i);
            memset(text, c, sizeof text);
            text[i] = '5';
            assert_int_equal(number_stops(text), c >= '0' && c <= '9' ? 0 : 0xffffu ^ 1u << i);
        }
    }
}

static void check_float(const char *text)
{
    char *t = text_padded(text, strlen(text));
    float v = 0;
    const char *what = NULL, *end = number_float(t, &v, &what);
    float want = strtof(text, NULL);
    if (end == NULL || memcmp(&v, &want, sizeof v) != 0) {
        fail_msg("'%s' gives %.9g, strtof %.9g", text, (double)v, (double)want);
    }
    free(t);
}

static void floats_as_strtof(void **s)
{
    (void)s;
    char text[128];
    for (int i = 0; i < 200000; i++) {
        uint32_t bits = (uint32_t)next_random();
        float f;
        memcpy(&f, &bits, sizeof f);
        if (!isfinite(f)) {
            continue;
        }
        int digits = (int)(next_random() % 17);
        (void)snprintf(text, sizeof text, i % 2 != 0 ? "%.*g" : "%.*e", digits, (double)f);
        if (isfinite(strtof(text, NULL))) {
            check_float(text);
        }
        (void)snprintf(text, sizeof text, "%.*f", digits, (double)(int32_t)bits / 65536.0);
        check_float(text);
    }
    /* the middle between two floats, a little above it, and halves of subnormals */
    check_float("8846531951244069e19"); /* its double is such a middle, it is not */
    check_float("8556970633636368e22");
    check_float("9007199254740992e22");
    check_float("1e-22");
    check_float("16777217");
    check_float("16777217.0000000001");
    check_float("1.00000005960464477539062500");
    check_float("1.000000059604644775390625000001");
    check_float("1e-45");
    check_float("7.006492321624085e-46");
    check_float("1.1754943e-38");
    check_float("3.4028235e38");
    check_float("-0");
    check_float("1.");
    check_float("1234567");
    check_float("12345678");
    check_float("1234567.12345678");
    check_float("1234567.123456789");
    check_float("12345678.5");
    check_float("16777217.");
    check_float("0.5e3");
    check_float("7E2");
    check_float(".5");
    check_float("+.5e1");
    check_float("0e99999999999");
    check_float("1e-99999999999");
    check_float("123456789012345678901234567890");
    check_float("0.000000000000000000000000000000000000000000001");
}

static void floats_refused(void **s)
{
    (void)s;
    static const char *const bad[] = {"",  "x",  "inf", "-inf", "nan",  "NaN",    "-",
                                      ".", "e5", "1e",  "1e+",  "1e39", "3.5e38", "--1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *t = text_padded(bad[i], strlen(bad[i]));
        float v;
        const char *what = NULL;
        assert_null(number_float(t, &v, &what));
        assert_non_null(what);
        free(t);
    }
    char longer[200];
    memset(longer, '1', sizeof longer);
    char *t = text_padded(longer, sizeof longer);
    float v;
    const char *what = NULL;
    assert_null(number_float(t, &v, &what));
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_of_every_length), cmocka_unit_test(integers_refused),
        cmocka_unit_test(stops_of_every_character), cmocka_unit_test(floats_as_strtof),
        cmocka_unit_test(floats_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
