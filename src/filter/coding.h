/*
 * Filters of a frame: encodes a message with the filters of a chain before it is sent, and decodes it at the other
 * end. Counts the bytes and the time of each filter. It must never know frames or connections. Tests:
 * test/filter/test_coding.c, fuzz/fuzz_filter.c.
 */
#ifndef FILTER_CODING_H
#define FILTER_CODING_H

#include "env/env.h"
#include "filter/envelope.h"
#include "filter/message.h"
#include "filter/rounding.h"

struct filter_count {
    uint64_t messages;      /* that the filter changed */
    uint64_t skipped;       /* that it left as they were, because it would not pay */
    uint64_t received;      /* that came, and were changed back */
    uint64_t before, after; /* bytes of the changed ones, and of those changed back */
    uint64_t time_ns;       /* of all of it */
};

/* By registry_index(). */
struct filter_counts {
    struct filter_count of[FILTER_SLOTS][FILTER_DIRECTIONS];
};

/* Whether a filter has paid lately: one that has not is tried less often. */
struct filter_pace {
    uint16_t failed, waits;
};

/* A chain that one end uses for messages of one table and direction. */
struct filter_run {
    struct filter_chain chain;
    struct filter_pace pace[FILTER_CHAIN_MAX];
};

struct filter_coder {
    struct env *env;
    uint64_t capabilities; /* of the connection */
    struct filter_counts *counts;
};

/* Sets waits[i] of each row that a filter of the chain holds back. waits: rows->count bytes, all 0. */
void filter_select(const struct filter_coder *c, const struct filter_chain *chain,
                   const struct filter_rows *rows, uint8_t *waits);
/* Rounds rows, the values of m, by the chain's filters that round. wire: they will be encoded for a connection.
 * False: nothing has changed. */
bool filter_round(const struct filter_coder *c, const struct filter_chain *chain,
                  enum filter_direction direction, bool wire, struct filter_rows *rows);
/* Encodes m by the chain. wants: of the answer, perhaps none; NULL: the message wants nothing. True: *body is the
 * envelope, and m's segments are what travels; all of it lies in m's memory and its lists. False: nothing has
 * changed. */
bool filter_encode(const struct filter_coder *c, struct filter_run *run, const struct filter_chain *wants,
                   struct filter_message *m, struct van_seg *body);
/* Takes back what the envelope names. PROTOCOL, NOT_FOUND (a list), UNSUPPORTED (a filter of the application),
 * MEMORY: m is of no use. */
MUST_USE paramo_err filter_decode(const struct filter_coder *c, const struct van_seg *body,
                                  struct filter_message *m, struct filter_chain *wants);
void filter_counts_add(struct filter_counts *sum, const struct filter_counts *counts);
uint64_t filter_message_bytes(const struct filter_message *m);

#endif
