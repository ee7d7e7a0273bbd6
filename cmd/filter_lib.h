/*
 * --filter-lib: filters of the user's own, from a shared object. It never knows connections. Tests: test/e2e/examples.sh.
 */
#ifndef CMD_FILTER_LIB_H
#define CMD_FILTER_LIB_H

#include "cmd/options.h"

/* Registers the filters of the shared object that --filter-lib names, if there is one, and makes its path absolute in
 * PARAMO_FILTER_LIB, for processes that this one starts. Before the process starts a node. The shared object stays loaded.
 * Returns -1 or the exit code. */
int filter_lib_load(const struct options *o);
/* Only the path, for a process that has no node. */
int filter_lib_export(const struct options *o);

#endif
