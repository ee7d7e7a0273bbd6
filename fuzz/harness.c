#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "paramo/paramo.h"

_Noreturn void harness_fail(const char *file, int line, const char *condition)
{
    char text[512];
    int n = snprintf(text, sizeof text, "%s:%d: CHECK failed: %s\n", file, line, condition);
    ssize_t wrote = write(STDERR_FILENO, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
    (void)wrote;
    abort();
}

uint8_t draw_u8(struct source *s)
{
    if (!s->left)
        return 0;
    s->left--;
    return *s->at++;
}

uint16_t draw_u16(struct source *s)
{
    uint16_t low = draw_u8(s);
    return (uint16_t)(low | draw_u8(s) << 8);
}

uint32_t draw_u32(struct source *s)
{
    uint32_t low = draw_u16(s);
    return low | (uint32_t)draw_u16(s) << 16;
}

uint64_t draw_u64(struct source *s)
{
    uint64_t low = draw_u32(s);
    return low | (uint64_t)draw_u32(s) << 32;
}

uint32_t draw_below(struct source *s, uint32_t n)
{
    return (n > 256 ? draw_u32(s) : draw_u8(s)) % n;
}

uint64_t draw_number(struct source *s)
{
    uint8_t how = draw_u8(s);
    if (how < 0xe0)
        return how;
    if (how < 0xf0) /* a power of two, or one less or more */
        return (UINT64_C(1) << (draw_u8(s) & 63)) + how % 3 - 1;
    return how < 0xf8 ? draw_u16(s) : how < 0xfc ? draw_u32(s) : draw_u64(s);
}

uint8_t *draw_bytes(struct source *s, size_t n, size_t *got)
{
    n = n < s->left ? n : s->left;
    uint8_t *bytes = harness_alloc(n);
    memcpy(bytes, s->at, n);
    s->at += n;
    s->left -= n;
    *got = n;
    return bytes;
}

void draw_text(struct source *s, char *text, size_t capacity)
{
    size_t len = draw_u8(s), at = 0;
    for (; at < len && at + 1 < capacity && s->left; at++) {
        uint8_t c = draw_u8(s);
        text[at] = (char)(c ? c : 'a');
    }
    text[at] = '\0';
}

static void silent(void *arg, int level, const char *line)
{
    (void)arg, (void)level, (void)line;
}

void harness_quiet(void)
{
    paramo_log_sink(silent, NULL);
}

void *harness_alloc(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p)
        abort();
    return p;
}

void harness_file_open(struct harness_file *file, const void *bytes, size_t len)
{
    file->fd = memfd_create("fuzz", MFD_CLOEXEC);
    CHECK(file->fd >= 0);
    for (size_t at = 0; at < len;) {
        ssize_t wrote = write(file->fd, (const char *)bytes + at, len - at);
        CHECK(wrote > 0);
        at += (size_t)wrote;
    }
    (void)snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->fd);
}

void harness_file_close(struct harness_file *file)
{
    (void)close(file->fd);
}
