/*
 * Requests to USER tables and apps: handed to a handler once, answered by it later, the answer kept until the
 * sender's floor passes. It must never know what a request means. Tests: test/server/test_shard.c,
 * test/worker/test_app_request_sim.c.
 */
#ifndef SERVER_SHARD_HANDLING_H
#define SERVER_SHARD_HANDLING_H

#include "server/shard/shard_impl.h"

/* t NULL: a message. */
MUST_USE paramo_err handling_slice(struct peer *peer, struct shard_table *t, const struct wire_head *head,
                                   const struct van_seg *seg, unsigned nseg, struct van_hold **hold);
/* True: the number is a handler's, and the probe has been answered. */
bool handling_probe(struct peer *peer, const struct wire_head *head);
/* The sender's floor rose from `from` to its present value: frees kept answers below it. */
void handling_floor(struct shard *s, struct sender *sender, uint64_t from);
void handling_forget(struct shard *s, struct sender *sender);
/* Does a handler or a kept answer still refer to the sender? */
bool handling_any(const struct sender *sender);
void handling_close(struct shard *s);

#endif
