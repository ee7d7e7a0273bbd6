/*
 * Releasing: the entries of a stream that an ACK covers end, in turns. An ACK may cover a full stream, 16,384 entries
 * with as many answers, or more after a routed one. It must never know connections, nor what is sent. Tests:
 * test/worker/test_release.c.
 */
#ifndef SERVER_REPLICATION_RELEASING_H
#define SERVER_REPLICATION_RELEASING_H

#include "server/replication/chain_impl.h"

/* Entries that are not acknowledged are counted, and what is marked in a stream has been in it. */
static inline void chain_stream_check(const struct chain_stream *st)
{
    assert(st->acked <= st->seq && st->count <= st->seq - st->acked);
    assert(!queue_empty(&st->entries) || (!st->count && !st->bytes && !st->unsent));
    assert(st->gate <= st->seq && st->mark <= st->seq && st->saved <= st->seq);
    assert(!st->conn || !st->connector);
}

/* Does an ACK cover it that is still being worked on? */
bool releasing_covers(const struct chain_stream *st, const struct chain_entry *e);
/* The ACK takes the place of an earlier one. Its bits are borrowed for this call. Has the first turn, unless one is
 * due. */
void releasing_ack(struct chain_stream *st, const struct chain_ack *ack);
/* A turn; the next one is due when st->release.timer fires. */
void releasing_turn(struct chain_stream *st);

#endif
