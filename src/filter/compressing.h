/*
 * What lz4 and zstd share: each segment of a message is compressed by itself if that saves bytes. Their params are
 * one byte with a bit for each compressed segment, and then the original length of each, a u32. It must never know a
 * compressor. Tests: test/filter/test_coding.c.
 */
#ifndef FILTER_COMPRESSING_H
#define FILTER_COMPRESSING_H

#include "filter/message.h"

struct compressor {
    size_t (*bound)(size_t bytes); /* of what `pack` may write */
    /* The bytes written; 0: it failed. */
    size_t (*pack)(struct filter_tools *tools, int level, const void *from, size_t bytes, void *to,
                   size_t room);
    /* True: exactly `want` bytes were written. `from` may be any bytes. */
    bool (*unpack)(struct filter_tools *tools, const void *from, size_t bytes, void *to, size_t want);
};

bool compressing_encode(const struct compressor *c, int level, struct filter_message *m,
                        struct writer *params);
MUST_USE paramo_err compressing_decode(const struct compressor *c, const char *name, struct reader *params,
                                       struct filter_message *m);

#endif
