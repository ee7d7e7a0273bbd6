/*
 * A cursor over bytes: every field of a message or file is read and written through it, little-endian, and
 * each access checks the length first. Errors are sticky: after the first short read or full buffer all later
 * calls do nothing, and the caller checks `failed` (or reader_done) once at the end. This module never knows
 * what the bytes mean. Tests: test/base/test_base.c.
 */
#ifndef BASE_CURSOR_H
#define BASE_CURSOR_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"

struct reader {
    const uint8_t *at;
    size_t left;
    bool failed;
};

/* A writer that owns its memory grows by realloc. A writer over a fixed array fails when the array is
 * full. */
struct writer {
    uint8_t *data;
    size_t len;
    size_t capacity;
    bool fixed;
    bool failed;
};

static inline struct reader reader_over(const void *data, size_t len)
{
    return (struct reader){.at = data, .left = len};
}

static inline struct writer writer_over(void *data, size_t capacity)
{
    return (struct writer){.data = data, .capacity = capacity, .fixed = true};
}

/* The functions of fixed size are inline: every frame's header goes through them, and the compiler then checks the
 * lengths of many fields at once. */

/* The next len bytes in place; NULL (and failed) if there are fewer. */
static inline const uint8_t *read_span(struct reader *r, size_t len)
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

/* Copies the next len bytes; zeros (and failed) if there are fewer. */
static inline void read_bytes(struct reader *r, void *dst, size_t len)
{
    const uint8_t *at = read_span(r, len);
    if (!len)
        return;
    if (at)
        memcpy(dst, at, len);
    else
        memset(dst, 0, len);
}

static inline uint8_t read_u8(struct reader *r)
{
    uint8_t v;
    read_bytes(r, &v, sizeof v);
    return v;
}

static inline uint16_t read_u16(struct reader *r)
{
    uint16_t v;
    read_bytes(r, &v, sizeof v);
    return le16toh(v);
}

static inline uint32_t read_u32(struct reader *r)
{
    uint32_t v;
    read_bytes(r, &v, sizeof v);
    return le32toh(v);
}

static inline uint64_t read_u64(struct reader *r)
{
    uint64_t v;
    read_bytes(r, &v, sizeof v);
    return le64toh(v);
}

float read_f32(struct reader *r);
double read_f64(struct reader *r);
/* Copies a string with a u16 length to dst and terminates it. Fails if it does not fit or contains a zero byte. */
void read_string(struct reader *r, char *dst, size_t capacity);
/* True if nothing failed and nothing is left over. */
static inline bool reader_done(const struct reader *r)
{
    return !r->failed && r->left == 0;
}

/* Room for len more bytes; false (and failed) if there is none. */
bool writer_room(struct writer *w, size_t len);

static inline void write_bytes(struct writer *w, const void *src, size_t len)
{
    if (w->failed || len == 0)
        return;
    if (len > w->capacity - w->len && !writer_room(w, len))
        return;
    memcpy(w->data + w->len, src, len);
    w->len += len;
}

static inline void write_u8(struct writer *w, uint8_t v)
{
    write_bytes(w, &v, sizeof v);
}

static inline void write_u16(struct writer *w, uint16_t v)
{
    v = htole16(v);
    write_bytes(w, &v, sizeof v);
}

static inline void write_u32(struct writer *w, uint32_t v)
{
    v = htole32(v);
    write_bytes(w, &v, sizeof v);
}

static inline void write_u64(struct writer *w, uint64_t v)
{
    v = htole64(v);
    write_bytes(w, &v, sizeof v);
}

void write_f32(struct writer *w, float v);
void write_f64(struct writer *w, double v);
void write_string(struct writer *w, const char *s);
/* Frees what a growing writer owns. */
void writer_fini(struct writer *w);

#endif
