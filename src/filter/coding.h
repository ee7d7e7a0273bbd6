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
    uint64_t messages; /* that the filter changed */
    uint64_t skipped;  /* that it left as they were, because it would not pay */
    uint64_t received; /* that it decoded */
    uint64_t before,
        after;        /* bytes of the messages that it changed or decoded, without and with the filter */
    uint64_t time_ns; /* spent in the filter */
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
/* Rounds the rows of a message by the chain's filters that round. wire: the message will be encoded for a connection.
 * False: nothing has changed. */
bool filter_round(const struct filter_coder *c, const struct filter_chain *chain,
                  enum filter_direction direction, bool wire, struct filter_rows *rows);
/* Encodes m by the chain. wants: the chain for the answer, which may be empty; NULL: m asks for none. True: *body is
 * the envelope, and m's segments are what travels; all of it lies in m's memory and its lists. False: nothing has
 * changed. */
bool filter_encode(const struct filter_coder *c, struct filter_run *run, const struct filter_chain *wants,
                   struct filter_message *m, struct van_seg *body);
/* Undoes the filters that the envelope names. PROTOCOL, NOT_FOUND (a key list), UNSUPPORTED (a filter of the
 * application), MEMORY: m is of no use. */
MUST_USE paramo_err filter_decode(const struct filter_coder *c, const struct van_seg *body,
                                  struct filter_message *m, struct filter_chain *wants);
void filter_counts_add(struct filter_counts *sum, const struct filter_counts *counts);
uint64_t filter_message_bytes(const struct filter_message *m);

#endif
