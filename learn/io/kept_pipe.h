/*
 * Pipes that are read ahead into memory, so that data of few rows can be read several times wherever it comes from.
 *
 *     kept_pipe_read("-", 8 MB)   the pipe ended before:  input_open("-") is a regular file, as often as it is called
 *                                 there is more:          the next input_open("-") has what was read, then the rest
 *
 * What is kept stays until kept_pipe_free_all. It never knows of compression, lines or rows. Thread-safe. Tests:
 * test/learn/test_kept_pipe.c.
 */
#ifndef LEARN_IO_KEPT_PIPE_H
#define LEARN_IO_KEPT_PIPE_H

#include "paramo/paramo.h"

#include <stddef.h>

/* Reads path ("-": standard input), which is no regular file, to its end, or until it has more than `most` bytes.
 * *bytes: those that were read; *whole: the pipe has ended. A path that is kept already is not read again. stopped:
 * called some ten times a second while the pipe has nothing; not 0 ends the wait (INTERRUPTED). NOT_FOUND, IO,
 * MEMORY. After an error that comes while it reads, the bytes read so far are kept like those of a pipe that has
 * more. */
PARAMO_MUST_USE paramo_err kept_pipe_read(const char *path, size_t most, int (*stopped)(void), size_t *bytes,
                                          int *whole);

/* What is kept of one pipe. The descriptors belong to kept_pipe.c if it is whole, else to the caller. */
struct kept_pipe {
    int memory; /* its bytes */
    int rest;   /* the pipe itself, -1 if it is whole */
};
/* For input_open: is path kept? A pipe that is not whole is given away, and kept no longer. */
int kept_pipe_find(const char *path, struct kept_pipe *kept);
/* Forgets all. No input of a kept path may be open. */
void kept_pipe_free_all(void);

#endif
