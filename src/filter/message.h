/*
 * A message while filters change it: its segments, the facts that filters need, and the memory that they take. A
 * filter replaces a segment by bytes in memory of the message, or by bytes that live longer than the message. The
 * owner of the message frees all of its memory at once. It must never know frames or connections. Tests:
 * test/filter/test_coding.c.
 */
#ifndef FILTER_MESSAGE_H
#define FILTER_MESSAGE_H

#include "base/bufpool.h"
#include "filter/filter.h"
#include "filter/keylists.h"
#include "wire/data.h"

enum { FILTER_SEGS = 3, FILTER_BLOCKS = 16 };

/* The memory of one message: blocks of a pool. */
struct filter_memory {
    struct bufpool *pool;
    unsigned count;
    struct {
        void *data;
        size_t bytes;
    } block[FILTER_BLOCKS];
};

/* NULL: there is no memory. */
void *filter_memory_take(struct filter_memory *memory, size_t bytes);
void filter_memory_give(struct filter_memory *memory);

/* Working memory of compressors; one for each lane that filters. */
struct filter_tools {
    void *zstd_out, *zstd_in;
};
void filter_tools_fini(struct filter_tools *tools);

struct filter_message {
    enum filter_use use;
    struct van_seg seg[FILTER_SEGS]; /* WIRE_SEG_KEYS, LENS, VALS; without bytes: data is NULL */
    uint32_t table, count;           /* table: its id; count: keys */
    const uint64_t *keys;            /* an answer: of its request; NULL: not known */
    /* encode: of the values. row_bytes 0: rows have their own lengths */
    paramo_dtype dtype;
    uint32_t value_bytes, row_bytes;
    struct keylists *lists; /* of this end of the connection; NULL: none */
    /* The list of these keys, as soon as a filter has looked for it. refers: the message names or brings it. brings:
     * the other end does not have it yet. */
    struct keylist *list;
    bool looked, refers, brings;
    bool coded;                  /* encode: the values are bytes that a filter has made of them */
    const struct filter_ops *by; /* decode: the filter that is called */
    struct filter_tools *tools;
    struct filter_memory memory;
};

/* The list of the message's keys; looks for it once. NULL: there is none. */
struct keylist *filter_message_list(struct filter_message *m);

#endif
