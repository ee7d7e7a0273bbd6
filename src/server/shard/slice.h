/*
 * One request, from its arrival to the module that answers it. slice.c checks the frame, fences senders whose
 * incarnation is over, defers what cannot be handled now, drops repeats, and hands the rest to apply,
 * handling or scanning. It must never know what a value means. Tests: test/server/test_shard.c,
 * test/worker/test_exactly_once_sim.c.
 */
#ifndef SERVER_SHARD_SLICE_H
#define SERVER_SHARD_SLICE_H

#include "server/shard/kept.h"

extern const struct van_user shard_van_user;
/* Raises the sender's floor: all its numbers below are over, on every shard. */
void shard_floor(struct shard *s, struct sender *sender, uint64_t floor);
/* Handles slices that waited for a view. */
void slice_resume_view_deferred(struct shard *s);
/* The backlog has left: handles the slices that waited for it. An error closes the connection. */
MUST_USE paramo_err slice_resume(struct peer *peer);
void slice_resume_all(struct shard *s);
/* The timer of long requests to handlers, whose keys are examined in turns. */
void slice_examine(struct lane_timer *timer);
/* May a slice that reads be handled now? */
bool slice_may_read(const struct peer *peer, const struct wire_head *head, const struct van_seg *seg);
/* May a change that was collected (collecting.h) be made now, though its connection may defer what came later? If not
 * because of the view, slice_waits_for_view. */
bool slice_may_change(const struct peer *peer, const struct wire_head *head, const struct van_seg *seg);
bool slice_waits_for_view(const struct shard *s);
/* Is it new on all partitions, of a sender that is not over, and made by a view that still holds? */
bool slice_is_whole(const struct peer *peer, const struct wire_head *head);
/* Handles a slice that was collected, and frees it. */
void slice_handle_kept(struct kept *k);
/* Handles a deferred slice again; an error closes the connection. */
void slice_handle_again(struct peer *peer, const struct wire_head *head, const struct van_seg *seg,
                        unsigned nseg);

#endif
