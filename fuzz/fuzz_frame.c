/* The frame header, the head in it, and the check of a data request: what decodes is encoded again to the
 * same bytes, and what the check lets pass is no longer than its segments. */
#include <stdlib.h>
#include <string.h>

#include "fakevan.h"
#include "harness.h"
#include "wire/data.h"
#include "wire/key_range.h"
#include "wire/reduction_body.h"
#include "wire/transform_body.h"

static void van_header(const uint8_t *data, size_t size)
{
    uint8_t bytes[VAN_HEADER_BYTES] = {0}, again[VAN_HEADER_BYTES];
    struct source s = {data, size};
    bool repair = draw_u8(&s) & 1; /* a right checksum gets further */
    uint64_t limit = draw_number(&s);
    struct van_header h;
    struct van_frame f = {.nseg = 0};
    memcpy(bytes, s.at, s.left < sizeof bytes ? s.left : sizeof bytes);
    if (repair) {
        memcpy(f.head, bytes + VAN_HEADER_BYTES - VAN_HEAD, VAN_HEAD);
        f.nseg = bytes[5];
        f.class = bytes[6];
        struct source lens = {bytes + 16, 32};
        for (unsigned i = 0; i < VAN_SEGS; i++)
            f.seg[i].len = draw_u64(&lens);
        if (f.nseg > VAN_SEGS)
            return;
        van_header_encode(&f, bytes);
    }
    if (van_header_decode(bytes, limit, &h))
        return;
    uint64_t sum = 0;
    f = (struct van_frame){.nseg = (uint8_t)h.nseg, .class = h.class};
    memcpy(f.head, h.head, VAN_HEAD);
    CHECK(h.nseg <= VAN_SEGS && h.class < VAN_CLASSES);
    for (unsigned i = 0; i < h.nseg; i++) {
        f.seg[i].len = h.len[i];
        CHECK(h.len[i] <= limit);
        sum += van_padded(h.len[i]);
    }
    CHECK(sum == h.padded);
    CHECK(van_frame_check(f.seg, h.nseg, limit) == PARAMO_OK);
    van_header_encode(&f, again);
    CHECK(memcmp(bytes, again, sizeof bytes) == 0);
}

static void wire_header(const uint8_t *data, size_t size)
{
    uint8_t bytes[VAN_HEAD] = {0}, again[VAN_HEAD];
    struct wire_head h;
    struct van_seg seg[VAN_SEGS] = {{0}};
    struct source s = {data, size};
    unsigned nseg = draw_below(&s, VAN_SEGS + 1);
    for (unsigned i = 0; i < nseg; i++)
        seg[i].len = draw_number(&s);
    memcpy(bytes, s.at, s.left < sizeof bytes ? s.left : sizeof bytes);
    if (wire_head_decode(bytes, &h))
        return;
    wire_head_encode(&h, again);
    CHECK(memcmp(bytes, again, sizeof bytes) == 0);
    CHECK(strcmp(wire_kind_name(h.kind), "unknown") != 0);
    if (data_check_request(&h, seg, nseg))
        return;
    CHECK(h.number >= h.floor && h.number - h.floor < DATA_WINDOW);
    if (h.kind == WIRE_MESSAGE) { /* its segments are the application's, of any length */
        CHECK(h.flags == 0 && h.count == 0);
        return;
    }
    uint64_t keys = data_seg_len(seg, nseg, WIRE_SEG_KEYS), lens = data_seg_len(seg, nseg, WIRE_SEG_LENS);
    CHECK(keys == 0 || keys == UINT64_C(8) * h.count);
    CHECK(lens == 0 || lens == UINT64_C(4) * h.count);
}

static void transforms(const uint8_t *data, size_t size)
{
    uint8_t again[TRANSFORM_BODY_MAX];
    struct transform what;
    if (transform_decode(data, size, &what))
        return;
    CHECK(size == transform_body_bytes(&what));
    transform_encode(&what, again);
    CHECK(memcmp(data, again, size) == 0);
}

/* Keys that bits or nothing but the first one stand for come back the same. */
static void key_ranges(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    uint32_t count = draw_below(&s, 4) ? draw_below(&s, 300) : (uint32_t)draw_number(&s);
    uint64_t *keys = harness_alloc(8 * (size_t)(count < KEY_RANGE_KEYS_MAX ? count : KEY_RANGE_KEYS_MAX));
    if (key_range_decode(s.at, s.left, count, keys) == PARAMO_OK) {
        CHECK(count && data_keys_ascend(keys, count) == count);
        uint64_t last = keys[count - 1] - keys[0];
        CHECK(s.left == (s.left == KEY_RANGE_BYTES ? 8 : 16 + last / 64 * 8));
        size_t bytes = key_range_bytes(keys, count);
        uint8_t *again = harness_alloc(bytes);
        if (bytes)
            key_range_encode(keys, count, again);
        CHECK(s.left == KEY_RANGE_BYTES || !bytes || (bytes == s.left && memcmp(s.at, again, bytes) == 0));
        free(again);
    }
    free(keys);
}

/* What a reduction asks for, and what is found of it. */
static void reductions(const uint8_t *data, size_t size)
{
    uint8_t again[REDUCTION_BODY_MAX];
    struct reduction what;
    struct reduced found;
    size_t asked = size < REDUCTION_BODY_BYTES ? size : REDUCTION_BODY_BYTES;
    if (size && data[0] == PARAMO_REDUCE_USER)
        asked = size; /* of a function that this process does not have */
    if (reduction_decode(data, asked, &what))
        return;
    CHECK(asked == reduction_body_bytes(&what));
    reduction_encode(&what, again);
    CHECK(memcmp(data, again, asked) == 0);
    if (what.function == PARAMO_REDUCE_USER) {
        CHECK(reduced_init(&found, &what) == PARAMO_E_UNSUPPORTED);
        return;
    }
    CHECK(!reduced_init(&found, &what));
    if (!reduced_decode(data + asked, size - asked, &found)) {
        uint8_t *bytes = harness_alloc(reduced_body_bytes(&found));
        CHECK(reduced_body_bytes(&found) == size - asked);
        reduced_encode(&found, bytes);
        CHECK(memcmp(data + asked, bytes, size - asked) == 0);
        free(bytes);
    }
    reduced_fini(&found);
}

static void statistics(const uint8_t *data, size_t size)
{
    reductions(data, size);
    transforms(data, size);
    key_ranges(data, size);
    uint8_t again[DATA_STAT_BYTES];
    struct data_stat stat;
    if (data_stat_decode(data, size, &stat))
        return;
    data_stat_encode(&stat, again);
    CHECK(size == sizeof again && memcmp(data, again, size) == 0);
}

static void keys_ascend(const uint8_t *data, size_t size)
{
    size_t n = size / 8, at = n > 1 ? 1 : n;
    uint64_t *keys = harness_alloc(n * 8);
    memcpy(keys, data, n * 8);
    while (at < n && keys[at - 1] < keys[at])
        at++;
    CHECK(data_keys_ascend(keys, n) == at);
    free(keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const all[])(const uint8_t *, size_t) = {van_header, wire_header, statistics, keys_ascend};
    if (size)
        all[data[0] % 4](data + 1, size - 1);
    return 0;
}
