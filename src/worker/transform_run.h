/*
 * A function that changes all rows of a range or of a list of keys: the keys, part by part, each part a request of its
 * own. The keys of a range of a dense table are known; those of other tables come from a scan. It never knows how a
 * request is sent. Tests: test/worker/test_transform_run.c.
 */
#ifndef WORKER_TRANSFORM_RUN_H
#define WORKER_TRANSFORM_RUN_H

#include "base/transform.h"
#include "worker/client_types.h"

/* The rows of a list of ascending keys; keys NULL: of a range, as in paramo_transformation. */
struct transform_rows {
    const uint64_t *keys;
    size_t n;
    uint64_t begin, end;
};

/* Not on a lane. The first error; the call then waits for the parts in flight. */
MUST_USE paramo_err transform_run(struct client *client, const struct client_table *table,
                                  const struct client_table *other, const struct transform *what,
                                  const struct transform_rows *rows, uint32_t timeout_ms);

#endif
