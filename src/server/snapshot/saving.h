/*
 * A shard's part of a checkpoint: taken while it serves (shard_save), and taken back (shard_load). Files are
 * read and written in blocking jobs; the lane hands rows over, or takes them, a little at a time.
 *
 *     shard_save: the senders' records at once; a cut of every table (table_snapshot.h); then, between
 * requests, table --rows--> buffers by groups of partitions --full--> blocking job: sorted, encoded, written,
 * at the end synced When SAVE_QUEUE_BYTES wait for the disk, changes of rows that are not given out yet wait,
 * too, and nothing else does. An error anywhere ends the saving and nothing else: its file is removed, done
 * says why.
 *
 * Only what has changed is saved if the shard's last saving was that of the base, and the partitions are
 * those of then: a table's keys that went, then its rows that changed. A table whose changes are not known
 * (all of them, on a shard that took partitions over, or has another base) is CLEARED in the shard's
 * partitions and saved whole, which is as right: what comes later wins.
 *
 *     shard_load_hold, shard_load, shard_load_go: clears the checkpoint's tables, takes the rows of this
 * shard's partitions, of those that it follows, too; requests wait meanwhile. An error leaves these tables
 * lost (DATA_LOST), until they are cleared or loaded.
 *
 *     shard_restore: the same of the rows that are lost, and that the view says come back
 *
 * All on the shard's lane. One at a time. Tests: test/server/test_saving.c, test/e2e/checkpoint.sh.
 */
#ifndef SERVER_SNAPSHOT_SAVING_H
#define SERVER_SNAPSHOT_SAVING_H

#include "cluster/checkpoint/ckpt.h"
#include "env/blocking_job.h"
#include "env/fs.h"
#include "server/shard/shard.h"

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
/* Takes rows and records of checkpoint `number`, whose id it must have. file is NULL in done. One of this id
 * that goes on already ends with CANCELLED: the scheduler that wanted it is gone. After a hold requests wait
 * on until shard_load_go. TIMEOUT: there are copies, and this shard does not hold (any more): it has served
 * requests meanwhile, so what copies have may be of before their load, or of after it. */
MUST_USE paramo_err shard_load(struct shard *s, const struct shard_save_config *config);
/* Before a load where there are copies. From now on requests wait; done comes when whoever is behind in a
 * chain has all that was done here. So with all shards held nothing is on its way that some have and others
 * have not, and it stays so until all have loaded. It ends with shard_load_go; by itself after hold_ms, or
 * with a view of another scheduler, who knows nothing of it: what has been loaded by then is lost, for others
 * may not have. */
MUST_USE paramo_err shard_load_hold(struct shard *s, const struct shard_save_config *config);
/* Takes rows and records of checkpoint `number` for what of this shard's partitions is lost by the view and
 * is to be restored (struct view, lost), of nothing else; requests wait since that view, and go on with the
 * end of this. An error leaves it lost, and requests waiting: it is to be done again. What else goes on is
 * given up: AGAIN while that is not over. */
MUST_USE paramo_err shard_restore(struct shard *s, const struct shard_save_config *config);
/* Nothing if that is not held or loaded. What is not loaded whole by now is lost. TIMEOUT: the shard has let
 * that load go before, and its rows are lost: the load has failed. */
MUST_USE paramo_err shard_load_go(struct shard *s, uint64_t id);

struct saving;
struct loading;
/* The number of its checkpoint: for who looks on (the simulator). */
uint64_t saving_number(const struct saving *sv);
/* HOLDING --> HELD --> LOADING --> LOADED; without a hold it is LOADING, and over with that. */
enum loading_phase { HOLDING, HELD, LOADING, LOADED };
/* For who looks on (the simulator): the phase, and which of the shard's loads it is. True: only what is lost
 * is restored. */
bool loading_state(const struct loading *ld, enum loading_phase *phase, uint64_t *number);

#endif
