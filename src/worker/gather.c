#include <assert.h>
#include <string.h>

#include "worker/client_impl.h"
#include "worker/gather.h"

/* Rows from one slice of memory to their places in another. Objective: dst[index[i]] = src[i]. */
static void rows_scatter(uint8_t *dst, const uint8_t *src, const uint32_t *index, uint32_t count,
                         uint64_t row)
{
    if (row == 4) {
        for (uint32_t i = 0; i < count; i++)
            memcpy(dst + 4 * (size_t)index[i], src + 4 * (size_t)i, 4);
    } else if (row == 8) {
        for (uint32_t i = 0; i < count; i++)
            memcpy(dst + 8 * (size_t)index[i], src + 8 * (size_t)i, 8);
    } else {
        for (uint32_t i = 0; i < count; i++)
            memcpy(dst + row * index[i], src + row * i, row);
    }
}

void gather_split(struct chunk *chunk)
{
    if (!chunk->span.dst)
        return;
    uint64_t row = chunk->span.dst_bytes / chunk->span.count;
    for (uint32_t i = 0; i < chunk->count; i++) {
        const struct span *s = &chunk->split[i].span;
        assert(s->dst_bytes == row * s->count && s->index);
        rows_scatter(chunk->span.dst, s->dst, s->index, s->count, row);
    }
}

void gather_chunk(struct chunk *chunk)
{
    const struct span *s = &chunk->span;
    assert(s->index && s->dst && !chunk->unanswered);
    rows_scatter(chunk->request->dst, s->dst, s->index, s->count, s->dst_bytes / s->count);
}

/* Place in the request of key i of a slice. */
static size_t place_of(const struct chunk *chunk, const struct span *s, uint32_t i)
{
    size_t k = s == &chunk->span ? i : s->index[i]; /* in the chunk */
    return chunk->span.index ? chunk->span.index[k] : chunk->span.first + k;
}

static const struct slice *slice_values(const struct chunk *chunk, uint32_t i)
{
    return chunk->split ? &chunk->split[i].slice : &chunk->one;
}

paramo_err gather_lens(struct request *r)
{
    struct client *c = r->client;
    uint64_t value = r->table->value_bytes, total = 0;
    size_t bytes = r->n * sizeof(uint64_t);
    uint64_t *at = bufpool_get(&c->pool, bytes);
    if (!at)
        return err_memory(bytes);
    /* 1. lengths to their places; 2. where each row begins; 3. rows */
    for (const struct chunk *chunk = r->chunks; chunk; chunk = chunk->next) {
        for (uint32_t p = 0; p < chunk->count; p++) {
            const struct slice *slice = slice_values(chunk, p);
            assert(slice->state == SLICE_ANSWERED && slice->lens);
            for (uint32_t i = 0; i < slice->span->count; i++)
                r->dst_lens[place_of(chunk, slice->span, i)] = slice->lens[i];
        }
    }
    for (size_t i = 0; i < r->n; i++) {
        at[i] = total;
        total += r->dst_lens[i];
    }
    if (total > r->dst_len) {
        bufpool_put(&c->pool, at, bytes);
        return err_set(PARAMO_E_SIZE_MISMATCH, "the rows hold %llu values, but there is room for %zu",
                       (unsigned long long)total, r->dst_len);
    }
    for (const struct chunk *chunk = r->chunks; chunk; chunk = chunk->next) {
        for (uint32_t p = 0; p < chunk->count; p++) {
            const struct slice *slice = slice_values(chunk, p);
            const uint8_t *from = slice->vals;
            for (uint32_t i = 0; i < slice->span->count; i++) {
                uint64_t len = slice->lens[i] * value;
                if (!len) /* and if all are empty, there are no values */
                    continue;
                memcpy(r->dst + at[place_of(chunk, slice->span, i)] * value, from, len);
                from += len;
            }
        }
    }
    bufpool_put(&c->pool, at, bytes);
    return PARAMO_OK;
}
