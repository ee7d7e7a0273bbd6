/*
 * Records of senders in a checkpoint, added to those of a shard that loads it. A block has records of up to
 * 65,536 senders. It is decoded by the blocking job that reads it, and added in turns
 * (replication/records.h). Between two turns the shard may get views and messages, but handles no request.
 *
 * It must never know files, or which checkpoint is loaded. Tests: test/server/test_record_turns.c.
 */
#ifndef SERVER_SNAPSHOT_LOAD_RECORDS_H
#define SERVER_SNAPSHOT_LOAD_RECORDS_H

#include "cluster/checkpoint/ckpt.h"
#include "server/shard/shard_impl.h"

/* Of a block. */
struct load_records {
    uint32_t partition, partitions;
    struct sender_window *windows; /* one of the two; NULL: it is a block of the others */
    struct sender_note *notes;
    size_t n, at; /* at: the next one */
};

/* Any thread. block is one of CKPT_WINDOWS or CKPT_NOTES. CORRUPT: it is not valid. */
MUST_USE paramo_err load_records_decode(const struct ckpt_block *block, struct load_records *records);
void load_records_fini(struct load_records *records);
/* Adds records on those of the block's partitions that are in `own`, until the turn is used up, or all are added:
 * *done. The result covers the numbers of the checkpoint, which are in its rows, and the numbers applied here,
 * which the loaded rows replace on purpose. */
MUST_USE paramo_err load_records_turn(struct shard *s, const bool own[RING_PARTITIONS],
                                      struct load_records *records, bool *done);

#endif
