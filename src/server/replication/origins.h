/*
 * Origins: the owners whose partitions a shard follows, and for each the records of its senders. It must never know
 * what a record says (shard/applied_window.h) or when it changes hands (records.h). Tests:
 * test/worker/test_senders.c.
 */
#ifndef SERVER_REPLICATION_ORIGINS_H
#define SERVER_REPLICATION_ORIGINS_H

#include "server/replication/chain_impl.h"

/* Found or made; NULL: no memory. */
struct chain_sender *origin_sender(struct chain_origin *o, const struct sender_id *id);
void origin_sender_free(struct chain_origin *o, struct chain_sender *x);
/* Raises the floor of the record that a FORGET names, and frees the record if it is empty then. */
void origin_sender_forget(struct chain_origin *o, const struct chain_message *m);
struct chain_origin *origin_get(struct chain *c, struct chain_name name);
/* An origin outside the chain. origin_fini of NULL does nothing. */
struct chain_origin *origin_make(struct chain_name name);
void origin_fini(struct chain_origin *o);
/* The partitions on which this shard follows the origin. */
void origin_partitions(const struct chain *c, const struct chain_origin *o, uint64_t partitions[CHAIN_WORDS]);

#endif
