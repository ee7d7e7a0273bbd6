/*
 * Writing a checkpoint: claim a number, write one file per writer, commit the manifest last. Blocking: runs in a
 * blocking job, never on a lane. It never knows what a payload means. Tests: test/cluster/test_ckpt.c.
 */
#ifndef CLUSTER_CHECKPOINT_CKPT_WRITE_H
#define CLUSTER_CHECKPOINT_CKPT_WRITE_H

#include "cluster/checkpoint/ckpt_manifest.h"

struct ckpt_writer;

/* The number after all that are there, finished or not; 1 in an empty folder, or where there is none. */
MUST_USE paramo_err ckpt_next_number(struct fs *fs, const char *dir, uint64_t *number);
/* The same, and its folder is there, durably, before it is used: whoever comes later has a higher one,
 * although nothing is in it yet. So a number is one attempt's only, whichever scheduler or job its files are
 * of. */
MUST_USE paramo_err ckpt_claim(struct fs *fs, const char *dir, uint64_t *number);
/* One file of checkpoint number, by its writer-th writer; makes the folders. */
MUST_USE paramo_err ckpt_begin(struct fs *fs, const char *dir, uint64_t number, uint64_t id, uint32_t writer,
                               struct ckpt_writer **w);
/* In the order in which they will be read. After an error only ckpt_abort is left. */
MUST_USE paramo_err ckpt_put(struct ckpt_writer *w, const struct ckpt_block *block);
/* Ends and syncs the file, says what the manifest needs. Frees w in any case. */
MUST_USE paramo_err ckpt_end(struct ckpt_writer *w, struct ckpt_file *file);
void ckpt_abort(struct ckpt_writer *w); /* NULL is allowed; removes the file if it can */
/* The checkpoint is whole with this, and only if it is OK: after an error either may be. CORRUPT: a file is
 * missing or has another size, and there is no manifest. */
MUST_USE paramo_err ckpt_commit(struct fs *fs, const char *dir, const struct ckpt_manifest *m);

#endif
