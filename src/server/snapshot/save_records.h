/*
 * Records of senders for a checkpoint. A shard may have 65,536 senders, so they are copied in turns
 * (replication/records.h). From the first turn to the last, changes wait (saving_holds). So the copies are the
 * records as they are at the last turn, when the tables' snapshots are taken. The blocking job that writes the
 * checkpoint encodes and frees them.
 *
 * A sender that is freed between two turns is skipped: it never sends again. One that comes has nothing
 * recorded.
 *
 * It must never know tables, or when a checkpoint is due. Tests: test/server/test_record_turns.c,
 * test/server/test_saving.c.
 */
#ifndef SERVER_SNAPSHOT_SAVE_RECORDS_H
#define SERVER_SNAPSHOT_SAVE_RECORDS_H

#include "cluster/checkpoint/ckpt.h"
#include "server/shard/shard_impl.h"

struct save_notes;

struct save_records {
    const struct shard *shard;
    uint64_t partitions[PARTITION_WORDS]; /* the shard's */
    const struct sender *next;            /* to be visited */
    /* numbers applied on all partitions, then notes: on some */
    struct sender_window *windows;
    size_t windows_count, windows_room;
    struct save_notes *notes, *notes_last;
    uint64_t spent; /* by all turns; for tests */
};

MUST_USE paramo_err save_records_begin(struct save_records *records, const struct shard *s,
                                       const uint64_t partitions[PARTITION_WORDS]);
/* Visits senders until the turn is used up, or all are visited: *done. */
MUST_USE paramo_err save_records_turn(struct save_records *records, bool *done);
/* The sender is about to be freed. */
void save_records_sender_gone(struct save_records *records, const struct sender *sender);
/* All turns are over. Any thread. */
MUST_USE paramo_err save_records_put(const struct save_records *records, struct ckpt_writer *writer);
void save_records_fini(struct save_records *records);

#endif
