/*
 * Pipes that are read ahead into memory, so that data of few rows can be read several times even if it comes from a
 * pipe.
 *
 *     kept_pipe_read("-", 8 MB)   the pipe ended before:  every input_open("-") opens a regular file with its bytes
 *                                 there is more:          the next input_open("-") has these bytes, then the rest
 *
 * A pipe that has ended is kept until kept_pipe_free_all. It never knows of compression, lines or rows. Thread-safe, if
 * no path is opened while kept_pipe_read reads it. Tests: test/learn/test_kept_pipe.c.
 */
#ifndef LEARN_IO_KEPT_PIPE_H
#define LEARN_IO_KEPT_PIPE_H

#include "paramo/paramo.h"

#include <stddef.h>

/* Reads path ("-": standard input), which is not a regular file, to its end, or until there are more than `most` bytes.
 * *bytes: the number of bytes read; *whole: the pipe has ended. A path that is kept already is not read again. stopped
 * is called about ten times a second while the pipe has no bytes; not 0 ends the wait (INTERRUPTED). NOT_FOUND, IO,
 * MEMORY. After an error while it reads, the bytes read so far are kept like those of a pipe that has more. */
PARAMO_MUST_USE paramo_err kept_pipe_read(const char *path, size_t most, int (*stopped)(void), size_t *bytes,
                                          int *whole);

/* A kept pipe. The descriptors belong to kept_pipe.c if it is whole, otherwise to the caller. */
struct kept_pipe {
    int memory; /* its bytes */
    int rest;   /* the pipe itself, -1 if it is whole */
};
/* For input_open: is path kept? A pipe that is not whole is handed over to the caller, and is no longer kept. */
int kept_pipe_find(const char *path, struct kept_pipe *kept);
/* Forgets all kept pipes. No input of a kept path may be open. */
void kept_pipe_free_all(void);

#endif
