#include "base/cursor.h"

#include <stdlib.h>

float read_f32(struct reader *r)
{
    uint32_t bits = read_u32(r);
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

double read_f64(struct reader *r)
{
    uint64_t bits = read_u64(r);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

void read_string(struct reader *r, char *dst, size_t capacity)
{
    size_t len = read_u16(r);
    const uint8_t *at = read_span(r, len);
    dst[0] = '\0';
    if (!at || len >= capacity || memchr(at, 0, len)) {
        r->failed = true;
        return;
    }
    memcpy(dst, at, len);
    dst[len] = '\0';
}

bool writer_room(struct writer *w, size_t len)
{
    size_t capacity = w->capacity ? w->capacity : 64;
    while (capacity - w->len < len)
        capacity *= 2;
    uint8_t *data = w->fixed ? NULL : realloc(w->data, capacity);
    if (!data) {
        w->failed = true;
        return false;
    }
    w->data = data;
    w->capacity = capacity;
    return true;
}

void write_f32(struct writer *w, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    write_u32(w, bits);
}

void write_f64(struct writer *w, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    write_u64(w, bits);
}

void write_string(struct writer *w, const char *s)
{
    size_t len = strlen(s);
    if (len > UINT16_MAX) {
        w->failed = true;
        return;
    }
    write_u16(w, (uint16_t)len);
    write_bytes(w, s, len);
}

void writer_fini(struct writer *w)
{
    if (!w->fixed)
        free(w->data);
    *w = (struct writer){0};
}
