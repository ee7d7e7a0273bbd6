/* The segments and lengths of requests, statistics as bytes, and the check that keys ascend. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/data.h"

static uint8_t bytes[64];

/* lens of the segments keys, lens, values, body */
static paramo_err check(struct wire_head h, uint64_t keys, uint64_t lens, uint64_t vals, uint64_t body)
{
    struct van_seg seg[VAN_SEGS] = {{bytes, keys}, {bytes, lens}, {bytes, vals}, {bytes, body}};
    h.number = h.number ? h.number : 1;
    h.floor = h.floor ? h.floor : 1;
    return data_check_request(&h, seg, VAN_SEGS);
}

#define head(...) ((struct wire_head){__VA_ARGS__})

static void test_shapes(void **state)
{
    (void)state;
    assert_int_equal(check(head(.kind = WIRE_PUSH, .count = 2), 16, 0, 8, 0), PARAMO_OK);
    assert_int_equal(check(head(.kind = WIRE_PUSH, .count = 2), 24, 0, 8, 0), PARAMO_E_PROTOCOL);
    assert_int_equal(check(head(.kind = WIRE_PUSH, .count = 2), 16, 8, 8, 0), PARAMO_E_PROTOCOL);
    assert_int_equal(check(head(.kind = WIRE_PUSH, .count = 2, .flags = WIRE_LENS), 16, 8, 8, 0), PARAMO_OK);
    assert_int_equal(check(head(.kind = WIRE_PUSH, .count = 2, .flags = WIRE_LENS), 16, 4, 8, 0),
                     PARAMO_E_PROTOCOL);
    assert_int_equal(check(head(.kind = WIRE_PUSH, .count = 0), 0, 0, 0, 0), PARAMO_E_PROTOCOL);
    assert_int_equal(check(head(.kind = WIRE_PUSH, .count = 1), 8, 0, 4, 1), PARAMO_E_PROTOCOL);
    assert_int_equal(check(head(.kind = WIRE_PUSH, .count = 1u << 29), 0, 0, 0, 0), PARAMO_E_PROTOCOL);
    assert_int_equal(check(head(.kind = WIRE_PULL, .count = 1), 8, 0, 0, 0), PARAMO_OK);
    assert_int_equal(check(head(.kind = WIRE_PULL, .count = 1), 8, 0, 4, 0), PARAMO_E_PROTOCOL);
    assert_int_equal(check(head(.kind = WIRE_SCAN, .count = 1), 8, 0, 0, 0), PARAMO_OK);
    assert_int_equal(check(head(.kind = WIRE_SCAN, .count = 2), 16, 0, 0, 0), PARAMO_OK);
    assert_int_equal(check(head(.kind = WIRE_SCAN, .count = 3), 24, 0, 0, 0), PARAMO_E_PROTOCOL);
    assert_int_equal(check(head(.kind = WIRE_CLEAR), 0, 0, 0, 0), PARAMO_OK);
    assert_int_equal(check(head(.kind = WIRE_CLEAR, .count = 1), 8, 0, 0, 0), PARAMO_E_PROTOCOL);
    assert_int_equal(check(head(.kind = WIRE_PROBE), 0, 0, 0, 0), PARAMO_OK);
    assert_int_equal(check(head(.kind = WIRE_ANSWER), 0, 0, 0, 0), PARAMO_E_PROTOCOL);
    assert_int_equal(check(head(.kind = WIRE_HELLO), 0, 0, 0, 0), PARAMO_E_PROTOCOL);
    /* messages: any segments, no flags */
    assert_int_equal(check(head(.kind = WIRE_MESSAGE, .to = {7, UINT32_MAX}), 3, 5, 7, 9), PARAMO_OK);
    assert_int_equal(check(head(.kind = WIRE_MESSAGE), 0, 0, 0, 0), PARAMO_OK);
    assert_int_equal(check(head(.kind = WIRE_MESSAGE, .count = 1), 8, 0, 0, 0), PARAMO_E_PROTOCOL);
    assert_int_equal(check(head(.kind = WIRE_MESSAGE, .flags = WIRE_LENS), 0, 0, 0, 0), PARAMO_E_PROTOCOL);
    /* parts of rows */
    assert_int_equal(
        check(head(.kind = WIRE_PUSH, .flags = WIRE_COLUMNS, .count = 1, .columns.count = 3), 8, 0, 12, 0),
        PARAMO_OK);
    assert_int_equal(
        check(head(.kind = WIRE_PUSH, .flags = WIRE_COLUMNS, .count = 2, .columns.count = 3), 16, 0, 24, 0),
        PARAMO_OK);
    assert_int_equal(check(head(.kind = WIRE_PUSH, .flags = WIRE_COLUMNS, .count = 1), 8, 0, 0, 0),
                     PARAMO_E_PROTOCOL);
    assert_int_equal(
        check(head(.kind = WIRE_PUT, .flags = WIRE_COLUMNS, .count = 1, .columns.count = 3), 8, 0, 12, 0),
        PARAMO_E_PROTOCOL);
    assert_int_equal(check(head(.kind = WIRE_SCAN, .flags = WIRE_COLUMNS, .count = 1), 8, 0, 0, 0),
                     PARAMO_E_PROTOCOL);
    struct wire_columns two = {.count = 2};
    assert_int_equal(
        check(head(.kind = WIRE_SCAN, .flags = WIRE_COLUMNS, .count = 2, .scan_columns = two), 16, 0, 0, 0),
        PARAMO_OK);
    assert_int_equal(
        check(head(.kind = WIRE_SCAN, .flags = WIRE_COLUMNS | WIRE_STATE, .count = 1, .scan_columns = two), 8,
              0, 0, 0),
        PARAMO_E_PROTOCOL);
    /* numbers must be in the window above the floor */
    assert_int_equal(check(head(.kind = WIRE_CLEAR, .number = 5, .floor = 6), 0, 0, 0, 0), PARAMO_E_PROTOCOL);
    assert_int_equal(check(head(.kind = WIRE_CLEAR, .number = 5 + DATA_WINDOW, .floor = 6), 0, 0, 0, 0),
                     PARAMO_OK);
    assert_int_equal(check(head(.kind = WIRE_CLEAR, .number = 6 + DATA_WINDOW, .floor = 6), 0, 0, 0, 0),
                     PARAMO_E_PROTOCOL);
    assert_int_equal(check(head(.kind = WIRE_CLEAR, .number = UINT64_MAX, .floor = UINT64_MAX), 0, 0, 0, 0),
                     PARAMO_OK);
}

