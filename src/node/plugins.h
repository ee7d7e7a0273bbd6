/*
 * Plugins of the process: shared objects that register functions, filters and tasks (paramo/plugin.h). It never knows
 * what they register. Tests: test/e2e/plugins.sh.
 */
#ifndef NODE_PLUGINS_H
#define NODE_PLUGINS_H

#include "base/err.h"

/* Loads each file of a list with colons that the process has not loaded yet. NULL: none. NOT_FOUND: a file cannot be
 * loaded, or is no plugin. INVALID: something in it cannot be registered. Any thread. */
MUST_USE paramo_err plugins_load(const char *list);

#endif
