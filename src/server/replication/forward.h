/*
 * Streams to the next members of chains, and the answers that wait until these members have acknowledged. It
 * must never know what a new view means: succession.h does. Tests: test/worker/test_chain_sim.c.
 */
#ifndef SERVER_REPLICATION_FORWARD_H
#define SERVER_REPLICATION_FORWARD_H

#include "server/replication/chain_impl.h"
#include "server/replication/entry.h"

/* The chain cannot continue (no memory, or FULL: too many records differ); err and this thread's message say
 * why. This shard stops serving, and config.failed is called once. */
void chain_fail(struct chain *c, paramo_err err);
/* True: the shard may serve. False: slice_resume_all runs when it may again. */
bool chain_open(struct shard *s);
/* Has the other end answered a CHAIN_BEAT that was sent less than CHAIN_LEASE_MS ago? */
bool chain_leased(const struct chain_stream *st);
/* False: the chain never stops the shard from serving. */
static inline bool chain_guarded(const struct chain *c)
{
    return c && (c->streams || c->wait_until || c->failed || records_pending(c));
}
/* Prepares an owner's change on the partitions `only` (NULL: all its partitions). Sends nothing. *wait is
 * NULL if no member follows. */
MUST_USE paramo_err chain_prepare(struct peer *peer, struct shard_table *t, const struct wire_head *head,
                                  const struct van_seg *seg, unsigned nseg, const uint64_t *only,
                                  struct chain_wait **wait);
/* Frees an unused step; NULL is ignored. */
void chain_abandon(struct chain_wait *wait);
/* The change that is about to be sent has the next order number, on the partitions of its keys (only those of `only`,
 * unless NULL). */
void chain_number(struct chain *c, const struct shard_table *t, const uint64_t *keys, size_t n,
                  const uint64_t *only);
/* The sender's answer waits for w. */
void chain_wait_link(struct chain_wait *w, struct sender *sender);
/* Appends what was made for w to the streams, and sends it. */
void chain_wait_send(struct chain *c, struct chain_wait *w);
/* The partitions of `only` (NULL: of all) that this shard owns. partitions may be the same array as only. */
uint64_t *chain_only_mine(const struct chain *c, const uint64_t *only, uint64_t partitions[CHAIN_WORDS]);
/* The change has been applied and recorded: sends it. The answer leaves when it is acknowledged. */
void chain_commit(struct chain *c, const struct shard_table *t, struct chain_wait *wait,
                  const struct van_seg *seg, struct sender *sender, const uint64_t *only);
/* True: this repeats a change that is not acknowledged yet. It waits for the same acknowledgement. */
bool chain_pending(struct sender *sender, const struct wire_head *head);
void chain_sender_gone(struct sender *sender);
/* Tells followers the sender's floor. False: no memory. */
bool chain_sender_floor(struct shard *s, const struct sender *sender);
/* Makes an entry for each next member that has partitions of the message, and for a migration's target if
 * to_target, and queues them in `entries`. */
MUST_USE paramo_err chain_split(struct chain *c, const struct shard_table *t, const struct chain_message *m,
                                const struct van_seg *seg, unsigned nseg, const uint64_t *only,
                                bool to_target, struct chain_wait *wait, struct queue *entries);
void chain_append(struct chain_stream *st, struct chain_entry *e);
/* The next member has acknowledged: these entries are released, in turns, and what waited for them goes on. */
void chain_stream_ack(struct chain_stream *st, const struct chain_ack *ack);
/* Appends the first of the entries of ended streams to each stream that has some of its partitions. Without any it is
 * acknowledged, but not to a member before us where we have left the chain. Returns what it has cost (RECORDS_TURN). */
unsigned chain_route(struct chain *c);
/* Puts a message about partitions, which has no rows, behind all such entries. */
MUST_USE paramo_err chain_route_behind(struct chain *c, const struct chain_message *m);
/* Frees the entries; no answers are sent. No source may be left that waits for one. */
void chain_cancel(struct queue *entries);
void chain_wait_done(struct chain_wait *wait);
void chain_tick_init(struct chain *c);
void chain_tick_start(struct chain *c);
/* The shard closes: ends the tick and all streams, without answers. */
void chain_streams_close(struct chain *c);
/* Handles what waited, if the shard may serve again. */
void chain_reopen(struct shard *s);
struct chain_stream *chain_stream_open(struct chain *c, const struct view_node *node, struct chain_name to);
/* Connects each stream that has no connection. */
void chain_connect(struct chain *c);
/* Appends its entries to `entries`, with some that are acknowledged. */
void chain_stream_close(struct chain *c, struct chain_stream *st, struct queue *entries);
void chain_send_all(struct chain *c);

#endif
