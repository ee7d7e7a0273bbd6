/*
 * A request for a page: the rows of a range that exist, from its first key on, as many as fit. Each shard sends its
 * first rows; here they come together, up to the least of the last keys of shards that have more. So no row is left
 * out. It never knows which shards there are. Tests: test/worker/test_pages.c.
 *
 *     shard 0   3 ------- 17 ------- 40 | more
 *     shard 1       9 ----------- 33 | more           the page: 3 to 33, and the next begins at 34
 *     shard 2     5                      (its last)
 */
#ifndef WORKER_PAGE_REQUEST_H
#define WORKER_PAGE_REQUEST_H

#include "paramo/range.h"
#include "worker/scan_batch.h"

struct page_request {
    const struct client_table *table;
    paramo_page *to;
    uint64_t ends[2];           /* the first and the last key that are wanted: segment 0 of a request */
    uint32_t id;                /* of the scan at the shards */
    uint32_t most;              /* rows of the page */
    uint32_t share;             /* rows that each shard is asked for */
    struct scan_batch *batches; /* of each shard; NULL: none is asked */
    uint32_t count;
    struct wire_columns columns; /* count 0: whole rows */
};

/* Of a page that is checked (check_page.h). id: that of a new scan. */
MUST_USE paramo_err page_request_make(const struct client_call *call, uint32_t id, struct page_request **p);
void page_request_free(struct page_request *p);
/* This number of shards will answer. */
MUST_USE paramo_err page_request_begin(struct page_request *p, uint32_t shards);
/* The request begins again: forgets the answers. */
void page_request_reset(struct page_request *p);
MUST_USE paramo_err page_request_take(struct page_request *p, uint32_t shard, const struct wire_head *head,
                                      const struct van_seg *seg, unsigned nseg);
/* All shards have answered: writes the caller's page. TOO_LARGE: it has no room for the first row. */
MUST_USE paramo_err page_request_end(struct page_request *p);

#endif
