/*
 * The table of a node's settings. The line of a setting has its field in paramo_config, option, environment variable,
 * limits, default and help. Defaults, the environment, copies and the program's options come from the table.
 * It never knows what a setting does. Tests: test/node/test_settings.c.
 */
#ifndef NODE_SETTINGS_H
#define NODE_SETTINGS_H

#include <stdbool.h>

#include "base/err.h"
#include "paramo/options.h"

/* Sets each field that has a default. */
void settings_preset(paramo_config *config);
/* Reads a variable by its line of the table; *given says whether it is set. */
MUST_USE paramo_err settings_variable(const char *name, paramo_option_value *value, bool *given);
/* Reads the variables of all fields, except those that do not count for config->roles. */
MUST_USE paramo_err settings_environment(paramo_config *config);
/* The i-th string of a configuration, from 0; NULL after the last. */
const char **settings_text(paramo_config *config, unsigned i);
/* Sets a string to a copy that lives as long as the process. */
MUST_USE paramo_err settings_keep(const char *text, const char **field);

#endif
