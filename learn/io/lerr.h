/*
 * Errors of learn/ and cmd/: a code, and the exact cause as a text per thread, like the library's own
 * (paramo_last_error). Every failing function here ends in `return
 * lerr(PARAMO_E_X, "...")`. It never logs and never exits. An error that crosses threads is carried as text
 * and set again on the other side.
 */
#ifndef LEARN_IO_LERR_H
#define LEARN_IO_LERR_H

#include "paramo/errors.h"

#define LEARN_MUST_USE __attribute__((warn_unused_result))

/* Stores the message for this thread (cut at LERR_MAX) and returns code. */
#define LERR_MAX 512
paramo_err lerr(paramo_err code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The message of the last lerr() on this thread; valid until the next one. Never NULL. */
const char *lerr_text(void);
#ifdef __clang_analyzer__ /* let it see that what comes back is the code, so not PARAMO_OK */
#define lerr(code, ...) ((void)lerr(code, __VA_ARGS__), (code))
#endif

#endif
