/*
 * Answers of a shard and their memory: frames from the shard's pool, a backlog for each peer that the van
 * cannot send to now. It must never know what was asked for. Tests: test/server/test_shard.c.
 */
#ifndef SERVER_SHARD_REPLY_H
#define SERVER_SHARD_REPLY_H

#include "server/shard/shard_impl.h"

/* Answers head with a status; text only for errors. */
void reply_status(struct peer *peer, const struct wire_head *head, paramo_err status, const char *text);
void reply_moved(struct peer *peer, const struct wire_head *head);
void reply_probe(struct peer *peer, const struct wire_head *head, uint32_t what);
/* A reply with room for the bytes in its buffer; NULL: an error has been answered. */
struct reply *reply_begin(struct peer *peer, const struct wire_head *head, size_t bytes);
void reply_seg(struct reply *reply, unsigned seg, size_t offset, size_t bytes);
/* Segment seg, the last, lies in memory that may change after reply_send; the buffer has room for it. */
void reply_lend(struct reply *reply, unsigned seg, const void *data, size_t bytes);
void reply_send(struct peer *peer, struct reply *reply, const struct wire_head *head, bool lens,
                uint32_t count, uint32_t column);
/* Sends a captured answer, to the latest attempt. */
void reply_late(struct peer *peer, struct reply *reply, const struct wire_head *head);
void reply_kept(struct peer *peer, const struct wire_head *head, paramo_err status, struct kept_answer *kept);
void reply_free(struct reply *reply);
void reply_backlog(struct peer *peer);
void kept_unref(struct kept_answer *kept);

#endif
