/*
 * A shard's part of a checkpoint, saved while it serves (shard_save). Blocking jobs write the file; the lane
 * hands rows over, a few at a time:
 *
 *     lane:          senders' records; a snapshot of every table (table/table_snapshot.h)
 *                    between requests: table --rows--> buffers, one per group of partitions
 *                                                          | full
 *     blocking job:  sort, encode, write <-----------------+          at the end: sync
 *
 * When SAVE_QUEUE_BYTES wait for the disk, changes of rows that are not copied yet wait, too; nothing else
 * does. An error ends the saving and nothing else: its file is removed, and done says why.
 *
 * A saving contains only changes if the shard's last saving was that of the base, and its partitions are the
 * same: the keys that were removed, then the rows that changed. A table whose changes are not known is
 * CLEARED in the shard's partitions and saved whole. Later blocks win, so that is right, too.
 *
 * It must never know when checkpoints are due, or how a manifest looks (cluster/checkpoint/ckpt.h). One
 * saving at a time, on the shard's lane. Tests: test/server/test_saving.c, test/e2e/checkpoint.sh.
 */
#ifndef SERVER_SNAPSHOT_SAVING_H
#define SERVER_SNAPSHOT_SAVING_H

#include "cluster/checkpoint/ckpt.h"
#include "env/blocking_job.h"
#include "env/fs.h"
#include "server/shard/shard.h"

struct shard_table;
struct wire_head;

enum {
    SAVE_QUEUE_BYTES = 16 << 20, /* rows that wait for the disk */
    SAVE_BUFFER_BYTES = 512 << 10,
    SAVE_GROUPS = 16 /* of partitions: a block has rows of one, so that others need not read it */
};

/* fs and blocking jobs outlive the saving or loading. */
struct shard_save_config {
    struct fs *fs;
    struct blocking_jobs *blocking_jobs;
    const char *dir; /* copied */
    uint64_t number, id;
    uint64_t base_id;   /* of the checkpoint that this one adds to; 0: it is full */
    bool changes;       /* another may add to this one: changes are remembered from here on */
    uint32_t term;      /* of the scheduler that has ordered it; 0: nobody's */
    uint32_t hold_ms;   /* shard_load_hold: it ends by itself after so long */
    size_t queue_bytes; /* rows that may wait for the disk; 0: SAVE_QUEUE_BYTES */
    void *arg;
    /* Once, from a round of the lane, or from shard_close (CLOSED). file: on OK; with text on the lane's
     * thread. */
    void (*done)(void *arg, paramo_err status, const struct ckpt_file *file);
};

/* The cut is taken when it returns: what was applied is in, what comes later is not. On an error done does
 * not come. AGAIN: there is another. CANCELLED, of all that a scheduler orders (term): another leads by now.
 */
MUST_USE paramo_err shard_save(struct shard *s, const struct shard_save_config *config);
/* Gives up the saving of this number (0: whichever), if it goes on; done comes. */
void shard_save_drop(struct shard *s, uint64_t number);
struct saving;
/* The number of its checkpoint: for who looks on (the simulator). */
uint64_t saving_number(const struct saving *sv);

/* A change that must wait: rows that it changes are to be saved, and the disk is behind. */
bool saving_holds(const struct shard *s, const struct wire_head *h, const struct van_seg *seg);
/* Rows of the table that are removed are to be saved first, and the disk is behind. */
bool saving_behind(const struct shard *s, const struct shard_table *t);
void saving_close(struct shard *s);
/* The shard has another view: what a scheduler of an earlier term has ordered is given up, and not in the way
 * of the next, although a blocking job may be at it still. */
void saving_new_view(struct shard *s);
/* CANCELLED: a scheduler of an earlier term has ordered it. */
MUST_USE paramo_err saving_check_term(const struct shard *s, uint32_t term);
/* What is under way to those who follow has to be acknowledged before the checkpoint is whole. */
void saving_mark(struct shard *s);
/* Something was acknowledged, or the view is another. */
void saving_check(struct shard *s);

#endif
