#include "wire/row_block.h"

#include <stdlib.h>

enum { ROWS_MAX = 1 << 24 };

void row_block_head_encode(size_t n, size_t row_bytes, const uint64_t *keys, struct writer *w)
{
    write_u32(w, (uint32_t)n);
    write_u32(w, (uint32_t)row_bytes);
    for (size_t i = 0; i < n; i++)
        write_u64(w, keys[i]);
}

void row_block_lens_encode(const uint32_t *lens, size_t n, struct writer *w)
{
    for (size_t i = 0; i < n; i++)
        write_u32(w, lens[i]);
    if (n % 2)
        write_u32(w, 0);
}

void *row_block_values(struct writer *w, size_t len)
{
    if (w->failed || len > w->capacity - w->len) {
        size_t capacity = w->len + len;
        uint8_t *data = w->failed ? NULL : realloc(w->data, capacity);
        if (!data) {
            w->failed = true;
            return NULL;
        }
        w->data = data;
        w->capacity = capacity;
    }
    void *room = w->data + w->len;
    w->len += len;
    return room;
}

static paramo_err wrong(const char *what)
{
    return err_set(PARAMO_E_CORRUPT, "a block of rows is not valid: %s", what);
}

paramo_err row_block_decode(const void *payload, size_t bytes, struct row_block *m)
{
    struct reader r = reader_over(payload, bytes);
    *m = (struct row_block){.count = read_u32(&r)};
    m->row_bytes = read_u32(&r);
    if (r.failed || m->count > ROWS_MAX || r.left / 8 < m->count)
        return wrong("its number of rows is wrong");
    m->keys = malloc((m->count + 1) * sizeof *m->keys);
    if (!m->keys)
        return err_memory(m->count * sizeof *m->keys);
    for (uint32_t i = 0; i < m->count; i++)
        m->keys[i] = read_u64(&r);
    for (uint32_t i = 1; i < m->count; i++)
        if (m->keys[i] <= m->keys[i - 1])
            return wrong("its keys do not ascend");
    m->rest = r;
    return PARAMO_OK;
}

void row_block_lens_decode(struct row_block *m, uint32_t *lens)
{
    for (uint32_t i = 0; i < m->count + m->count % 2; i++)
        lens[i] = read_u32(&m->rest);
}
