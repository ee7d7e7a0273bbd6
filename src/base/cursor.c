#include "base/cursor.h"

#include <endian.h>
#include <stdlib.h>

const uint8_t *read_span(struct reader *r, size_t len)
{
    if (r->failed || r->left < len) {
        r->failed = true;
        return NULL;
    }
    const uint8_t *at = r->at;
    r->at += len;
    r->left -= len;
    return at;
}

void read_bytes(struct reader *r, void *dst, size_t len)
{
    const uint8_t *at = read_span(r, len);
    if (!len)
        return;
    if (at)
        memcpy(dst, at, len);
    else
        memset(dst, 0, len);
}

uint8_t read_u8(struct reader *r)
{
    uint8_t v;
    read_bytes(r, &v, sizeof v);
    return v;
}

uint16_t read_u16(struct reader *r)
{
    uint16_t v;
    read_bytes(r, &v, sizeof v);
    return le16toh(v);
}

uint32_t read_u32(struct reader *r)
{
    uint32_t v;
    read_bytes(r, &v, sizeof v);
    return le32toh(v);
}

uint64_t read_u64(struct reader *r)
{
    uint64_t v;
    read_bytes(r, &v, sizeof v);
    return le64toh(v);
}

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

void write_bytes(struct writer *w, const void *src, size_t len)
{
    if (w->failed || len == 0)
        return;
    if (len > w->capacity - w->len) {
        size_t capacity = w->capacity ? w->capacity : 64;
        while (capacity - w->len < len)
            capacity *= 2;
        uint8_t *data = w->fixed ? NULL : realloc(w->data, capacity);
        if (!data) {
            w->failed = true;
            return;
        }
        w->data = data;
        w->capacity = capacity;
    }
    memcpy(w->data + w->len, src, len);
    w->len += len;
}

void write_u8(struct writer *w, uint8_t v)
{
    write_bytes(w, &v, sizeof v);
}

void write_u16(struct writer *w, uint16_t v)
{
    v = htole16(v);
    write_bytes(w, &v, sizeof v);
}

void write_u32(struct writer *w, uint32_t v)
{
    v = htole32(v);
    write_bytes(w, &v, sizeof v);
}

void write_u64(struct writer *w, uint64_t v)
{
    v = htole64(v);
    write_bytes(w, &v, sizeof v);
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
