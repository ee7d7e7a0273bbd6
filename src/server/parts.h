/*
 * On which arcs a chunk has been done that came by chains. Its parts reach a follower by different ways (the
 * arcs of one owner have different chains), and the owner may die in between: what a record says of a number
 * (clocks.h) would be too much or too little. So a follower notes the arcs, and whoever becomes owner does
 * the rest of the chunk when it is sent again. A note goes when the sender's floor has passed the number.
 * Pure; one owner. Tests: test/server/test_parts.c, test/worker/test_chain_sim.c.
 */
#ifndef SERVER_PARTS_H
#define SERVER_PARTS_H

#include "base/err.h"
#include "ring/ring.h"

struct part {
    struct part *next;
    uint64_t number;
    uint64_t arcs[RING_ARCS / 64];
};

/* NULL: nothing is noted of it. */
const struct part *parts_find(const struct part *parts, uint64_t number);
MUST_USE paramo_err parts_note(struct part **parts, uint64_t number, const uint64_t arcs[RING_ARCS / 64]);
/* The same with a note that was made apart; takes it. */
void parts_join(struct part **parts, struct part *note);
void parts_raise(struct part **parts, uint64_t floor);
/* What is noted of these arcs goes over; on MEMORY some may have gone. */
MUST_USE paramo_err parts_pass(struct part **from, struct part **to, const uint64_t arcs[RING_ARCS / 64]);
/* These arcs have left. */
void parts_drop(struct part **parts, const uint64_t arcs[RING_ARCS / 64]);
void parts_fini(struct part **parts);

#endif
