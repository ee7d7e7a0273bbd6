/*
 * The work of a reduction (reducing.h): its memory and its steps. It never knows requests or answers. Tests:
 * test/worker/test_reduction_request.c.
 */
#ifndef SERVER_SHARD_REDUCING_STEPS_H
#define SERVER_SHARD_REDUCING_STEPS_H

#include "server/shard/shard_impl.h"
#include "table/table_reduce.h"
#include "wire/reduction_body.h"

/* Arbitrary. The memory of all that are deferred; one always may be. */
enum { REDUCING_BYTES = 64 << 20 };

struct reducing {
    uint8_t body[REDUCTION_BODY_MAX]; /* as it came */
    size_t body_bytes;
    struct reduction what; /* borrows from body */
    struct table_reducing at;
    struct reduced found;
};

/* Of a body that can be decoded. */
MUST_USE paramo_err reducing_make(struct shard *s, const void *body, size_t len, struct reducing **r);
void reducing_free(struct shard *s, struct reducing *r);
/* Were both asked for with the same body? */
bool reducing_same(const struct reducing *a, const struct reducing *b);
/* Rows are being removed, or get their initial values: there is nothing to be seen yet. */
bool reducing_waits(const struct shard *s, const struct shard_table *t, const struct reducing *r);
/* How many values a step takes. */
size_t reducing_step_values(const struct shard *s);
void reducing_step(struct shard *s, struct shard_table *t, struct reducing *r);
/* Partitions have changed. */
void reducing_restart(struct reducing *r);

#endif
