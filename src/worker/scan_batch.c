#include "worker/scan_batch.h"

#include <stdlib.h>
#include <string.h>

#include "wire/data.h"
#include "worker/check.h"

paramo_err scan_batch_grow(void *buffer, size_t *capacity, size_t bytes)
{
    void **p = buffer;
    if (bytes <= *capacity)
        return PARAMO_OK;
    void *grown = realloc(*p, bytes);
    if (!grown)
        return err_memory(bytes);
    *p = grown;
    *capacity = bytes;
    return PARAMO_OK;
}

paramo_err scan_receive(struct scan_batch *b, const struct client_table *table, const struct wire_head *h,
                        const struct van_seg *seg, unsigned nseg)
{
    uint64_t keys = data_seg_len(seg, nseg, WIRE_SEG_KEYS), lens = data_seg_len(seg, nseg, WIRE_SEG_LENS);
    uint64_t vals = data_seg_len(seg, nseg, WIRE_SEG_VALS);
    size_t n = h->count;
    uint64_t row = b->keys_only ? 0
                   : b->columns ? b->columns
                                : (uint64_t)table->row_values + (b->with_state ? table->state_values : 0);
    uint64_t want = n * row * table->value_bytes;
    bool var = table->row_values == 0 && !b->keys_only;
    if (var && lens == 4 * n) {
        check_sum(n ? seg[WIRE_SEG_LENS].data : NULL, n, &want);
        want *= table->value_bytes;
    }
    if (keys != 8 * n || lens != (var ? 4 * n : 0) || vals != want || (h->batch.more && !n))
        return err_set(PARAMO_E_PROTOCOL,
                       "a batch of %zu rows cannot have segments of %llu, %llu and %llu bytes", n,
                       (unsigned long long)keys, (unsigned long long)lens, (unsigned long long)vals);
    paramo_err err = scan_batch_grow(&b->keys, &b->capacity[0], keys);
    if (!err)
        err = scan_batch_grow(&b->lens, &b->capacity[1], lens);
    if (!err)
        err = scan_batch_grow(&b->vals, &b->capacity[2], vals);
    if (err)
        return err;
    if (n) {
        memcpy(b->keys, seg[WIRE_SEG_KEYS].data, keys);
        err = check_keys(b->keys, n);
        if (err || b->keys[0] < b->cursor)
            return err_set(PARAMO_E_PROTOCOL, "the rows of a batch are out of order");
    }
    if (lens)
        memcpy(b->lens, seg[WIRE_SEG_LENS].data, lens);
    if (vals)
        memcpy(b->vals, seg[WIRE_SEG_VALS].data, vals);
    b->n = n;
    b->vals_bytes = vals;
    b->more = h->batch.more != 0;
    return PARAMO_OK;
}
