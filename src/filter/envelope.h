/*
 * The envelope of a filtered message: its body segment, which says what the receiver must undo, and in a
 * request that reads, which filters its answer may use.
 *
 *     u8 how many wanted, then for each: u8 id, f32 argument      (requests only; an answer wants nothing)
 *                                        id FILTER_ID_USER: u64 hash
 *     u8 how many used, then for each, in the order of use: u8 id, u8 bytes of params, params
 *
 * It checks lengths and ids, and that no filter is wanted or was used twice. It must never know what params mean.
 * Tests: test/filter/test_coding.c, fuzz/fuzz_filter.c.
 */
#ifndef FILTER_ENVELOPE_H
#define FILTER_ENVELOPE_H

#include "filter/filter_chain.h"

enum { FILTER_ENVELOPE_MAX = 512, FILTER_PARAMS_MAX = 48 };

struct filter_used {
    const struct filter_ops *ops;
    struct reader params; /* of the envelope's bytes */
};

struct filter_envelope {
    struct filter_chain wants;
    unsigned count;
    struct filter_used used[FILTER_CHAIN_MAX];
};

/* Writes those of `wants` for which the connection has the capability; NULL: none. */
void filter_envelope_wants(struct writer *w, const struct filter_chain *wants, uint64_t capabilities);
/* capabilities: of the connection; use: of the message. PROTOCOL. UNSUPPORTED: this process does not have a filter of
 * the application that was used. */
MUST_USE paramo_err filter_envelope_decode(const void *body, uint64_t len, uint64_t capabilities,
                                           enum filter_use use, struct filter_envelope *envelope);

#endif
