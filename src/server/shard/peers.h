/*
 * The list of a shard's connections. senders.c says when one ends. This module never knows what comes over a
 * connection. Tests: test/worker/test_senders.c.
 */
#ifndef SERVER_SHARD_PEERS_H
#define SERVER_SHARD_PEERS_H

#include "server/shard/shard_impl.h"

struct shard_peers {
    struct peer *first;
    bool unknown; /* there may be connections of senders that no view has had */
};

/* The first connection; peer->next is the next one. */
static inline struct peer *peers_first(const struct shard *s)
{
    return s->peers->first;
}

/* May there be connections of senders that no view has had? */
static inline bool peers_unknown(const struct shard *s)
{
    return s->peers->unknown;
}

void peers_set_unknown(struct shard *s, bool unknown);
/* The peer belongs to the caller. */
void peers_add(struct shard *s, struct peer *peer);
void peers_remove(struct shard *s, struct peer *peer);

#endif
