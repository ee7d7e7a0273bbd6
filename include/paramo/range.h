/*
 * Requests for a range of keys. The keys follow each other, so they need no array and do not travel.
 * docs/RANGES.md says what travels instead, and what it costs. Tests: test/worker/test_ranges.c,
 * test/worker/test_pages.c.
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
    uint32_t *lens;      /* VAR tables: end - begin lengths, read by push, written by pull; otherwise NULL */
} paramo_range;
PARAMO_API void paramo_range_init(paramo_range *range);

/* As paramo_push, paramo_pull and paramo_pushpull of these keys: the same options, exactly once, errors and
 * waits. *range is copied; its vals and lens belong to the library until the request completes (with
 * PARAMO_COPY, the inputs of push do not). At most 2^32 - 1 keys.
 * A dense table has all of its keys. In other tables a push creates rows that are missing, and a pull reads
 * their initial values (VAR: length 0), or creates them, too (PARAMO_CREATE).
 * The request is applied in parts, as any request of many keys is: other requests may come between two parts.
 * Any thread. INVALID: begin >= end, or end is 0 and the table is not dense. KEY_RANGE: a dense table has fewer
 * rows. TOO_LARGE: too many keys. UNSUPPORTED: a USER table, or a server of an older version. Others as
 * paramo_push. */
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

/* ---- rows that exist, page by page ---- */

/* The first rows of a range that exist, in ascending order of their keys: at most `most`, and about 1 MiB of keys and
 * values, but at least one (VAR tables: 256 KiB of each shard). A page may have fewer rows, or none; `more` says
 * whether there are other pages. */
typedef struct paramo_page {
    size_t size;
    uint64_t begin, end; /* keys from begin on and below end; end 0: up to the last key of all */
    uint64_t *keys;      /* room for `most` keys */
    void *vals;          /* room for vals_len values: of one row at least */
    uint32_t *lens;      /* VAR tables: room for `most` lengths; otherwise NULL */
    size_t most;         /* 1 to PARAMO_PAGE_KEYS_MAX */
    size_t vals_len;
    /* The result: written before the request completes, and only if it succeeds. */
    size_t n, vals_n; /* rows, and their values */
    uint64_t next;    /* if there are more: where the next page begins */
    int more;
    uint32_t scan; /* the library's: names the page before to the servers; 0 at first */
} paramo_page;
#define PARAMO_PAGE_KEYS_MAX 32768
PARAMO_API void paramo_page_init(paramo_page *page);

/* Pulls a page, and returns the request's timestamp in *ts (NULL is allowed with a callback). While `more` is set,
 * set `begin` to `next` and pull again for the next page. options may be NULL. *page and its arrays belong to the
 * library until the request completes. A row that exists from the first page to the last is in exactly one of them; a
 * row that others create or remove is in at most one; each is as it is when its server sends it. keys, n, vals,
 * vals_n and lens are those of a paramo_kv: to push to the rows that exist in a range, push to the keys of its pages.
 * Costs: the first page of a sparse table makes its servers look at all keys; the following ones cost their rows,
 * while the servers remember the page before (a minute, and as long as there is memory).
 * Any thread. INVALID: no keys in the range, no room, or no arrays. SIZE_MISMATCH: lens do not fit the table, or no
 * row fits. TOO_LARGE: the first row has more values than there is room (VAR; the message says how many).
 * UNSUPPORTED: a USER table, or a server of an older version. Others as paramo_pull. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_pull_page(paramo_worker *worker, paramo_table *table,
                                                       paramo_page *page,
                                                       const paramo_request_options *options, uint64_t *ts);

#ifdef __cplusplus
}
#endif
#endif
