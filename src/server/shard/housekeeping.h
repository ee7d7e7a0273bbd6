/*
 * The timer by which a shard removes what no sender asks for again: slices that wait for a view, deferred requests,
 * pages of scans, connections of nodes that were in no view. shard.c gives the function that the timer calls. This
 * module never knows how any of these is removed. Tests: test/server/test_shard.c.
 */
#ifndef SERVER_SHARD_HOUSEKEEPING_H
#define SERVER_SHARD_HOUSEKEEPING_H

#include "server/shard/shard_impl.h"

struct shard_housekeeping {
    struct shard *shard;
    bool (*needed)(const struct shard *s); /* is there something to remove later? */
    void (*keep)(struct shard *s);         /* removes what is due */
    struct lane_timer timer;
};

void housekeeping_init(struct shard *s, bool (*needed)(const struct shard *s), void (*keep)(struct shard *s));
void housekeeping_close(struct shard *s);

/* Starts the timer if there is something to remove later. */
void housekeeping_schedule(struct shard *s);

#endif
