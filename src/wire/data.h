/*
 * Data messages: which segments each kind has and how long they must be, for both ends. Segments are keys,
 * lens, values, body (head.h). Errors travel as a status and a text in the body.
 *
 *     PUSH, PUT          keys, [lens], values      ANSWER: nothing
 *     PULL               keys                      ANSWER: [lens], values
 *     PUSHPULL           keys, [lens], values      ANSWER: [lens], values
 *     DELETE             keys                      ANSWER: nothing
 *     CLEAR              nothing                   ANSWER: nothing
 *     PROBE              nothing                   PROBE_ANSWER: nothing
 *     STAT               nothing                   ANSWER: body, five u64
 *     SCAN               the first key, [the last] ANSWER: keys, [lens], values
 *     REDUCE             body (reduction_body.h)   ANSWER: body
 *     TRANSFORM          keys, body                ANSWER: nothing
 *     MESSAGE            any of the four           ANSWER: any of the four
 *
 * It never knows tables: the length of values is checked where the table is. Tests:
 * test/wire/test_data.c.
 */
#ifndef WIRE_DATA_H
#define WIRE_DATA_H

#include <stddef.h>

#include "wire/head.h"

/* What PROBE_ANSWER tells. A request that is done gets its first answer again. */
enum probe_found {
    PROBE_WORKING = 1,
    PROBE_UNKNOWN = 2,
    /* not an answer to a probe: the shard cannot undo the filters of a request, and has dropped it. It drops the
     * requests after it, too, until one has the new filter epoch */
    PROBE_LACKS = 3
};

/* What a shard lacks for a request's filters. The sender no longer uses it on this connection. Bits. */
enum probe_lacks {
    LACKS_ROOM = 1,       /* for key lists */
    LACKS_USER_FILTER = 2 /* one of the application's filters is not registered there */
};

enum { DATA_STAT_BYTES = 40 };

struct data_stat {
    uint64_t rows, nonzero, bytes, pushes, pulls;
};

/* A sender's chunk numbers run at most this far ahead of its floor. */
enum { DATA_WINDOW = 1024 };

/* Is it a kind that changes something, so that it must be done once? */
static inline bool data_changes(unsigned kind)
{
    return kind == WIRE_PUSH || kind == WIRE_PUSHPULL || kind == WIRE_PUT || kind == WIRE_DELETE ||
           kind == WIRE_CLEAR || kind == WIRE_TRANSFORM;
}

/* Does it have lens? Requests without values have none, with any flags. */
static inline bool data_has_lens(const struct wire_head *h)
{
    return h->flags & WIRE_LENS && (h->kind == WIRE_PUSH || h->kind == WIRE_PUSHPULL || h->kind == WIRE_PUT);
}

/* Index of the first key that is not greater than the one before it; n if all ascend. */
size_t data_keys_ascend(const uint64_t *keys, size_t n);
/* A request's head and segment lengths agree; PROTOCOL says what does not. */
MUST_USE paramo_err data_check_request(const struct wire_head *head, const struct van_seg *seg,
                                       unsigned nseg);
void data_stat_encode(const struct data_stat *stat, uint8_t out[DATA_STAT_BYTES]);
MUST_USE paramo_err data_stat_decode(const void *body, uint64_t len, struct data_stat *stat);
/* Length of a segment; 0 if it is missing. */
static inline uint64_t data_seg_len(const struct van_seg *seg, unsigned nseg, unsigned i)
{
    return i < nseg ? seg[i].len : 0;
}

#endif
