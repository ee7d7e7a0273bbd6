/*
 * A scan: all rows of a table in ascending key order, merged from the shards' ascending batches. The calling
 * thread drives it: it fetches one batch per shard at a time and passes the merged rows on. A row that exists
 * from the first batch to the last is returned once, any other at most once, each as it is when its batch is
 * made. When partitions change owners the scan continues with the new owners after the last row. It never
 * knows what is done with the rows. Tests: test/worker/test_client.c, test_succession.c.
 */
#ifndef WORKER_SCAN_H
#define WORKER_SCAN_H

#include "worker/scan_batch.h"

struct scan_rows {
    const uint64_t *keys;
    size_t n;
    const void *vals;
    size_t vals_len;      /* values, not bytes */
    const uint32_t *lens; /* VAR only */
    uint32_t row_values;  /* 0 for VAR */
};

/* Not in a callback. fn returns non-zero to stop: INTERRUPTED. timeout_ms (0: the client's) bounds each
 * batch. */
MUST_USE paramo_err scan_run(struct client *client, const struct client_table *table, bool with_state,
                             uint32_t timeout_ms, int (*fn)(void *arg, const struct scan_rows *rows),
                             void *arg);
/* Like scan_run(), for keys only, from one key on. The rows of some may be gone. UNSUPPORTED: a server is of an
 * older version. */
MUST_USE paramo_err scan_keys_run(struct client *client, const struct client_table *table, uint64_t first,
                                  uint32_t timeout_ms, int (*fn)(void *arg, const struct scan_rows *rows),
                                  void *arg);

#endif
