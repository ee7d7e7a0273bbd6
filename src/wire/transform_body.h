/*
 * The body of TRANSFORM: which function changes the rows of its keys. Tests: test/wire/test_transform_body.c,
 * fuzz/fuzz_frame.c.
 */
#ifndef WIRE_TRANSFORM_BODY_H
#define WIRE_TRANSFORM_BODY_H

#include "base/transform.h"

enum { TRANSFORM_BODY_BYTES = 16 };

void transform_encode(const struct transform *what, uint8_t out[TRANSFORM_BODY_BYTES]);
/* PROTOCOL: a field is not valid. What fits a table, transform_check says. */
MUST_USE paramo_err transform_decode(const void *body, uint64_t len, struct transform *what);
/* The second table of a body of the right length. False: it names none. */
bool transform_other(const void *body, uint32_t *table);

#endif
