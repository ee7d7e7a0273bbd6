/*
 * Requests for a range of keys. The keys follow each other, so they need no array and do not travel. docs/RANGES.md says
 * what travels instead, and what it costs.
 */
#ifndef PARAMO_RANGE_H
#define PARAMO_RANGE_H

#include "paramo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All keys from `begin` on and below `end`, with the values of each in the order of the keys. */
typedef struct paramo_range {
    size_t size;
    uint64_t begin, end; /* end 0: up to the last row, of a dense table */
    void *vals;          /* push: read; pull and pushpull: written (pushpull: read first) */
    size_t vals_len;     /* number of values (not bytes): (end - begin) * dim; with lens as in paramo_kv */
    uint32_t *lens;      /* VAR tables: end - begin lengths, read by push, written by pull; else NULL */
} paramo_range;
PARAMO_API void paramo_range_init(paramo_range *range);

/* As paramo_push, paramo_pull and paramo_pushpull of these keys: the same options, exactly once, errors and waits. *range
 * is copied; its vals and lens belong to the library until the request completes (with PARAMO_COPY, the inputs of push do
 * not). At most 2^32 - 1 keys.
 * A dense table has all of its keys. In other tables a push creates rows that are missing, and a pull reads their initial
 * values (VAR: length 0), or creates them, too (PARAMO_CREATE).
 * The request is applied in parts, as any request of many keys is: other requests may come between two parts.
 * Any thread. INVALID: begin >= end, or end is 0 and the table is not dense. KEY_RANGE: a dense table has fewer rows.
 * TOO_LARGE: too many keys. UNSUPPORTED: a USER table, or a server of an older version. Others as paramo_push. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_push_range(paramo_worker *worker, paramo_table *table,
                                                        const paramo_range *range,
                                                        const paramo_request_options *options, uint64_t *ts);
PARAMO_API PARAMO_MUST_USE paramo_err paramo_pull_range(paramo_worker *worker, paramo_table *table,
                                                        const paramo_range *range,
                                                        const paramo_request_options *options, uint64_t *ts);
PARAMO_API PARAMO_MUST_USE paramo_err paramo_pushpull_range(paramo_worker *worker, paramo_table *table,
                                                            const paramo_range *range,
                                                            const paramo_request_options *options,
                                                            uint64_t *ts);

#ifdef __cplusplus
}
#endif
#endif
