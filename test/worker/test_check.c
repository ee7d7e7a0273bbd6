#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "table/table_options.h"
#include "worker/check.h"
#include "worker/client.h"

static struct client_table table(paramo_table_kind kind, uint32_t dim)
{
    struct view_table v = {.id = 1, .name = "t"};
    table_options_default(&v.options);
    v.options.kind = kind;
    v.options.dim = dim;
    v.options.rows = 100;
    struct client_table t;
    client_table_init(&t, &v);
    return t;
}

static paramo_err check(enum request_kind kind, const struct client_table *t, const uint64_t *keys, size_t n,
                        void *vals, size_t vals_len, uint32_t *lens, uint32_t flags)
{
    paramo_request_options o = {.size = sizeof o, .flags = flags};
    paramo_kv kv = {
        .size = sizeof kv, .keys = keys, .n = n, .vals = vals, .vals_len = vals_len, .lens = lens};
    struct client_call call = {.kind = kind, .table = t, .kv = &kv, .options = &o};
    return check_call(&call, 1 << 20);
}

static void test_sizes(void **state)
{
    (void)state;
    struct client_table d = table(PARAMO_TABLE_DENSE, 2), s = table(PARAMO_TABLE_SPARSE, 2);
    struct client_table v = table(PARAMO_TABLE_VAR, 1), u = table(PARAMO_TABLE_USER, 1);
    uint64_t keys[3] = {1, 2, 99};
    float vals[8];
    uint32_t lens[3] = {1, 0, 4};
    assert_int_equal(check(REQUEST_PUSH, &d, keys, 3, vals, 6, NULL, 0), PARAMO_OK);
    assert_int_equal(check(REQUEST_PULL, &d, keys, 3, vals, 6, NULL, 0), PARAMO_OK);
    assert_int_equal(check(REQUEST_PUSH, &d, keys, 3, vals, 5, NULL, 0), PARAMO_E_SIZE_MISMATCH);
    assert_int_equal(check(REQUEST_PUSH, &d, keys, 3, vals, 7, NULL, 0), PARAMO_E_SIZE_MISMATCH);
    assert_int_equal(check(REQUEST_PULL, &s, keys, 3, vals, 4, NULL, 0), PARAMO_E_SIZE_MISMATCH);
    assert_int_equal(check(REQUEST_PUSH, &s, keys, 3, vals, 6, lens, 0), PARAMO_E_SIZE_MISMATCH);
    assert_int_equal(check(REQUEST_PUSH, &d, keys, 3, NULL, 6, NULL, 0), PARAMO_E_INVALID);
    assert_int_equal(check(REQUEST_PUSH, &d, NULL, 3, vals, 6, NULL, 0), PARAMO_E_INVALID);
    assert_int_equal(check(REQUEST_PUSH, &d, NULL, 0, NULL, 0, NULL, 0), PARAMO_OK);
    assert_int_equal(check(REQUEST_PUSH, &u, NULL, 0, vals, 1, NULL, 0), PARAMO_E_SIZE_MISMATCH);
    struct client_call none = {.kind = REQUEST_PUSH, .table = &d};
    assert_int_equal(check_call(&none, 1 << 20), PARAMO_E_INVALID);
    /* lens */
    assert_int_equal(check(REQUEST_PUSH, &v, keys, 3, vals, 5, lens, 0), PARAMO_OK);
    assert_int_equal(check(REQUEST_PUSH, &v, keys, 3, vals, 6, lens, 0), PARAMO_E_SIZE_MISMATCH);
    assert_int_equal(check(REQUEST_PUSHPULL, &v, keys, 3, vals, 8, lens, 0), PARAMO_OK);
    assert_int_equal(check(REQUEST_PULL, &v, keys, 3, vals, 8, lens, 0), PARAMO_OK);
    assert_int_equal(check(REQUEST_PUSH, &v, keys, 3, vals, 3, NULL, 0), PARAMO_E_SIZE_MISMATCH);
    assert_int_equal(check(REQUEST_PUSH, &u, keys, 3, vals, 6, NULL, 0), PARAMO_OK);
    assert_int_equal(check(REQUEST_PUSH, &u, keys, 3, vals, 7, NULL, 0), PARAMO_E_SIZE_MISMATCH);
    assert_int_equal(check(REQUEST_PUSH, &u, keys, 3, NULL, 0, NULL, 0), PARAMO_OK);
    /* whole tables */
    assert_int_equal(check(REQUEST_DELETE, &s, keys, 3, NULL, 0, NULL, 0), PARAMO_OK);
    assert_int_equal(check(REQUEST_PUT, &s, keys, 3, vals, 6, NULL, 0), PARAMO_OK);
    assert_int_equal(check(REQUEST_PUT, &u, keys, 3, vals, 6, NULL, 0), PARAMO_E_UNSUPPORTED);
    assert_int_equal(check(REQUEST_CLEAR, &u, NULL, 0, NULL, 0, NULL, 0), PARAMO_E_UNSUPPORTED);
    /* a row that no message can hold; one that may be cut inside can */
    struct client_table wide = table(PARAMO_TABLE_SPARSE, 1 << 20);
    float *many = malloc(sizeof *many << 20);
    assert_int_equal(check(REQUEST_PUSH, &wide, keys, 1, many, 1 << 20, NULL, 0), PARAMO_OK);
    wide.splittable = false;
    assert_int_equal(check(REQUEST_PUSH, &wide, keys, 1, many, 1 << 20, NULL, 0), PARAMO_E_TOO_LARGE);
    free(many);
}

