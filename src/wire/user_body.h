/*
 * The end of a body of REDUCE or TRANSFORM that names a function of the application: u8 length of the name, the name,
 * and the parameters up to the body's end. It never knows the function. Tests: test/wire/test_transform_body.c,
 * fuzz/fuzz_frame.c.
 */
#ifndef WIRE_USER_BODY_H
#define WIRE_USER_BODY_H

#include "base/cursor.h"
#include "base/user_function.h"

enum { USER_BODY_MAX = 1 + USER_FUNCTION_NAME_MAX - 1 + PARAMO_FUNCTION_PARAMS_MAX };

size_t user_body_bytes(const struct user_call *call);
void user_body_encode(struct writer *w, const struct user_call *call);
/* Takes all that is left. call borrows the parameters. Sets r->failed if the bytes are not valid. */
void user_body_decode(struct reader *r, struct user_call *call);

#endif
