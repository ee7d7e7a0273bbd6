/* A file as it is read: plain, gzip or zstd, whole or damaged, cut into parts at line boundaries. The parts
 * together are the text, read in order or out of it. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "learn/data/stream.h"
#include "learn/io/input.h"

enum { TEXT_MAX = 1 << 20 };

/* The whole text, or NULL if it cannot be read to its end or is too long. */
static char *read_all(const char *path, size_t step, size_t *len)
{
    struct input *input;
    if (input_open(path, -1, &input))
        return NULL;
    char *text = harness_alloc(TEXT_MAX);
    size_t got = 1;
    const char *head;
    size_t head_len = 0;
    int whole;
    paramo_err err = input_head(input, &head, &head_len, &whole);
    char *first = harness_alloc(head_len);
    if (!err)
        memcpy(first, head, head_len);
    for (*len = 0; !err && got && *len < TEXT_MAX; *len += got) {
        err = input_read(input, text + *len, step < TEXT_MAX - *len ? step : TEXT_MAX - *len, &got);
        CHECK(err || got <= step);
        if (err)
            got = 0;
    }
    bool bad = err || got;
    if (!bad)
        CHECK(head_len <= *len && memcmp(first, text, head_len) == 0);
    input_close(input);
    free(first);
    if (bad) {
        free(text);
        return NULL;
    }
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    struct harness_file file;
    struct stream_recent *recent;
    struct stream *stream;
    size_t step = 1 + draw_u16(&s), part = 16 + (size_t)draw_u8(&s) * 16, len;
    bool backwards = draw_u8(&s) & 1;
    const _Atomic int stop = 0;
    harness_quiet();
    harness_file_open(&file, s.at, s.left);
    char *text = read_all(file.path, step, &len);
    CHECK(stream_recent_open(&recent) == PARAMO_OK);
    if (stream_open(file.path, part, recent, -1, &stop, &stream) == PARAMO_OK) {
        struct stream_text t = {0};
        size_t at = 0, parts = 0;
        int ended = 0;
        paramo_err err = PARAMO_OK;
        for (; !err && !ended && at <= TEXT_MAX && parts < 4096; parts++) {
            err = stream_part(stream, parts, &t, &ended);
            if (err || ended)
                break;
            if (text) {
                CHECK(t.len <= len - at && (!t.len || memcmp(text + at, t.data, t.len) == 0));
                CHECK(!t.len || t.data[t.len] == '\n');
            }
            at += t.len;
        }
        if (text && ended)
            CHECK(at == len);
        if (text && parts < 4096)
            CHECK(!err && ended);
        for (size_t i = parts < 16 ? parts : 16; backwards && text && i-- > 0;) {
            CHECK(stream_part(stream, i, &t, &ended) == PARAMO_OK);
            CHECK(!ended);
        }
        stream_text_free(&t);
        stream_close(stream);
    }
    stream_recent_close(recent);
    free(text);
    harness_file_close(&file);
    return 0;
}
