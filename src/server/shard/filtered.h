/*
 * Filters at a shard: undoes those of a request that arrives, and filters the answer to a request that reads, as its
 * sender has asked. Only this module knows filters (reply.c frees their memory). It is called where a
 * request arrives (slice.c) and where values are read (apply.c); the code between the two sees plain requests.
 *
 * The state of a connection's filters ends with the connection. If a request names a list or filter that this shard
 * lacks, the shard drops it, gives the connection a new filter epoch, and tells the sender (PROBE_LACKS). Until the
 * sender knows that, its requests have the old epoch and are dropped, too. Then it sends all of them again in order,
 * and names no list from before. So no request overtakes another, and none is misread. Tests:
 * test/worker/test_filtering.c, the simulator.
 */
#ifndef SERVER_SHARD_FILTERED_H
#define SERVER_SHARD_FILTERED_H

#include "server/shard/reply.h"
#include "server/shard/shard_impl.h"

struct shard_filters {
    struct filter_counts counts;
    struct filter_tools tools;
    size_t lists_bytes; /* of all connections */
};

/* A request has come. OK: seg and nseg are as without filters, and *hold keeps them if it is set; the caller
 * releases it. AGAIN: the request was dropped. PROTOCOL closes the connection. */
MUST_USE paramo_err filtered_in(struct peer *peer, struct wire_head *head, struct van_seg seg[VAN_SEGS],
                                unsigned *nseg, struct van_hold **hold);
/* Filters a finished answer of values, if its sender wants that. */
void filtered_answer(struct peer *peer, const struct shard_table *t, const struct wire_head *request,
                     const uint64_t *keys, struct reply *reply);
void filtered_peer_init(struct peer *peer);
void filtered_peer_fini(struct peer *peer);
void filtered_fini(struct shard *s);

#endif
