/*
 * Writing a checkpoint: claim a number, write one file per writer, commit the manifest last. Blocking: runs
 * in a blocking job, never on a lane. It never knows what a payload means. Tests: test/cluster/test_ckpt.c.
 */
#ifndef CLUSTER_CHECKPOINT_CKPT_WRITE_H
#define CLUSTER_CHECKPOINT_CKPT_WRITE_H

#include "cluster/checkpoint/ckpt_manifest.h"

struct ckpt_writer;

/* One more than the highest number in the folder, finished or not; 1 if the folder is empty or missing. */
MUST_USE paramo_err ckpt_next_number(struct fs *fs, const char *dir, uint64_t *number);
/* Like ckpt_next_number(), but creates the number's folder durably, so that any later claim gets a higher number. So
 * a number belongs to one attempt only, of one scheduler and one job. */
MUST_USE paramo_err ckpt_claim(struct fs *fs, const char *dir, uint64_t *number);
/* Begins one file of checkpoint `number`, for the writer with this index; creates the folders. */
MUST_USE paramo_err ckpt_begin(struct fs *fs, const char *dir, uint64_t number, uint64_t id, uint32_t writer,
                               struct ckpt_writer **w);
/* Blocks are read in the order in which they are put. After an error only ckpt_abort is allowed. */
MUST_USE paramo_err ckpt_put(struct ckpt_writer *w, const struct ckpt_block *block);
/* Ends and syncs the file and fills in its line of the manifest. Frees w in any case. */
MUST_USE paramo_err ckpt_end(struct ckpt_writer *w, struct ckpt_file *file);
void ckpt_abort(struct ckpt_writer *w); /* NULL is allowed; removes the file if it can */
/* After OK the checkpoint is whole. After an error it may be whole or not. CORRUPT: a file is missing or has
 * another size, and there is no manifest. */
MUST_USE paramo_err ckpt_commit(struct fs *fs, const char *dir, const struct ckpt_manifest *m);

#endif
