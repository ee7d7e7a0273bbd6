/*
 * A function of an application, for fuzzers of what calls one: it changes rows, counts them, and refuses some
 * parameters.
 */
#ifndef FUZZ_FUNCTIONS_H
#define FUZZ_FUNCTIONS_H

#include "harness.h"
#include "wire/user_body.h"

/* A call of that function, or of one that does not exist. Registers the function if need be. */
struct user_call functions_draw(struct source *s);

#endif
