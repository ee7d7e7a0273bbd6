#include "wire/data.h"

#include "base/cursor.h"
#include "wire/reduction_body.h"
#include "wire/transform_body.h"

enum { KEYS_BLOCK = 512 }; /* keys whose order is checked together; arbitrary */

size_t data_keys_ascend(const uint64_t *keys, size_t n)
{
    for (size_t i = 1; i < n;) {
        size_t end = n - i > KEYS_BLOCK ? i + KEYS_BLOCK : n;
        /* Its upper bit: keys[j - 1] < keys[j] for all j. Processors without a comparison of 64 bits do this several
         * keys at a time (Warren, Hacker's Delight, 2-12). */
        uint64_t less = UINT64_MAX;
        for (size_t j = i; j < end; j++) {
            const uint64_t a = keys[j - 1], b = keys[j];
            less &= (~a & b) | (~(a ^ b) & (a - b));
        }
        if (!(less >> 63)) {
            while (keys[i - 1] < keys[i])
                i++;
            return i;
        }
        i = end;
    }
    return n;
}

static paramo_err check_len(const struct wire_head *h, const char *what, uint64_t len, uint64_t want)
{
    if (len != want)
        return err_set(PARAMO_E_PROTOCOL, "%s of %u keys has %llu bytes of %s, not %llu",
                       wire_kind_name(h->kind), h->count, (unsigned long long)len, what,
                       (unsigned long long)want);
    return PARAMO_OK;
}

/* Checks bounds only where a function of the application may follow, with its name and parameters: the decoder of the
 * body checks the exact length. */
static paramo_err check_body(const struct wire_head *h, uint64_t len)
{
    uint64_t least = h->kind == WIRE_REDUCE      ? REDUCTION_BODY_BYTES
                     : h->kind == WIRE_TRANSFORM ? TRANSFORM_BODY_BYTES
                                                 : 0;
    if (least && len > least && len <= least + USER_BODY_MAX)
        return PARAMO_OK;
    return check_len(h, "body", len, least);
}

static paramo_err check_columns(const struct wire_head *h)
{
    bool scan = h->kind == WIRE_SCAN;
    uint32_t count = scan ? h->scan_columns.count : h->columns.count;
    if (!count || (!scan && h->kind != WIRE_PUSH && h->kind != WIRE_PULL && h->kind != WIRE_PUSHPULL) ||
        (scan && h->flags & (WIRE_STATE | WIRE_KEYS)))
        return err_set(PARAMO_E_PROTOCOL, "%s with flags 0x%x cannot be of %u columns",
                       wire_kind_name(h->kind), h->flags, count);
    return PARAMO_OK;
}

paramo_err data_check_request(const struct wire_head *h, const struct van_seg *seg, unsigned nseg)
{
    uint64_t keys = data_seg_len(seg, nseg, WIRE_SEG_KEYS), lens = data_seg_len(seg, nseg, WIRE_SEG_LENS);
    uint64_t vals = data_seg_len(seg, nseg, WIRE_SEG_VALS), body = data_seg_len(seg, nseg, WIRE_SEG_BODY);
    const struct wire_message *message = &wire_messages[h->kind < WIRE_KINDS ? h->kind : 0];
    if (message->class != WIRE_CLASS_DATA)
        return err_set(PARAMO_E_PROTOCOL, "%s came instead of a request", wire_kind_name(h->kind));
    bool has_keys = h->kind != WIRE_MESSAGE && message->segs >> WIRE_SEG_KEYS & 1;
    bool has_vals = h->kind != WIRE_MESSAGE && message->segs >> WIRE_SEG_VALS & 1;
    if (h->floor == 0 || h->number < h->floor || h->number - h->floor >= DATA_WINDOW)
        return err_set(PARAMO_E_PROTOCOL, "%s has number %llu, which does not fit its floor %llu",
                       wire_kind_name(h->kind), (unsigned long long)h->number, (unsigned long long)h->floor);
    if (!has_keys && h->kind != WIRE_PROBE && h->count)
        return err_set(PARAMO_E_PROTOCOL, "%s has %u keys, but takes none", wire_kind_name(h->kind),
                       h->count);
    if (has_keys && h->count == 0)
        return err_set(PARAMO_E_PROTOCOL, "%s has no keys", wire_kind_name(h->kind));
    if (h->kind == WIRE_SCAN && h->count > 2)
        return err_set(PARAMO_E_PROTOCOL, "SCAN has %u keys instead of 1 or 2", h->count);
    if (h->kind == WIRE_MESSAGE)
        return h->flags ? err_set(PARAMO_E_PROTOCOL, "MESSAGE has flags 0x%x, but takes none", h->flags)
                        : PARAMO_OK;
    paramo_err err = check_len(h, "keys", keys, has_keys ? UINT64_C(8) * h->count : 0);
    if (!err)
        err = check_len(h, "lens", lens, has_vals && (h->flags & WIRE_LENS) ? UINT64_C(4) * h->count : 0);
    if (!err && !has_vals)
        err = check_len(h, "values", vals, 0);
    if (!err)
        err = check_body(h, body);
    if (!err && (h->flags & WIRE_COLUMNS))
        err = check_columns(h);
    if (!err && (h->flags & WIRE_CLOCKED) &&
        (h->kind == WIRE_PUSH ? !h->workers : h->kind != WIRE_PULL || h->workers))
        return err_set(PARAMO_E_PROTOCOL, "%s cannot have the clock of %u workers", wire_kind_name(h->kind),
                       h->workers);
    return err;
}

void data_stat_encode(const struct data_stat *stat, uint8_t out[DATA_STAT_BYTES])
{
    struct writer w = writer_over(out, DATA_STAT_BYTES);
    write_u64(&w, stat->rows);
    write_u64(&w, stat->nonzero);
    write_u64(&w, stat->bytes);
    write_u64(&w, stat->pushes);
    write_u64(&w, stat->pulls);
}

paramo_err data_stat_decode(const void *body, uint64_t len, struct data_stat *stat)
{
    struct reader r = reader_over(body, len);
    struct data_stat s = {.rows = read_u64(&r)};
    s.nonzero = read_u64(&r);
    s.bytes = read_u64(&r);
    s.pushes = read_u64(&r);
    s.pulls = read_u64(&r);
    if (!reader_done(&r))
        return err_set(PARAMO_E_PROTOCOL, "the statistics have %llu bytes, not %d", (unsigned long long)len,
                       DATA_STAT_BYTES);
    *stat = s;
    return PARAMO_OK;
}
