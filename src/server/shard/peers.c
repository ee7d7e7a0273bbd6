#include "server/shard/peers.h"

#include <assert.h>

void peers_set_unknown(struct shard *s, bool unknown)
{
    s->peers->unknown = unknown;
}

void peers_add(struct shard *s, struct peer *peer)
{
    assert(peer->shard == s && !peer->prev && !peer->next && s->peers->first != peer);
    peer->next = s->peers->first;
    if (peer->next) {
        assert(!peer->next->prev); /* it was the first */
        peer->next->prev = peer;
    }
    s->peers->first = peer;
}

void peers_remove(struct shard *s, struct peer *peer)
{
    assert(peer->prev ? peer->prev->next == peer : s->peers->first == peer);
    assert(!peer->next || peer->next->prev == peer);
    if (peer->prev)
        peer->prev->next = peer->next;
    else
        s->peers->first = peer->next;
    if (peer->next)
        peer->next->prev = peer->prev;
}
