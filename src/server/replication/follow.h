/*
 * A follower's side: connections from the member before, what comes on them, and the records of the owners
 * that it follows. It must never know which member is next: forward.h does. Tests:
 * test/worker/test_chain_sim.c.
 */
#ifndef SERVER_REPLICATION_FOLLOW_H
#define SERVER_REPLICATION_FOLLOW_H

#include "server/replication/chain_impl.h"

void follow_accept(struct shard *s, struct van_conn *conn, const struct hello *hello);
/* Closes the connections that sent nothing after HELLO. */
void follow_guests_close(struct chain *c);
void follow_advance(struct chain_source *source);
void follow_ack(struct chain_source *source);
/* Acknowledges at the end of this round of the lane. */
void follow_ack_soon(struct chain_source *source);
void follow_forget(struct chain *c, struct chain_source *source);
/* Remembers how long the source may serve reads by our last answer. */
void follow_lease(struct chain *c, const struct chain_source *source);
/* Found or made; NULL: no memory. */
struct chain_sender *follow_sender(struct chain_origin *o, const struct sender_id *id);
void follow_sender_free(struct chain_origin *o, struct chain_sender *x);
/* Raises the floor of the record that a FORGET names, and frees the record if it is empty then. */
void follow_sender_forget(struct chain_origin *o, const struct chain_message *m);
struct chain_origin *follow_origin(struct chain *c, struct chain_name name);
/* An origin outside the chain. follow_origin_fini of NULL does nothing. */
struct chain_origin *follow_origin_make(struct chain_name name);
void follow_origin_fini(struct chain_origin *o);
/* The partitions on which this shard follows the origin. */
void follow_partitions(const struct chain *c, const struct chain_origin *o, uint64_t partitions[CHAIN_WORDS]);

#endif
