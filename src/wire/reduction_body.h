/*
 * REDUCE and its answer: bodies with what a reduction asks for, and with what one shard has found. It never knows
 * tables. Tests: test/wire/test_reduction_body.c, fuzz/fuzz_messages.c.
 */
#ifndef WIRE_REDUCTION_BODY_H
#define WIRE_REDUCTION_BODY_H

#include "base/reduction.h"
#include "wire/user_body.h"

enum {
    REDUCTION_BODY_BYTES = 32, /* and for USER what user_body.h says */
    REDUCTION_BODY_MAX = REDUCTION_BODY_BYTES + USER_BODY_MAX,
    REDUCED_BODY_BYTES = 48, /* and the chunks of a sum, if the function has one, ... */
    REDUCED_SUM_BYTES = 4 * (EXACTSUM_CHUNKS - 1) + 8, /* ... and the state of USER, or the entries: */
    REDUCED_ENTRY_BYTES = 24
};

size_t reduction_body_bytes(const struct reduction *what);
/* out: reduction_body_bytes. */
void reduction_encode(const struct reduction *what, uint8_t *out);
/* `what` borrows the parameters of USER. PROTOCOL: a field is not valid, reduction_check fails, or begin > last. */
MUST_USE paramo_err reduction_decode(const void *body, uint64_t len, struct reduction *what);
/* The second table of a body of at least REDUCTION_BODY_BYTES. False: it names none. */
bool reduction_other(const void *body, uint32_t *table);

size_t reduced_body_bytes(const struct reduced *found);
/* found is sorted; its sum is carried here. */
void reduced_encode(struct reduced *found, uint8_t *out);
/* into: fresh from reduced_init, which makes room for the entries, with the reduction that was asked for. PROTOCOL:
 * entries are out of order, or outside the range. */
MUST_USE paramo_err reduced_decode(const void *body, uint64_t len, struct reduced *into);

#endif
