/*
 * A node's configuration: checks, a copy of its own, where it listens; and options structs of older callers.
 * Defaults and limits are lines of a table (settings.h), the environment is config_env.c's. It never knows what
 * a setting does. Tests: test/node/test_config.c, fuzz/fuzz_config.c.
 */
#ifndef NODE_CONFIG_H
#define NODE_CONFIG_H

#include "node/node.h"

/* Fills missing fields with defaults and copies every string. MEMORY. */
MUST_USE paramo_err config_copy(const paramo_config *from, paramo_config *to);
void config_free(paramo_config *config);
/* INVALID: the message names the field. */
MUST_USE paramo_err config_check(const paramo_config *config);
/* The chains of config.filter. INVALID. */
MUST_USE paramo_err config_filters(const paramo_config *config,
                                   struct filter_chain chains[FILTER_DIRECTIONS]);
/* Where this process listens; may ask the resolver. */
MUST_USE paramo_err config_place(const paramo_config *config, struct place *place);
bool config_host_is_any(const char *host);

/* Copies a caller's options struct, perhaps an older and shorter one, over the defaults in whole. */
void options_complete(void *whole, size_t whole_size, const void *given);
/* The other way: fills a caller's struct up to its size, which stays. */
void options_copy_out(void *given, const void *whole, size_t whole_size);

#endif
