/*
 * A chain of filters as a user writes it, "keycache,fixed:2,lz4", and the rules for it: which orders are
 * refused, and which filters fit a table. Pure. It must never know messages. Tests: test/filter/test_filter_chain.c,
 * fuzz/fuzz_filter.c.
 */
#ifndef FILTER_FILTER_CHAIN_H
#define FILTER_FILTER_CHAIN_H

#include "filter/filter.h"

enum { FILTER_CHAIN_MAX = 8, FILTER_CHAIN_TEXT = 256 };

struct filter_chain {
    unsigned count;
    struct filter_setting at[FILTER_CHAIN_MAX]; /* in the order in which they are applied: by rank */
};

/* Reads a chain; "" or "none" is one without filters. INVALID: the message says what is wrong, and why an order
 * is refused. */
MUST_USE paramo_err filter_chain_parse(const char *text, enum filter_direction direction,
                                       struct filter_chain *chain);
/* Reads chains by direction: "push=CHAIN", "pull=CHAIN", or both with ';' between them. The chain of a direction
 * that is not named is left as it is. INVALID. */
MUST_USE paramo_err filter_chains_parse(const char *text, struct filter_chain chains[FILTER_DIRECTIONS]);
/* UNSUPPORTED: a filter cannot be used on this table; the message says why. */
MUST_USE paramo_err filter_chain_fits(const struct filter_chain *chain, const struct filter_table *table,
                                      enum filter_direction direction);
/* The filters of the chain that can be used on this table. */
struct filter_chain filter_chain_fitting(const struct filter_chain *chain, const struct filter_table *table,
                                         enum filter_direction direction);
/* Writes the chain as filter_chain_parse reads it. */
void filter_chain_text(const struct filter_chain *chain, char text[FILTER_CHAIN_TEXT]);
bool filter_chain_has(const struct filter_chain *chain, enum filter_rank rank);
const char *filter_direction_name(enum filter_direction direction);

#endif
