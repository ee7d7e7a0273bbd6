/*
 * The body of TRANSFORM: which function changes the rows of its keys. It never knows tables. Tests:
 * test/wire/test_transform_body.c, fuzz/fuzz_frame.c.
 */
#ifndef WIRE_TRANSFORM_BODY_H
#define WIRE_TRANSFORM_BODY_H

#include "base/transform.h"
#include "wire/user_body.h"

enum {
    TRANSFORM_BODY_BYTES = 16, /* and for USER what user_body.h says */
    TRANSFORM_BODY_MAX = TRANSFORM_BODY_BYTES + USER_BODY_MAX
};

size_t transform_body_bytes(const struct transform *what);
/* out: transform_body_bytes. */
void transform_encode(const struct transform *what, uint8_t *out);
/* `what` borrows the parameters of USER. PROTOCOL: a field is not valid. transform_check says what fits a table. */
MUST_USE paramo_err transform_decode(const void *body, uint64_t len, struct transform *what);
/* The second table of a body of at least TRANSFORM_BODY_BYTES. False: it names none. */
bool transform_other(const void *body, uint32_t *table);

#endif
