/*
 * An owner's changes: each gets its order number and goes to the next members, and its answer waits until these have
 * acknowledged. It must never know what a new view means: succession.h does. Tests: test/worker/test_chain_sim.c.
 */
#ifndef SERVER_REPLICATION_FORWARD_H
#define SERVER_REPLICATION_FORWARD_H

#include "server/replication/chain_impl.h"

/* Prepares an owner's change on the partitions `only` (NULL: all its partitions). Sends nothing. *wait is
 * NULL if no member follows. */
MUST_USE paramo_err chain_prepare(struct peer *peer, struct shard_table *t, const struct wire_head *head,
                                  const struct van_seg *seg, unsigned nseg, const uint64_t *only,
                                  struct chain_wait **wait);
/* The change that is about to be sent has the next order number, on the partitions of its keys (only those of `only`,
 * unless NULL). */
void chain_number(struct chain *c, const struct shard_table *t, const uint64_t *keys, size_t n,
                  const uint64_t *only);
/* Appends what was made for w to the streams, and sends it. */
void chain_wait_send(struct chain *c, struct chain_wait *w);
/* The partitions of `only` (NULL: of all) that this shard owns. partitions may be the same array as only. */
uint64_t *chain_only_mine(const struct chain *c, const uint64_t *only, uint64_t partitions[CHAIN_WORDS]);
/* The change has been applied and recorded: sends it. The answer leaves when it is acknowledged. */
void chain_commit(struct chain *c, const struct shard_table *t, struct chain_wait *wait,
                  const struct van_seg *seg, struct sender *sender, const uint64_t *only);
/* Tells followers the sender's floor. False: no memory. */
bool chain_sender_floor(struct shard *s, const struct sender *sender);

#endif
