/*
 * What a node needs from its process besides lanes: whether it was forked, environment variables, a line to
 * the parent, and an event descriptor for a foreign event loop. This module never knows nodes. Tests:
 * test/env/test_process.c.
 */
#ifndef ENV_PROCESS_H
#define ENV_PROCESS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* A number that each child of fork raises: a handle made under another number belongs to the parent. */
unsigned process_generation(void);
/* NULL if it is not set, or empty. Valid until the environment changes. */
const char *process_variable(const char *name);
/* Keeps a copy of the text until the process ends, one per text. A configuration may point to it without
 * owning it. NULL: out of memory. Any thread. */
const char *process_keep(const char *text);

/* Makes a path absolute: a relative one is relative to the working directory. TOO_LARGE. */
MUST_USE paramo_err process_path(const char *path, char *out, size_t capacity);
/* Seconds since 1970 by the system's clock. */
uint64_t process_unix_time(void);

/* Sends a line to the process that started this one, on the socket that it passed to us (-1: none). The
 * line is dropped if the other process is gone or does not read. Any thread. */
void process_notify(int fd, const char *line);

/* A descriptor that is readable from event_signal to event_drain. event_signal is async-signal-safe. */
MUST_USE paramo_err event_create(int *fd);
void event_signal(int fd);
void event_drain(int fd);
void event_close(int fd);

#endif
