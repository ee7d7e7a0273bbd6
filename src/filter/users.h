/*
 * The application's filters (paramo/filter_types.h), as filters of the table. They are registered for the whole
 * process, for its whole life. On the wire each has the id FILTER_ID_USER and a hash of its name. The hash chooses
 * one of 24 capability bits, so two names may share a bit. Then a shard may receive a filter that it does not have;
 * it answers PROBE_LACKS. It must never know messages beyond their values. Any thread. Tests:
 * test/filter/test_users.c, test/worker/test_filtering.c.
 */
#ifndef FILTER_USERS_H
#define FILTER_USERS_H

#include "filter/filter.h"
#include "paramo/filter_types.h"

/* INVALID: the definition is wrong, the name is taken, or there are FILTER_USERS_MAX already. */
MUST_USE paramo_err filter_users_register(const paramo_filter *filter);
unsigned filter_users_count(void);
/* index below filter_users_count(). */
const struct filter_ops *filter_users_at(unsigned index);
/* NULL: there is none. */
const struct filter_ops *filter_users_of_hash(uint64_t hash);
/* The capability bits of all. */
uint64_t filter_users_capabilities(void);
/* For tests: the process has none; nothing may use one. */
void filter_users_forget(void);

#endif
