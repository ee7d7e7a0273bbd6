/*
 * Writes a file completely or not at all: under a temporary name beside it, synced, then renamed. A file whose name
 * ends in .gz or .zst is compressed; "-" is standard output, written directly. It never knows what is written. Not
 * thread-safe. Tests: test/learn/test_output.c.
 */
#ifndef LEARN_IO_OUTPUT_H
#define LEARN_IO_OUTPUT_H

#include "paramo/paramo.h"

#include <stddef.h>

struct output;

PARAMO_MUST_USE paramo_err output_open(const char *path, struct output **output);
/* Buffered. After an error (full disk, closed pipe) each later call returns it, too. */
PARAMO_MUST_USE paramo_err output_write(struct output *output, const void *data, size_t len);
/* Makes the file appear under its name and frees output; on an error nothing is left behind. */
PARAMO_MUST_USE paramo_err output_commit(struct output *output);
/* Removes the temporary file and frees output. NULL is allowed. */
void output_abort(struct output *output);

#endif
