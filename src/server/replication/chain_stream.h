/*
 * Streams to the next members of chains: the connection, what was sent, what must be sent again. It must never know
 * what a new view means (succession.h does), nor which partitions an entry is for. Tests:
 * test/worker/test_chain_sim.c.
 */
#ifndef SERVER_REPLICATION_CHAIN_STREAM_H
#define SERVER_REPLICATION_CHAIN_STREAM_H

#include "server/replication/chain_impl.h"

/* NULL: no memory. Without a connection until chain_connect. */
struct chain_stream *chain_stream_open(struct chain *c, const struct view_node *node, struct chain_name to);
/* Appends its entries to `entries`, with some that are acknowledged. */
void chain_stream_close(struct chain *c, struct chain_stream *st, struct queue *entries);
/* The entry is the stream's last. Sends nothing. */
void chain_append(struct chain_stream *st, struct chain_entry *e);
void chain_send_all(struct chain *c);
/* Connects each stream that has no connection. */
void chain_connect(struct chain *c);
/* The next member has acknowledged: these entries are released, in turns, with the answers that waited for them. */
void chain_stream_ack(struct chain_stream *st, const struct chain_ack *ack);
/* Each CHAIN_TICK_MS: connects, sends a beat, and sends all again that has waited too long for an acknowledgement. */
void chain_stream_tick(struct chain_stream *st, uint64_t now);

#endif
