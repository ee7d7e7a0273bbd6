/*
 * A follower's side: connections from the chain's previous members, and the messages on them. It must never know
 * which member is next: succession.h does. Tests: test/worker/test_chain_sim.c.
 */
#ifndef SERVER_REPLICATION_FOLLOW_H
#define SERVER_REPLICATION_FOLLOW_H

#include "server/replication/chain_impl.h"
#include "wire/hello.h"

void follow_accept(struct shard *s, struct van_conn *conn, const struct hello *hello);
/* Closes the connections that sent nothing after HELLO. */
void follow_guests_close(struct chain *c);
void follow_forget(struct chain *c, struct chain_source *source);
/* Remembers how long the source may serve reads by our last answer. */
void follow_lease(struct chain *c, const struct chain_source *source);

#endif
