/*
 * All filters that this process has: those of the build (filter.h), then those of the application (users.h). It must
 * never know what a filter does. Any thread. Tests: test/filter/test_users.c.
 */
#ifndef FILTER_REGISTRY_H
#define FILTER_REGISTRY_H

#include "filter/users.h"

unsigned registry_count(void);
/* index below registry_count(). A filter keeps its index. */
const struct filter_ops *registry_at(unsigned index);
/* Below FILTER_SLOTS. */
unsigned registry_index(const struct filter_ops *ops);
/* NULL: there is none. */
const struct filter_ops *registry_of_name(const char *name, size_t len);
/* hash: only of FILTER_ID_USER. NULL: there is none. */
const struct filter_ops *registry_of_wire(unsigned id, uint64_t hash);

#endif
