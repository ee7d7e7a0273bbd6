/*
 * What a node needs of its process besides lanes: whether it was forked, its environment variables, a word to
 * its parent, an event descriptor for a foreign event loop. Tests: test/env/test_process.c.
 */
#ifndef ENV_PROCESS_H
#define ENV_PROCESS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Raised in each child of fork: a handle made under another number belongs to the parent. */
unsigned process_generation(void);
/* NULL if it is not set, or empty. Valid until the environment changes. */
const char *process_variable(const char *name);
/* The text itself, the same address for the same text, for as long as the process lives: what a configuration
 * may point to without an owner. Memory is kept for each text that differs. NULL: out of memory. Any thread.
 */
const char *process_keep(const char *text);

/* The path from the root on, of one that may be from the working directory. TOO_LARGE. */
MUST_USE paramo_err process_path(const char *path, char *out, size_t capacity);
/* Seconds since 1970, as the system's clock has it. */
uint64_t process_unix_time(void);

/* Says a line to whoever started this process, on a socket it gave us (-1: none). If nobody listens any more,
 * or does not read, nothing is said. Any thread. */
void process_notify(int fd, const char *line);

/* A descriptor that is readable from event_signal to event_drain. signal is async-signal-safe. */
MUST_USE paramo_err event_create(int *fd);
void event_signal(int fd);
void event_drain(int fd);
void event_close(int fd);

#endif
