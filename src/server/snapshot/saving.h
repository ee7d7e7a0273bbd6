/*
 * A shard's part of a checkpoint, saved while it serves (shard_save). Blocking jobs write the file; the lane
 * hands rows over, a few at a time:
 *
 *     lane:          senders' records, in turns (save_records.h); a snapshot of every table
 *                    (table/table_snapshot.h)
 *                    between requests: table --rows--> buffers, one per group of partitions
 *                                                          | full
 *     blocking job:  sort, encode, write <-----------------+          at the end: sync
 *
 * While rows of a dense table are being removed, or records of senders pass from one shard to another, the saving
 * waits: these steps of the lane end by themselves, and it holds nothing up until then (saving_phase).
 *
 * When SAVE_QUEUE_BYTES wait for the disk, changes of rows that are not copied yet wait, too; nothing else
 * does. An error ends the saving and nothing else: its file is removed, and done says why.
 *
 * A saving contains only changes if the shard's last saving was that of the base, and its partitions are the same:
 * the keys that were removed, then the rows that changed. A table whose changes are not known is CLEARED in the
 * shard's partitions and saved whole: later blocks replace earlier ones.
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
#include "server/shard/shard_impl.h"

struct saving;

struct shard_saves {
    struct saving *current; /* NULL: none is in progress */
    struct saving *left;    /* aborted; a blocking job still removes its file */
    uint64_t id;            /* the checkpoint since which changes of all our partitions are known; 0: none */
};

/* Is a saving in progress? */
static inline bool saving_now(const struct shard *s)
{
    return s->saves->current != NULL;
}

/* Not all changes since the last checkpoint are known any more: the next saving is full. */
void saving_lose_base(struct shard *s);

/*
 *              the shard is ready          all records are collected: the
 *              to be copied                snapshots are taken in that step
 *     WAITING ---------------> COLLECTING ---------------> COPYING
 *         ^                         |
 *         +-------------------------+   it is not ready any more: what was collected is dropped
 */
enum saving_phase {
    SAVING_WAITING,    /* nothing is held up */
    SAVING_COLLECTING, /* records of senders; changes wait */
    SAVING_COPYING
};

enum {
    SAVE_QUEUE_BYTES = 16 << 20, /* rows that wait for the disk */
    SAVE_BUFFER_BYTES = 512 << 10,
    SAVE_GROUPS = 16 /* of partitions: a block has rows of one group, so that readers skip the others */
};

/* fs and blocking jobs outlive the saving or loading. */
struct shard_save_config {
    struct fs *fs;
    struct blocking_jobs *blocking_jobs;
    const char *dir; /* copied */
    uint64_t number, id;
    uint64_t base_id;   /* of the checkpoint that this one adds to; 0: it is full */
    bool changes;       /* another may add to this one: changes are remembered from here on */
    uint32_t term;      /* of the scheduler that ordered it; 0: no scheduler did */
    uint64_t order;     /* its number: a later order has a higher one, also of a later scheduler */
    uint32_t hold_ms;   /* shard_load_hold: the hold ends after this time; shard_save: it waits no longer */
    size_t queue_bytes; /* rows that may wait for the disk; 0: SAVE_QUEUE_BYTES */
    void *arg;
    /* Called once, from a round of the lane or from shard_close (CLOSED). file is set on OK; on an error this
     * thread's message says why. */
    void (*done)(void *arg, paramo_err status, const struct ckpt_file *file);
};

/* Takes the snapshot as soon as the shard is ready, perhaps at once: it has all changes that are applied now, and
 * perhaps later ones. While senders' records are collected for it, changes wait. On an error done is not called. AGAIN
 * (also to done): another saving or load is in progress, partitions change owners, or the shard was not ready within
 * hold_ms. CANCELLED (here and in loading.h): a scheduler of a later term leads. */
MUST_USE paramo_err shard_save(struct shard *s, const struct shard_save_config *config);
/* Aborts the saving of this number (0: any), if it is in progress; done is called. */
void shard_save_drop(struct shard *s, uint64_t number);
/* For the simulator. number: of its checkpoint. */
enum saving_phase saving_state(const struct saving *sv, uint64_t *number);

/* The sender is about to be freed. */
void saving_sender_gone(struct shard *s, const struct sender *sender);

/* Must this change wait? The snapshot is not taken yet; or its rows are not saved yet, and the disk is behind. */
bool saving_holds(const struct shard *s, const struct wire_head *h, const struct van_seg *seg);
/* Must rows of the table stay? They are not saved yet, and the disk is behind. */
bool saving_behind(const struct shard *s, const struct shard_table *t);
void saving_close(struct shard *s);
/* The shard has a new view. A saving that a scheduler of an earlier term ordered is aborted. It does not
 * block the next one, even if a blocking job still works for it. */
void saving_new_view(struct shard *s);
/* CANCELLED: a scheduler of an earlier term ordered it. */
MUST_USE paramo_err saving_check_term(const struct shard *s, uint32_t term);
/* Marks in each stream what must be acknowledged before the checkpoint is complete. */
void saving_mark(struct shard *s);
/* An acknowledgement or a new view came. */
void saving_check(struct shard *s);

#endif
