/*
 * A request for a reduction: its body, the results of shards as they come, and the caller's result at its end. It never
 * knows which shards are asked. Tests: test/worker/test_reduction_request.c.
 */
#ifndef WORKER_REDUCTION_REQUEST_H
#define WORKER_REDUCTION_REQUEST_H

#include "wire/reduction_body.h"
#include "worker/client_types.h"

struct reduction_request {
    struct reduction what;
    struct reduced found;
    paramo_reduction *to;
    uint8_t body[REDUCTION_BODY_MAX];
    size_t body_bytes;
};

/* INVALID, SIZE_MISMATCH, UNSUPPORTED: what is wrong with the caller's arguments. */
MUST_USE paramo_err reduction_request_check(const struct client_call *call);
MUST_USE paramo_err reduction_request_make(const struct client_call *call, struct reduction_request **r);
void reduction_request_free(struct reduction_request *r);
/* One shard's result. */
MUST_USE paramo_err reduction_request_take(struct reduction_request *r, const void *body, uint64_t len);
/* All shards have answered: writes the caller's result. */
void reduction_request_end(struct reduction_request *r);

#endif