/* The first bad place is named, wherever it stands. */
static void test_keys(void **state)
{
    (void)state;
    enum { N = 3000 };
    static uint64_t keys[N];
    struct client_table s = table(PARAMO_TABLE_SPARSE, 1), d = table(PARAMO_TABLE_DENSE, 1);
    static float vals[N];
    char text[64];
    for (size_t i = 0; i < N; i++)
        keys[i] = 10 * (i + 1);
    assert_int_equal(check_keys(keys, N), PARAMO_OK);
    for (size_t i = 1; i < N; i += i < 1030 ? 1 : 97) {
        uint64_t good = keys[i];
        keys[i] = keys[i - 1];
        assert_int_equal(check_keys(keys, N), PARAMO_E_KEYS_REPEATED);
        (void)snprintf(text, sizeof text, "key %llu is at positions %zu and %zu", (unsigned long long)keys[i],
                       i - 1, i);
        assert_string_equal(err_text(), text);
        keys[i] = keys[i - 1] - 1;
        assert_int_equal(check_keys(keys, N), PARAMO_E_KEYS_UNSORTED);
        (void)snprintf(text, sizeof text, "at position %zu ", i);
        assert_non_null(strstr(err_text(), text));
        keys[i] = good;
    }
    uint64_t edge[] = {0, 1, UINT64_MAX};
    assert_int_equal(check(REQUEST_PUSH, &s, edge, 3, vals, 3, NULL, 0), PARAMO_OK);
    uint64_t wrong[] = {5, 4};
    assert_int_equal(check(REQUEST_PUSH, &s, wrong, 2, vals, 2, NULL, 0), PARAMO_E_KEYS_UNSORTED);
    assert_int_equal(check(REQUEST_PUSH, &s, wrong, 2, vals, 2, NULL, PARAMO_TRUSTED), PARAMO_OK);
    uint64_t range[] = {99, 100};
    assert_int_equal(check(REQUEST_PULL, &d, range, 2, vals, 2, NULL, 0), PARAMO_E_KEY_RANGE);
    assert_non_null(strstr(err_text(), "key 100 at position 1"));
    assert_int_equal(check(REQUEST_PULL, &d, range, 1, vals, 1, NULL, 0), PARAMO_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes), cmocka_unit_test(test_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
