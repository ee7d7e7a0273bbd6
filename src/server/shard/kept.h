/*
 * Slices that cannot be handled yet: they wait for a view, or behind an earlier slice of their connection. Their
 * number and bytes are bounded. A slice beyond the bound is dropped, as if the network had lost it. slice.c says when
 * a slice waits, and handles it later. This module never knows why. Tests: test/server/test_shard.c.
 */
#ifndef SERVER_SHARD_KEPT_H
#define SERVER_SHARD_KEPT_H

#include "server/shard/examining.h"
#include "server/shard/shard_impl.h"

/* A slice that cannot be handled yet. */
struct kept {
    struct qnode node;
    struct peer *peer;
    struct wire_head head;
    struct van_seg seg[VAN_SEGS];
    unsigned nseg;
    struct van_hold *hold;
    size_t bytes;
    uint64_t deadline;
    struct examination examined; /* of a long request to a handler */
};

struct shard_kept {
    struct queue for_view; /* struct kept: slices that wait for a view */
    size_t count, bytes;
};

/* Slices that wait for a view, and their bytes. */
static inline size_t kept_for_view(const struct shard *s)
{
    return s->kept->count;
}

static inline size_t kept_for_view_bytes(const struct shard *s)
{
    return s->kept->bytes;
}

/* Takes all slices that wait for a view off their list. The caller owns them. */
struct queue kept_take_for_view(struct shard *s);
/* Puts a slice at the end of those that its connection defers. */
void kept_push(struct kept *k);
/* Like kept_push(), but before all others. */
void kept_push_first(struct kept *k);
/* Takes the first slice that the connection defers, which has one. The caller owns it. */
struct kept *kept_pop(struct peer *peer);
/* Is a slice of this sender and number kept for a view or by this connection? */
bool kept_has(const struct peer *peer, uint64_t number);

/* Copies n segments to memory of one hold. */
MUST_USE paramo_err kept_segments(struct peer *peer, const struct van_seg *from, unsigned n,
                                  struct van_seg *to, struct van_hold **hold);
/* This function and kept_defer() copy the slice, or take over *hold, which holds its bytes already. */
void kept_defer_for_view(struct peer *peer, const struct wire_head *head, const struct van_seg *seg,
                         unsigned nseg, struct van_hold **hold);
/* Like kept_defer_for_view(), for a slice that is kept already. */
void kept_wait_for_view(struct kept *k);
/* The memory that a kept slice of these segments takes. */
size_t kept_bytes(const struct van_seg *seg, unsigned nseg);
/* Copies the slice like kept_defer(); the caller owns it. NULL: no memory. */
struct kept *kept_make(struct peer *peer, const struct wire_head *head, const struct van_seg *seg,
                       unsigned nseg, struct van_hold **hold);
void kept_defer(struct peer *peer, const struct wire_head *head, const struct van_seg *seg, unsigned nseg,
                struct van_hold **hold);
/* Drops slices of this peer (NULL: of all peers past the deadline) that wait for a view. */
void kept_drop_for_view(struct shard *s, const struct peer *peer, uint64_t now);
void kept_drop(struct peer *peer);
void kept_free(struct kept *k);

#endif
