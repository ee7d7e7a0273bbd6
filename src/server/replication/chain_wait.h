/*
 * Waits: answers, and a follower's acknowledgements, that leave when the next members have acknowledged all entries
 * of a change. It must never know how entries travel. Tests: test/worker/test_chain_sim.c.
 */
#ifndef SERVER_REPLICATION_CHAIN_WAIT_H
#define SERVER_REPLICATION_CHAIN_WAIT_H

#include "server/replication/chain_impl.h"

/* One entry of the step is acknowledged, or was not needed. The last one: what waits leaves, and w is freed. NULL is
 * ignored. */
void chain_wait_done(struct chain_wait *wait);
/* Frees an unused step; NULL is ignored. */
void chain_abandon(struct chain_wait *wait);
/* The sender's answer waits for w. */
void chain_wait_link(struct chain_wait *w, struct sender *sender);
/* The sender's change of this number that is not acknowledged yet; NULL: there is none. */
struct chain_wait *chain_wait_find(const struct sender *sender, uint64_t number);
/* True: this repeats a change that is not acknowledged yet. It waits for the same acknowledgement. */
bool chain_pending(struct sender *sender, const struct wire_head *head);
/* The sender is gone: no answer waits for it. */
void chain_sender_gone(struct sender *sender);
/* Frees the entries; no answers are sent. No source may be left that waits for one. */
void chain_cancel(struct queue *entries);

#endif
