/* The header byte by byte, the table of messages, and which flags and segments a kind may have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "wire/head.h"
#include "wire/hello.h"

static void test_bytes(void **state)
{
    (void)state;
    /* The layout is the protocol: docs/PROTOCOL.md. */
    struct wire_head h = {.kind = WIRE_PUSH,
                          .flags = WIRE_LENS | WIRE_COLUMNS,
                          .status = 0x0102,
                          .table = 0x03040506,
                          .number = 0x1112131415161718,
                          .floor = 0x2122232425262728,
                          .ts = 0x3132333435363738,
                          .view = 0x4142434445464748,
                          .attempt = 0x51525354,
                          .slice = 0x61626364,
                          .cmd = -2,
                          .count = 0x71727374,
                          .columns = {0x01828384, 0x01929394}};
    static const uint8_t want[VAN_HEAD] = {
        32,   9,    0x02, 0x01, 0x06, 0x05, 0x04, 0x03, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
        0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21, 0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31,
        0x48, 0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41, 0x54, 0x53, 0x52, 0x51, 0x64, 0x63, 0x62, 0x61,
        0xfe, 0xff, 0xff, 0xff, 0x74, 0x73, 0x72, 0x71, 0x84, 0x83, 0x82, 0x01, 0x94, 0x93, 0x92, 0x01};
    uint8_t got[VAN_HEAD];
    memset(got, 0xaa, sizeof got);
    wire_head_encode(&h, got);
    assert_memory_equal(got, want, sizeof want);
    struct wire_head back;
    memset(&back, 0xaa, sizeof back);
    assert_int_equal(wire_head_decode(got, &back), PARAMO_OK);
    uint8_t again[VAN_HEAD];
    wire_head_encode(&back, again);
    assert_memory_equal(again, want, sizeof want);
    assert_int_equal(back.cmd, -2);
}

static void test_bytes_of_a_scan_of_columns(void **state)
{
    (void)state;
    struct wire_head h = {.kind = WIRE_SCAN,
                          .flags = WIRE_COLUMNS,
                          .scan = {.most = 0x01828384, .id = 0x81929394},
                          .scan_columns = {.first = 0x01020304, .count = 0x05060708}},
                     back;
    static const uint8_t want[16] = {0x84, 0x83, 0x82, 0x01, 0x94, 0x93, 0x92, 0x81,
                                     0x04, 0x03, 0x02, 0x01, 0x08, 0x07, 0x06, 0x05};
    uint8_t got[VAN_HEAD];
    wire_head_encode(&h, got);
    assert_memory_equal(got + 56, want, sizeof want);
    assert_int_equal(wire_head_decode(got, &back), PARAMO_OK);
    assert_true(back.scan_columns.first == 0x01020304 && back.scan_columns.count == 0x05060708);
    got[1] = 0; /* without the flag the fields are zero */
    assert_int_equal(wire_head_decode(got, &back), PARAMO_E_PROTOCOL);
}

static void test_refused(void **state)
{
    (void)state;
    struct wire_head h = {.kind = WIRE_PULL}, back;
    uint8_t bytes[VAN_HEAD];
    for (unsigned kind = 0; kind < 256; kind++) {
        wire_head_encode(&h, bytes);
        bytes[0] = (uint8_t)kind;
        bool known = strcmp(wire_kind_name(kind), "unknown") != 0;
        assert_int_equal(wire_head_decode(bytes, &back), known ? PARAMO_OK : PARAMO_E_PROTOCOL);
    }
    for (unsigned at = 64; at < VAN_HEAD; at++) {
        wire_head_encode(&h, bytes);
        bytes[at] = 1;
        bool epoch = at == 72 || at == 73;
        assert_int_equal(wire_head_decode(bytes, &back), epoch ? PARAMO_OK : PARAMO_E_PROTOCOL);
    }
}

/* Which messages may have a clock. Without the flag its fields are zero. */
static void test_clocked(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < WIRE_KINDS; kind++) {
        struct wire_head h = {.plain = {.kind = (uint8_t)kind}}, back;
        uint8_t bytes[VAN_HEAD];
        if (!wire_messages[kind].name)
            continue;
        bool may = kind == WIRE_PUSH || kind == WIRE_PULL || kind == WIRE_CHAIN;
        wire_head_encode(&h, bytes);
        bytes[1] = WIRE_CLOCKED;
        bytes[64] = 3, bytes[71] = 4, bytes[76] = 5, bytes[79] = 6;
        assert_int_equal(wire_head_decode(bytes, &back), may ? PARAMO_OK : PARAMO_E_PROTOCOL);
        if (may) {
            assert_true(back.clock == (UINT64_C(4) << 56 | 3) && back.workers == (UINT32_C(6) << 24 | 5));
            bytes[1] = 0;
            assert_int_equal(wire_head_decode(bytes, &back), PARAMO_E_PROTOCOL);
        }
    }
}

