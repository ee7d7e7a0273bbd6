/*
 * Shared objects that a process loads by the name of their file, each once. This module never knows what is in them.
 * Tests: test/e2e/plugins.sh.
 */
#ifndef ENV_LIBRARY_H
#define ENV_LIBRARY_H

#include "base/err.h"

struct library;

enum { LIBRARIES_MAX = 16 };

/* Loads the file and calls `first` with it, unless the process has loaded it before. Returns the result of `first`;
 * after its error the file counts as not loaded. The library stays. NOT_FOUND: the file cannot be loaded. FULL. Any
 * thread; one at a time. */
MUST_USE paramo_err library_load(const char *path, paramo_err (*first)(struct library *library));
/* In `first`: the object of that name; NULL: there is none. */
const void *library_find(struct library *library, const char *name);

#endif
