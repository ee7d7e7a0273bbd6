/*
 * Answers of a shard and their memory: frames from the shard's pool, a backlog for each peer that the van
 * cannot send to now. A reply is made first, and then leaves by reply_leave or, when it had to wait for
 * replicas, by reply_late: all answers take one path. It must never know what was asked for. Tests:
 * test/server/test_shard.c.
 */
#ifndef SERVER_SHARD_REPLY_H
#define SERVER_SHARD_REPLY_H

#include "server/shard/shard_impl.h"

/* A handler's answer, shared by the record and the frames that carry it: segments lie in data, or in an
 * array. */
struct kept_answer {
    atomic_uint refs;
    size_t bytes; /* of all segments */
    unsigned nseg;
    struct van_seg seg[VAN_SEGS];
    struct paramo_array *array[VAN_SEGS];
    _Alignas(8) uint8_t data[];
};

struct reply {
    struct van_frame frame;
    struct shard *shard;
    struct reply *next;
    void *buffer; /* the shard's pool */
    size_t buffer_bytes;
    bool lent; /* the last segment is the table's; the buffer has room for it */
    struct kept_answer *kept;
    struct filter_memory *coding; /* of a filtered answer, from the pool; NULL: it is not filtered */
};

struct shard_replies {
    struct reply *free;
    size_t free_count;
    _Atomic size_t out; /* written on the lane */
};

/* Frees the cached replies; none is out. */
void reply_fini(struct shard *s);
/* Answers that have not left yet. Any thread. */
size_t reply_out(const struct shard *s);

/* Answers head with a status; text only for errors. */
void reply_status(struct peer *peer, const struct wire_head *head, paramo_err status, const char *text);
void reply_moved(struct peer *peer, const struct wire_head *head);
void reply_probe(struct peer *peer, const struct wire_head *head, enum probe_found what);
/* PROBE_LACKS: the request was dropped, and the connection has a new filter epoch. why: bits of enum probe_lacks. */
void reply_lacks(struct peer *peer, const struct wire_head *head, uint16_t epoch, unsigned why);
/* An unfinished reply with room for the bytes in its buffer; on an error there is none. */
MUST_USE paramo_err reply_make(struct shard *s, size_t bytes, struct reply **reply);
/* Like reply_make(), for the answer to head. NULL: no memory, and the error has been answered. */
struct reply *reply_begin(struct peer *peer, const struct wire_head *head, size_t bytes);
void reply_seg(struct reply *reply, unsigned seg, size_t offset, size_t bytes);
/* Segment seg, the last, lies in memory that may change after reply_send; the buffer has room for it. */
void reply_lend(struct reply *reply, unsigned seg, const void *data, size_t bytes);
void reply_send(struct peer *peer, struct reply *reply, const struct wire_head *head, bool lens,
                uint32_t count, bool more);
/* A finished reply with a status; NULL: no memory, as if the answer was lost. */
struct reply *reply_of_status(struct shard *s, const struct wire_head *head, paramo_err status,
                              const char *text);
/* Completes the head of a reply with values. more: the scan has rows left. */
void reply_finish(struct reply *reply, const struct wire_head *head, bool lens, uint32_t count, bool more);
/* Copies what the reply lends: it can be kept while the memory changes. */
void reply_own(struct reply *reply);
/* Sends a finished reply, or puts it after those that the van cannot take now. */
void reply_leave(struct peer *peer, struct reply *reply);
/* Sends a finished reply that was kept, to the latest attempt. */
void reply_late(struct peer *peer, struct reply *reply, const struct wire_head *head);
void reply_kept(struct peer *peer, const struct wire_head *head, paramo_err status, struct kept_answer *kept);
void reply_free(struct reply *reply);
void reply_backlog(struct peer *peer);
void kept_unref(struct kept_answer *kept);

#endif