/* Which messages may be filtered or have a range of keys, and which have an epoch of filters. */
static void test_filtered(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < WIRE_KINDS; kind++) {
        const struct wire_message *m = &wire_messages[kind];
        struct wire_head h = {.plain = {.kind = (uint8_t)kind}}, back;
        uint8_t bytes[VAN_HEAD];
        if (!m->name)
            continue;
        bool may = kind == WIRE_PUSH || kind == WIRE_PULL || kind == WIRE_PUSHPULL || kind == WIRE_ANSWER;
        bool epoch = m->class == WIRE_CLASS_DATA || kind == WIRE_PROBE_ANSWER;
        wire_head_encode(&h, bytes);
        bytes[1] = WIRE_FILTERED;
        assert_int_equal(wire_head_decode(bytes, &back), may ? PARAMO_OK : PARAMO_E_PROTOCOL);
        bytes[1] = WIRE_RANGE;
        bool range = may && kind != WIRE_ANSWER;
        assert_int_equal(wire_head_decode(bytes, &back), range ? PARAMO_OK : PARAMO_E_PROTOCOL);
        wire_head_encode(&h, bytes);
        bytes[72] = 1, bytes[73] = 2;
        assert_int_equal(wire_head_decode(bytes, &back), epoch ? PARAMO_OK : PARAMO_E_PROTOCOL);
        if (epoch)
            assert_int_equal(back.filter_epoch, 0x201);
    }
    struct wire_head h = {.kind = WIRE_PULL, .flags = WIRE_FILTERED}, back;
    struct van_seg seg[VAN_SEGS] = {{0}};
    uint8_t bytes[VAN_HEAD], data[8] = {0};
    seg[WIRE_SEG_BODY] = (struct van_seg){.data = data, .len = 8}; /* the envelope */
    wire_head_encode(&h, bytes);
    assert_int_equal(wire_open(bytes, seg, VAN_SEGS, &back), PARAMO_OK);
    seg[WIRE_SEG_VALS] = (struct van_seg){.data = data, .len = 8};
    assert_int_equal(wire_open(bytes, seg, VAN_SEGS, &back), PARAMO_E_PROTOCOL);
}

/* Each message of the table has a name, a class and a layout, and may be spoken. */
static void test_table(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < WIRE_KINDS; kind++) {
        const struct wire_message *m = &wire_messages[kind];
        if (!m->name)
            continue;
        assert_string_equal(wire_kind_name(kind), m->name);
        assert_in_range(m->class, WIRE_CLASS_CONNECTION, WIRE_CLASS_CHAIN);
        assert_in_range(m->from, WIRE_CONNECTOR, WIRE_SUCCESSOR);
        assert_in_range(m->to, WIRE_CONNECTOR, WIRE_SUCCESSOR);
        assert_in_range(m->layout, LAYOUT_request, LAYOUT_migration);
        assert_in_range(m->since, 1, HELLO_VERSION_MAX);
        assert_int_equal(m->class == WIRE_CLASS_DATA || m->class == WIRE_CLASS_FLOOR,
                         m->from == WIRE_CLIENT && m->to == WIRE_SHARD);
    }
    assert_string_equal(wire_kind_name(WIRE_CHAIN_BEAT), "CHAIN_BEAT");
    assert_string_equal(wire_kind_name(WIRE_KINDS), "unknown");
}

/* A frame is refused if it has a segment that its kind does not have. */
static void test_segments(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < WIRE_KINDS; kind++) {
        struct wire_head h = {.plain = {.kind = (uint8_t)kind}}, got;
        uint8_t bytes[VAN_HEAD], data[8] = {0};
        if (!wire_messages[kind].name)
            continue;
        wire_head_encode(&h, bytes);
        for (unsigned i = 0; i < VAN_SEGS; i++) {
            struct van_seg seg[VAN_SEGS] = {{0}};
            assert_int_equal(wire_open(bytes, seg, i + 1, &got), PARAMO_OK);
            seg[i] = (struct van_seg){.data = data, .len = 8};
            bool may = wire_messages[kind].segs >> i & 1;
            assert_int_equal(wire_open(bytes, seg, i + 1, &got), may ? PARAMO_OK : PARAMO_E_PROTOCOL);
        }
    }
    assert_int_equal(wire_messages[WIRE_PULL].segs, 1 << WIRE_SEG_KEYS);
    assert_int_equal(wire_messages[WIRE_FLOOR].segs, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),    cmocka_unit_test(test_bytes_of_a_scan_of_columns),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_table),
        cmocka_unit_test(test_segments), cmocka_unit_test(test_filtered),
        cmocka_unit_test(test_clocked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
