/*
 * Writing a text file as a whole or not at all: under a temporary name beside it, synced, then renamed. A
 * name that ends in .gz or .zst is compressed; "-" is standard output, written directly. Used by predict,
 * export and the click-log generator. Not thread-safe. Tests: test/learn/test_output.c.
 */
#ifndef LEARN_IO_OUTPUT_H
#define LEARN_IO_OUTPUT_H

#include "paramo/paramo.h"

#include <stddef.h>

struct output;

PARAMO_MUST_USE paramo_err output_open(const char *path, struct output **output);
/* Buffered. An error (full disk, closed pipe) stays: each later call returns it. */
PARAMO_MUST_USE paramo_err output_write(struct output *output, const void *data, size_t len);
/* Makes the file appear under its name and frees output; on an error nothing is left behind. */
PARAMO_MUST_USE paramo_err output_commit(struct output *output);
/* Removes the temporary file and frees output. NULL is allowed. */
void output_abort(struct output *output);

#endif
