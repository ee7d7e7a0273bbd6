/*
 * Errors inside the library: a code from paramo/errors.h and, per thread, the message with the cause.
 *
 * `return err_set(PARAMO_E_ADDRESS, "resolve %s: %s", ...)` is the idiom; a function that only passes an
 * error on returns the code and leaves the message alone. An error that passes to another thread or node
 * carries its message as text (err_text_copy), and is set again where it is reported. This module never
 * aborts and never logs. Tests: test/base/test_base.c.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stddef.h>

#include "paramo/errors.h"

#define MUST_USE __attribute__((warn_unused_result))

enum { ERR_TEXT_MAX = PARAMO_ERROR_MAX };

/* Sets this thread's message and returns code. */
paramo_err err_set(paramo_err code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* err_set with ": <strerror(errno_value)>" at the end. */
paramo_err err_errno(paramo_err code, int errno_value, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts "context: " before this thread's message; returns code. */
paramo_err err_prefix(paramo_err code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* PARAMO_E_MEMORY; the message has the size of the allocation. */
paramo_err err_memory(size_t bytes);
/* This thread's message. Never NULL. Valid until the thread's next err_* call. */
const char *err_text(void);
/* Copies this thread's message to dst, cut to ERR_TEXT_MAX. */
void err_text_copy(char dst[ERR_TEXT_MAX]);

const char *err_name(paramo_err code);
const char *err_sentence(paramo_err code);
/* The code for a number from a peer. Unknown numbers become INTERNAL. */
paramo_err err_from_wire(unsigned number);

#endif
