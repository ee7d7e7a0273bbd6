/*
 * One batch of a scan: the request to a shard, and its answer. It never knows the other batches of the scan. Tests:
 * test/worker/test_client.c, fuzz/fuzz_client.c.
 */
#ifndef WORKER_SCAN_BATCH_H
#define WORKER_SCAN_BATCH_H

#include "wire/head.h"
#include "worker/client_types.h"

struct scan_batch {
    uint32_t shard; /* of the view */
    uint32_t id;    /* of the scan, within the client */
    /* views_partitions_changed() when the shard was first asked; 0: not asked yet. When that rises, the batch
     * ends with MOVED: the shard's partitions have changed. */
    uint64_t partitions_view;
    uint64_t cursor; /* the first key wanted */
    bool with_state, keys_only;
    uint32_t columns; /* values of each row; 0: all */
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
/* Makes a buffer, whose address is at *buffer, at least this large. */
MUST_USE paramo_err scan_batch_grow(void *buffer, size_t *capacity, size_t bytes);

#endif
