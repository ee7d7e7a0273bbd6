/* The steps of a migration: there and back, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/chain.h"
#include "wire/migration_step.h"

static uint8_t payload[PARTITION_BITS / 8 + 24];

static paramo_err again(const struct migration_message *m, struct migration_message *got)
{
    struct wire_head head, decoded;
    uint8_t bytes[VAN_HEAD];
    struct van_seg seg = {.data = payload, .len = m->bytes};
    migration_head(m, &head);
    wire_head_encode(&head, bytes);
    assert_int_equal(wire_head_decode(bytes, &decoded), PARAMO_OK);
    return migration_decode(&decoded, &seg, m->bytes ? 1 : 0, got);
}

static void each_step_comes_as_it_was(void **state)
{
    (void)state;
    const struct migration_message steps[] = {
        {.seq = 1, .view = 9, .what = MIGRATION_STEP_BEGIN, .id = 7, .first = 3840, .partitions = 256},
        {.seq = 2, .view = 9, .what = MIGRATION_STEP_ROWS, .id = 7, .table = 3, .bytes = 100},
        {.seq = 3, .view = 10, .what = MIGRATION_STEP_FULL, .id = 7},
        {.seq = 4, .view = 10, .what = MIGRATION_STEP_RECORDS, .id = 7, .bytes = PARTITION_BITS / 8 + 8},
        {.seq = 5, .view = 10, .what = MIGRATION_STEP_NOTES, .id = 7, .bytes = 40},
        {.seq = 6, .view = 10, .what = MIGRATION_STEP_LOST, .id = 7, .table = 3, .bytes = PARTITION_BITS / 8},
        {.seq = 7, .view = 10, .what = MIGRATION_STEP_LAST, .id = 7, .bytes = 16},
    };
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (uint8_t)(i * 7);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct migration_message got;
        assert_int_equal(again(&steps[i], &got), PARAMO_OK);
        assert_int_equal(got.seq, steps[i].seq);
        assert_int_equal(got.view, steps[i].view);
        assert_int_equal(got.what, steps[i].what);
        assert_int_equal(got.id, 7);
        assert_int_equal(got.table, steps[i].table);
        assert_int_equal(got.first, steps[i].first);
        assert_int_equal(got.partitions, steps[i].partitions);
        if (got.what == MIGRATION_STEP_RECORDS) {
            assert_int_equal(got.bytes, 8);
            uint64_t partitions[PARTITION_BITS_WORDS];
            migration_records_partitions(&got, partitions);
            assert_int_equal(partitions[0] >> 8 & 0xff, 7); /* bits 8, 9, 10 */
        } else {
            assert_int_equal(got.bytes, steps[i].bytes);
        }
        if (got.what == MIGRATION_STEP_LAST)
            assert_int_equal(migration_order_of(&got, 1), UINT64_C(0x69625b544d463f38));
    }
}

static void what_is_wrong_is_refused(void **state)
{
    (void)state;
    const struct migration_message wrong[] = {
        {.seq = 0, .what = MIGRATION_STEP_FULL, .id = 7},
        {.seq = 1, .what = MIGRATION_STEP_FULL, .id = 0},
        {.seq = 1, .what = 0, .id = 7},
        {.seq = 1, .what = MIGRATION_STEP_LOST + 1, .id = 7},
        {.seq = 1, .what = MIGRATION_STEP_FULL, .id = 7, .bytes = 8},
        {.seq = 1, .what = MIGRATION_STEP_FULL, .id = 7, .first = 1, .partitions = 1},
        {.seq = 1, .what = MIGRATION_STEP_BEGIN, .id = 7},
        {.seq = 1, .what = MIGRATION_STEP_BEGIN, .id = 7, .first = 4095, .partitions = 2},
        {.seq = 1, .what = MIGRATION_STEP_BEGIN, .id = 7, .first = 4096, .partitions = 1},
        {.seq = 1, .what = MIGRATION_STEP_BEGIN, .id = 7, .partitions = 1, .bytes = 8},
        {.seq = 1, .what = MIGRATION_STEP_ROWS, .id = 7, .bytes = 8},             /* of no table */
        {.seq = 1, .what = MIGRATION_STEP_ROWS, .id = 7, .table = 1},             /* none */
        {.seq = 1, .what = MIGRATION_STEP_LAST, .id = 7, .table = 1, .bytes = 8}, /* of a table */
        {.seq = 1, .what = MIGRATION_STEP_LAST, .id = 7, .bytes = 9},
        {.seq = 1, .what = MIGRATION_STEP_RECORDS, .id = 7, .bytes = PARTITION_BITS / 8 - 1},
        {.seq = 1, .what = MIGRATION_STEP_LOST, .id = 7, .bytes = PARTITION_BITS / 8}, /* of no table */
        {.seq = 1, .what = MIGRATION_STEP_LOST, .id = 7, .table = 1, .bytes = PARTITION_BITS / 8 + 8},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct migration_message got;
        assert_int_equal(again(&wrong[i], &got), PARAMO_E_PROTOCOL);
    }
    const uint64_t orders[2] = {1, CHAIN_ORDER_MAX + 1}; /* the new owner would soon begin at 0 */
    struct writer w = {0};
    struct wire_head head;
    struct migration_message last = {.seq = 1, .what = MIGRATION_STEP_LAST, .id = 7}, got;
    migration_last_encode(orders, 2, &w);
    migration_head(&last, &head);
    struct van_seg seg = {.data = w.data, .len = 8};
    assert_int_equal(migration_decode(&head, &seg, 1, &got), PARAMO_OK);
    seg.len = 16;
    assert_int_equal(migration_decode(&head, &seg, 1, &got), PARAMO_E_PROTOCOL);
    writer_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_step_comes_as_it_was),
        cmocka_unit_test(what_is_wrong_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
