#include "worker/chopping.h"

#include <assert.h>

#include "wire/key_range.h"
#include "worker/ending.h"
#include "worker/filtering.h"
#include "worker/sending.h"

void chunk_add_start(struct client *c, struct request *r, const struct span *s, int owner, int target)
{
    struct chunk *chunk = slice_chunk_add(c, r, s, target);
    if (chunk)
        slice_chunk_start(c, chunk, owner);
}

struct span span_sub(const struct span *s, size_t first, uint32_t count, uint64_t src_at, uint64_t src_bytes)
{
    assert(count > 0 && first + count <= s->count);
    uint64_t dst_row = s->dst_bytes / s->count;
    struct span sub = {
        .keys = s->keys ? s->keys + first : NULL,
        .begin = s->begin + first,
        .lens = s->lens ? s->lens + first : NULL,
        .src = s->src ? s->src + src_at : NULL,
        .dst = s->dst ? s->dst + first * dst_row : NULL,
        .index = s->index ? s->index + first : NULL,
        .first = s->first + first,
        .count = count,
        .columns = s->columns,
        .src_bytes = src_bytes,
        .dst_bytes = dst_row * count,
    };
    return sub;
}

/* One row after the other, or its part that is asked for, each split into columns. */
static void chop_rows(struct client *c, struct request *r, const struct span *s, int owner)
{
    assert(r->table->splittable && !s->lens && !s->index);
    assert(owner >= 0 && s->count > 0);
    uint32_t value = r->table->value_bytes, per = c->config.chunk_bytes / value;
    uint32_t dim = s->columns.count ? s->columns.count : r->table->row_values;
    for (uint32_t i = 0; i < s->count; i++) {
        for (uint32_t column = 0; column < dim && !r->ended; column += per) {
            uint32_t columns = dim - column < per ? dim - column : per;
            uint64_t at = ((uint64_t)i * dim + column) * value, bytes = (uint64_t)columns * value;
            struct span part = span_sub(s, i, 1, at, s->src ? bytes : 0);
            part.columns.first = s->columns.first + column;
            part.columns.count = columns;
            part.dst = s->dst ? s->dst + at : NULL;
            part.dst_bytes = s->dst ? bytes : 0;
            chunk_add_start(c, r, &part, owner, -1);
        }
    }
}

void chop(struct client *c, struct request *r, const struct span *s, int owner)
{
    assert(s->count > 0 && r->client == c);
    assert(owner >= 0 && (uint32_t)owner < c->view->shards_count);
    uint64_t dst_row = s->dst_bytes / s->count;
    uint32_t most = filtering_chunk_bytes(c, r);
    uint64_t bytes = 8 * (uint64_t)s->count + (s->src_bytes > s->dst_bytes ? s->src_bytes : s->dst_bytes);
    /* The rows that a function reads and changes do not travel, but a step of the server handles them. */
    uint64_t work =
        r->kind == REQUEST_TRANSFORM ? 2 * (uint64_t)r->table->row_values * r->table->value_bytes : 0;
    bytes += s->count * work;
    if (request_is_user(r)) {
        uint64_t all = bytes + (s->lens ? 4 * (uint64_t)s->count : 0) + VAN_HEADER_BYTES;
        if (all > c->config.frame_bytes) {
            (void)err_set(PARAMO_E_TOO_LARGE,
                          "the part for one server has %llu bytes, but a message holds at most %llu",
                          (unsigned long long)all, (unsigned long long)c->config.frame_bytes);
            request_end(r, PARAMO_E_TOO_LARGE, err_text());
            return;
        }
        chunk_add_start(c, r, s, owner, -1);
        return;
    }
    if (bytes <= most && !(r->range && s->count > KEY_RANGE_KEYS_MAX)) {
        chunk_add_start(c, r, s, owner, -1);
        return;
    }
    if (s->lens) {
        uint64_t at = 0;
        for (uint32_t first = 0; first < s->count && !r->ended;) {
            uint64_t sum = 0;
            uint32_t k = first;
            while (k < s->count && (k == first || sum + 12 * (uint64_t)(k - first) < most))
                sum += (uint64_t)s->lens[k++] * r->table->value_bytes;
            struct span sub = span_sub(s, first, k - first, at, sum);
            chunk_add_start(c, r, &sub, owner, -1);
            at += sum;
            first = k;
        }
        return;
    }
    uint64_t src_row_bytes = s->src_bytes / s->count;
    uint64_t row = src_row_bytes > dst_row ? src_row_bytes : dst_row;
    if (row > most && r->table->splittable && !s->index && r->kind <= REQUEST_PUSHPULL) {
        chop_rows(c, r, s, owner);
        return;
    }
    uint32_t per = (uint32_t)(most / (8 + row + work));
    if (!per)
        per = 1;
    if (r->range && per > KEY_RANGE_KEYS_MAX)
        per = KEY_RANGE_KEYS_MAX;
    for (uint32_t first = 0; first < s->count && !r->ended; first += per) {
        uint32_t count = s->count - first < per ? s->count - first : per;
        struct span sub = span_sub(s, first, count, first * src_row_bytes, count * src_row_bytes);
        chunk_add_start(c, r, &sub, owner, -1);
    }
}
