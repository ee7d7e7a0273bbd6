/*
 * Streams to the next members of chains, and the answers that wait until these members have acknowledged. It
 * must never know what a new view means: succession.h does. Tests: test/worker/test_chain_sim.c.
 */
#ifndef SERVER_REPLICATION_FORWARD_H
#define SERVER_REPLICATION_FORWARD_H

#include "server/replication/chain_impl.h"

MUST_USE paramo_err chain_create(struct shard *s, struct chain **chain);
void chain_destroy(struct chain *c);
/* What a chain must have cannot be (no memory, or FULL: too many records apart); err and this thread's
 * message say why. This shard serves no more, and who made it is told, once. */
void chain_fail(struct chain *c, paramo_err err);
/* True: the shard may serve. False: it is told by slice_resume_all when it may. */
bool chain_open(struct shard *s);
/* Has the other end answered a CHAIN_BEAT that was sent less than CHAIN_LEASE_MS ago? */
bool chain_leased(const struct chain_stream *st);
/* Without this it always may. */
static inline bool chain_guarded(const struct chain *c)
{
    return c && (c->streams || c->wait_until || c->failed);
}
/* Before an owner's change, on `only` (NULL: all its partitions): *wait is NULL if nobody follows. Nothing is
 * sent yet. */
MUST_USE paramo_err chain_prepare(struct peer *peer, struct shard_table *t, const struct wire_head *head,
                                  const struct van_seg *seg, unsigned nseg, const uint64_t *only,
                                  struct chain_wait **wait);
void chain_abandon(struct chain_wait *wait);
/* Our own partitions, of `only` if that is given; partitions may be only. */
uint64_t *chain_only_mine(const struct chain *c, const uint64_t *only, uint64_t partitions[CHAIN_WORDS]);
/* The change has been made and recorded: it is sent, and answered when it has been acknowledged. */
void chain_commit(struct chain *c, const struct shard_table *t, struct chain_wait *wait,
                  const struct van_seg *seg, struct sender *sender, const uint64_t *only);
/* A repeat of what is not acknowledged yet: it waits for the same. */
bool chain_pending(struct sender *sender, const struct wire_head *head);
void chain_sender_gone(struct sender *sender);
/* Its followers hear how far it has come. False: no memory. */
bool chain_sender_floor(struct shard *s, const struct sender *sender);
/* With room for data; NULL: no memory. */
struct chain_entry *chain_entry_new(size_t bytes);
/* The message m with those of the rows that lie on partitions; NULL: no memory. */
struct chain_entry *chain_entry_make(const struct shard_table *t, const struct chain_message *m,
                                     const struct van_seg *seg, unsigned nseg, const uint64_t *partitions);
void chain_entry_free(struct chain_entry *e);
/* To all next members that have partitions of the message, and to a move's target if `gives`; queues the
 * entries.
 */
MUST_USE paramo_err chain_split(struct chain *c, const struct shard_table *t, const struct chain_message *m,
                                const struct van_seg *seg, unsigned nseg, const uint64_t *only,
                                bool to_target, struct chain_wait *wait, struct queue *entries);
void chain_append(struct chain_stream *st, struct chain_entry *e);
/* Those that others have sent us for these partitions are not acknowledged to them any more. */
void chain_leave(struct chain *c, const struct queue *entries, const uint64_t partitions[CHAIN_WORDS]);
/* Gives each entry, in order, to the stream that has its partitions; what nobody follows is acknowledged. */
void chain_route(struct chain *c, struct queue *entries);
/* Nobody gets an answer. No source may be left that waits for one. */
void chain_cancel(struct queue *entries);
void chain_wait_done(struct chain_wait *wait);
void chain_tick_start(struct chain *c);
/* May serve again? Then what waited is handled. */
void chain_reopen(struct shard *s);
struct chain_stream *chain_stream_open(struct chain *c, const struct view_node *node, struct chain_name to);
/* The connection, if there is none yet. */
void chain_connect(struct chain *c);
/* Its entries go to the end of `entries`. */
void chain_stream_close(struct chain *c, struct chain_stream *st, struct queue *entries);
void chain_send_all(struct chain *c);

#endif
