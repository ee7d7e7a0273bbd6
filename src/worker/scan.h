/*
 * A scan: all rows of a table in ascending key order, merged from the shards' ascending batches. The calling
 * thread drives it: it fetches one batch per shard at a time and passes the merged rows on. A row that exists
 * from the first batch to the last is returned once, any other at most once, each as it is when its batch is
 * made. When partitions change owners the scan continues with the new owners behind the last row. It never
 * knows what is done with the rows. Tests: test/worker/test_client.c, test_succession.c.
 */
#ifndef WORKER_SCAN_H
#define WORKER_SCAN_H

#include "wire/head.h"
#include "worker/client.h"

struct scan_rows {
    const uint64_t *keys;
    size_t n;
    const void *vals;
    size_t vals_len;      /* values, not bytes */
    const uint32_t *lens; /* VAR only */
    uint32_t row_values;  /* 0 for VAR */
};

struct scan_batch {
    uint32_t shard; /* of the view */
    uint32_t id;    /* of the scan, within the client */
    /* client->partitions_view when the shard was first asked; 0: not asked yet. When that rises, the batch
     * ends with MOVED: the shard's partitions have changed. */
    uint64_t partitions_view;
    uint64_t cursor; /* the first key wanted */
    bool with_state;
    /* the answer */
    uint64_t *keys;
    uint32_t *lens;
    uint8_t *vals;
    size_t n, vals_bytes;
    bool more;
    size_t capacity[3]; /* of keys, lens, vals in bytes */
};
/* Takes an answer in. On the lane. */
MUST_USE paramo_err scan_receive(struct scan_batch *b, const struct client_table *table,
                                 const struct wire_head *head, const struct van_seg *seg, unsigned nseg);

/* Not in a callback. fn returns non-zero to stop: INTERRUPTED. timeout_ms (0: the client's) bounds each
 * batch. */
MUST_USE paramo_err scan_run(struct client *client, const struct client_table *table, bool with_state,
                             uint32_t timeout_ms, int (*fn)(void *arg, const struct scan_rows *rows),
                             void *arg);

#endif
