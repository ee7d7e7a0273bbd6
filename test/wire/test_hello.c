/* HELLO, WELCOME and REJECT: there and back, cut short, with and without capabilities. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "wire/hello.h"

static const struct hello example = {.version_min = 1,
                                     .version_max = 3,
                                     .purpose = HELLO_DATA,
                                     .node = 9,
                                     .incarnation = 77,
                                     .job = 5,
                                     .app = 6,
                                     .customer = 7,
                                     .shard = 8,
                                     .token = "secret"};

static void test_hello(void **state)
{
    (void)state;
    uint8_t bytes[512];
    struct writer w = writer_over(bytes, sizeof bytes);
    hello_encode(&example, &w);
    assert_false(w.failed);
    struct hello got;
    struct reader r = reader_over(bytes, w.len);
    assert_int_equal(hello_decode(&r, &got), PARAMO_OK);
    assert_int_equal(got.version_max, 3);
    assert_int_equal(got.purpose, HELLO_DATA);
    assert_int_equal(got.incarnation, 77);
    assert_int_equal(got.shard, 8);
    assert_string_equal(got.token, "secret");
    for (size_t len = 0; len < w.len; len++) {
        uint8_t *cut = malloc(len ? len : 1); /* exact, so that a sanitizer sees a read beyond */
        memcpy(cut, bytes, len);
        r = reader_over(cut, len);
        assert_int_equal(hello_decode(&r, &got), PARAMO_E_PROTOCOL);
        free(cut);
    }
    r = reader_over(bytes, w.len + 1);
    assert_int_equal(hello_decode(&r, &got), PARAMO_E_PROTOCOL);
    bytes[4] = 9; /* purpose */
    r = reader_over(bytes, w.len);
    assert_int_equal(hello_decode(&r, &got), PARAMO_E_PROTOCOL);
}

static void test_token_limit(void **state)
{
    (void)state;
    uint8_t bytes[1024];
    struct writer w = writer_over(bytes, sizeof bytes);
    struct hello m = example;
    memset(m.token, 'x', HELLO_TOKEN_MAX - 1);
    m.token[HELLO_TOKEN_MAX - 1] = '\0';
    hello_encode(&m, &w);
    struct reader r = reader_over(bytes, w.len);
    struct hello got;
    assert_int_equal(hello_decode(&r, &got), PARAMO_OK);
    assert_string_equal(got.token, m.token);
    bytes[w.len] = 'y'; /* one more than fits */
    size_t at = w.len - (HELLO_TOKEN_MAX - 1) - 2;
    bytes[at] = (uint8_t)HELLO_TOKEN_MAX;
    bytes[at + 1] = HELLO_TOKEN_MAX >> 8;
    r = reader_over(bytes, w.len + 1);
    assert_int_equal(hello_decode(&r, &got), PARAMO_E_PROTOCOL);
}

static void test_welcome_and_reject(void **state)
{
    (void)state;
    uint8_t bytes[600];
    struct writer w = writer_over(bytes, sizeof bytes);
    welcome_encode(&(struct welcome){.version = 1, .job = 2, .incarnation = 3}, &w);
    struct welcome got;
    struct reader r = reader_over(bytes, w.len);
    assert_int_equal(welcome_decode(&r, &got), PARAMO_OK);
    assert_int_equal(got.job, 2);
    r = reader_over(bytes, w.len - 1);
    assert_int_equal(welcome_decode(&r, &got), PARAMO_E_PROTOCOL);

    char text[1000];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    w = writer_over(bytes, sizeof bytes);
    reject_encode(PARAMO_E_TOKEN, text, &w);
    assert_false(w.failed);
    r = reader_over(bytes, w.len);
    paramo_err code;
    assert_int_equal(reject_decode(&r, &code), PARAMO_OK);
    assert_int_equal(code, PARAMO_E_TOKEN);
    assert_true(strlen(err_text()) > 200);
    bytes[0] = bytes[1] = 0; /* "rejected: OK" */
    r = reader_over(bytes, w.len);
    assert_int_equal(reject_decode(&r, &code), PARAMO_E_PROTOCOL);
}

/* Without capabilities the bytes are those of builds that know none; with some they come last. */
static void test_capabilities(void **state)
{
    (void)state;
    uint8_t bytes[512];
    struct hello m = example, got;
    struct welcome welcome = {.version = 3, .job = 5, .incarnation = 7}, back;
    struct writer w = writer_over(bytes, sizeof bytes);
    hello_encode(&m, &w);
    size_t plain = w.len;
    assert_int_equal(plain, 2 + 2 + 1 + 4 + 8 + 8 + 4 + 4 + 2 + 2 + strlen(m.token));
    struct reader r = reader_over(bytes, plain);
    assert_int_equal(hello_decode(&r, &got), PARAMO_OK);
    assert_int_equal(got.capabilities, 0);

    m.capabilities = UINT64_C(0x8000000000000001);
    w = writer_over(bytes, sizeof bytes);
    hello_encode(&m, &w);
    assert_int_equal(w.len, plain + 8);
    static const uint8_t golden[] = {1, 0, 0, 0, 0, 0, 0, 0x80};
    assert_memory_equal(bytes + plain, golden, 8);
    for (size_t len = 0; len <= w.len + 1; len++) { /* cut short: only whole with all of them, or with none */
        r = reader_over(bytes, len);
        assert_int_equal(hello_decode(&r, &got),
                         len == plain || len == w.len ? PARAMO_OK : PARAMO_E_PROTOCOL);
    }
    r = reader_over(bytes, w.len);
    assert_int_equal(hello_decode(&r, &got), PARAMO_OK);
    assert_true(got.capabilities == m.capabilities);
    memset(bytes + plain, 0, 8); /* none take no bytes */
    r = reader_over(bytes, w.len);
    assert_int_equal(hello_decode(&r, &got), PARAMO_E_PROTOCOL);

    w = writer_over(bytes, sizeof bytes);
    welcome_encode(&welcome, &w);
    assert_int_equal(w.len, 2 + 8 + 8);
    r = reader_over(bytes, w.len);
    assert_int_equal(welcome_decode(&r, &back), PARAMO_OK);
    assert_int_equal(back.capabilities, 0);
    welcome.capabilities = 6;
    w = writer_over(bytes, sizeof bytes);
    welcome_encode(&welcome, &w);
    assert_int_equal(w.len, 2 + 8 + 8 + 8);
    r = reader_over(bytes, w.len);
    assert_int_equal(welcome_decode(&r, &back), PARAMO_OK);
    assert_int_equal(back.capabilities, 6);
    r = reader_over(bytes, w.len - 1);
    assert_int_equal(welcome_decode(&r, &back), PARAMO_E_PROTOCOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hello),
        cmocka_unit_test(test_token_limit),
        cmocka_unit_test(test_welcome_and_reject),
        cmocka_unit_test(test_capabilities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
