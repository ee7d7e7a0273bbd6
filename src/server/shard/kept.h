/*
 * Slices that cannot be handled yet: they wait for a view, or behind what their connection waits for. Their number and
 * bytes are bounded; a slice beyond the bound is dropped, as if it was lost on the way. slice.c says when a slice waits,
 * and handles it later. This module never knows why. Tests: test/server/test_shard.c.
 */
#ifndef SERVER_SHARD_KEPT_H
#define SERVER_SHARD_KEPT_H

#include "server/shard/shard_impl.h"

/* Both copy the slice, or take over *hold, which keeps its bytes already. */
void kept_defer_for_view(struct peer *peer, const struct wire_head *head, const struct van_seg *seg,
                         unsigned nseg, struct van_hold **hold);
void kept_defer(struct peer *peer, const struct wire_head *head, const struct van_seg *seg, unsigned nseg,
                struct van_hold **hold);
/* Drops slices of this peer (NULL: of all peers past the deadline) that wait for a view. */
void kept_drop_for_view(struct shard *s, const struct peer *peer, uint64_t now);
void kept_drop(struct peer *peer);
void kept_free(struct kept *k);

#endif
