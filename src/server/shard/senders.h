/*
 * The records of senders, and the connections (peers) on which their requests arrive. A record is kept while its
 * worker may return, and freed when the view says that its incarnation is over, or its customer is closed. This
 * module never knows what a request asks for. Tests: test/worker/test_senders.c, test/server/test_record_turns.c.
 */
#ifndef SERVER_SHARD_SENDERS_H
#define SERVER_SHARD_SENDERS_H

#include "server/shard/shard_impl.h"

struct shard_senders {
    struct shard *shard;
    struct sender *first;
    struct sender *bucket[SHARD_SENDER_BUCKETS]; /* the same, by name */
    size_t count;
    size_t most; /* beyond it no connection of a new sender is accepted: SHARD_SENDERS_MAX, fewer in tests */
    struct {     /* shard_senders_check, in turns: it holds nothing, both lists may change between them */
        bool on;
        bool again;            /* it restarts at its end: there is a newer view */
        struct peer *peer;     /* the next one, and after the last ... */
        struct sender *sender; /* ... the next one of these */
        struct lane_timer timer;
        uint64_t spent; /* by all turns; for tests */
    } check;
};

static inline size_t senders_count(const struct shard *s)
{
    return s->senders->count;
}

/* Is there no room for the connection of a sender that has no record yet? */
static inline bool senders_full(const struct shard *s)
{
    return s->senders->count >= s->senders->most;
}

/* The first of all records; sender->next is the next one. */
static inline struct sender *senders_first(const struct shard *s)
{
    return s->senders->first;
}

enum sender_life { LIFE_UNKNOWN, LIFE_ALIVE, LIFE_OVER };

void senders_init(struct shard *s);
/* Frees all records; no peer is left. */
void senders_close(struct shard *s);
/* UNKNOWN: the view may be older than the incarnation. known: a view has had it. */
enum sender_life sender_life(const struct shard *s, uint32_t id, uint64_t incarnation, bool known);
/* NULL: there is none. */
struct sender *shard_sender_find(const struct shard *s, const struct sender_id *id);
/* Found or made; NULL: no memory. */
struct sender *shard_sender(struct shard *s, const struct sender_id *id);
/* No connection refers to it. */
void shard_sender_free(struct shard *s, struct sender *sender);
/* Closes connections of dead senders, and frees the records of senders that are over: in turns of less than a
 * millisecond, the first one now. Until it comes to a dead sender, the sender's requests are fenced. */
void shard_senders_check(struct shard *s);
/* The connection is closed already: frees the peer, and its sender when nothing is left of it. */
void shard_peer_forget(struct shard *s, struct peer *peer);

#endif