static void test_stat(void **state)
{
    (void)state;
    struct data_stat s = {.rows = 1, .nonzero = 2, .bytes = 3, .pushes = 4, .pulls = 5}, back = {0};
    uint8_t body[DATA_STAT_BYTES];
    data_stat_encode(&s, body);
    assert_int_equal(data_stat_decode(body, sizeof body, &back), PARAMO_OK);
    assert_memory_equal(&s, &back, sizeof s);
    assert_int_equal(data_stat_decode(body, sizeof body - 1, &back), PARAMO_E_PROTOCOL);
}

static void test_ascend(void **state)
{
    (void)state;
    uint64_t keys[] = {0, 5, 5, 4};
    assert_int_equal(data_keys_ascend(keys, 0), 0);
    assert_int_equal(data_keys_ascend(keys, 1), 1);
    assert_int_equal(data_keys_ascend(keys, 2), 2);
    assert_int_equal(data_keys_ascend(keys, 4), 2);
    assert_int_equal(data_keys_ascend(keys + 2, 2), 1);
    static const uint64_t edge[] = {0, 1, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX - 1, UINT64_MAX};
    for (size_t i = 0; i < 36; i++) { /* each before each, and after many that ascend */
        uint64_t two[] = {edge[i / 6], edge[i % 6]}, many[203];
        assert_int_equal(data_keys_ascend(two, 2), two[0] < two[1] ? 2 : 1);
        for (size_t k = 0; k < 200; k++)
            many[k] = k + 1;
        many[200] = edge[i / 6];
        many[201] = edge[i % 6];
        many[202] = UINT64_MAX;
        size_t bad = many[200] <= 200          ? 200
                     : many[201] <= many[200]  ? 201
                     : many[201] == UINT64_MAX ? 202
                                               : 203;
        assert_int_equal(data_keys_ascend(many, 203), bad);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes), cmocka_unit_test(test_stat),
                                       cmocka_unit_test(test_ascend)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
