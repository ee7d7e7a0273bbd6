/*
 * The keys of a request to a handler: their hash, which tells whether a repeat has the same, their order and owners,
 * and the sum of the lengths. A request may have millions of keys, so they are examined in portions; slice.c gives a
 * long request a turn for each, and its connection's later requests wait behind it. It must never know what a handler
 * does. Tests: test/server/test_shard.c.
 */
#ifndef SERVER_SHARD_EXAMINING_H
#define SERVER_SHARD_EXAMINING_H

#include "server/shard/shard_impl.h"

/* How far the keys of one request are examined. Zero it before. */
struct examination {
    bool begun;
    bool bad;                    /* an error in the portion from `at` on */
    uint32_t at;                 /* the keys before are examined: */
    uint64_t hash, sum;          /* sum: of their lengths */
    uint64_t partitions_changed; /* of the shard when it began: owners are as then */
};

/* Does the request need turns? */
bool examining_long(struct shard *s, const struct wire_head *head);
/* Are its keys examined, by the present owners? */
bool examining_done(const struct shard *s, const struct examination *x, const struct wire_head *head);
/* The next portion; of a request that is not long, all keys. */
void examining_step(const struct shard *s, const struct shard_table *t, const struct wire_head *head,
                    const struct van_seg *seg, struct examination *x);
/* The error that was found, if any. */
MUST_USE paramo_err examining_error(const struct shard *s, const struct shard_table *t,
                                    const struct wire_head *head, const struct van_seg *seg,
                                    const struct examination *x);

#endif
