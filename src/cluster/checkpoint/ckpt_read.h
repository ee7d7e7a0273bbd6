/*
 * Reading checkpoints: list them, open one with all that it is based on, visit its blocks in order. Blocking:
 * runs in a blocking job, never on a lane. It never knows what a payload means. Tests:
 * test/cluster/test_ckpt.c, fuzz/fuzz_ckpt.c.
 */
#ifndef CLUSTER_CHECKPOINT_CKPT_READ_H
#define CLUSTER_CHECKPOINT_CKPT_READ_H

#include "cluster/checkpoint/ckpt_manifest.h"

/* A checkpoint and its bases. */
struct ckpt;

/* Calls each in ascending order of numbers. If status is not OK, m is NULL: NOT_FOUND is an unfinished
 * attempt, else the manifest is damaged (text says how). Returns NOT_FOUND if there is no such folder. */
MUST_USE paramo_err ckpt_list(struct fs *fs, const char *dir,
                              void (*each)(void *arg, uint64_t number, paramo_err status, const char *text,
                                           const struct ckpt_manifest *m),
                              void *arg);
/* number 0: the last that has a manifest. If that one is damaged, this is an error; older ones are not tried.
 * Checks the manifests and every file's size. NOT_FOUND, CORRUPT, FORMAT, IO. */
MUST_USE paramo_err ckpt_open(struct fs *fs, const char *dir, uint64_t number, struct ckpt **ckpt);
void ckpt_close(struct ckpt *ckpt);
/* Link 0 is the newest, link ckpt_links - 1 the full one. */
const struct ckpt_manifest *ckpt_manifest(const struct ckpt *ckpt, unsigned link);
unsigned ckpt_links(const struct ckpt *ckpt);
/* Returns blocks one by one, oldest checkpoint first: a later block replaces an earlier one. Blocks for which
 * wants returns false are skipped unread (NULL: none are). Each block is checked before it is returned, each
 * file at its end. A block is borrowed until the next call. CORRUPT names file and place; after an error only
 * close is allowed. */
struct ckpt_reader;
MUST_USE paramo_err ckpt_reader_open(const struct ckpt *ckpt, struct ckpt_reader **reader);
MUST_USE paramo_err ckpt_reader_next(struct ckpt_reader *reader,
                                     bool (*wants)(void *arg, const struct ckpt_block *b), void *arg,
                                     struct ckpt_block *block, bool *end);
/* The link (ckpt_manifest) of the block that wants is asked about, or that was returned last. */
unsigned ckpt_reader_link(const struct ckpt_reader *reader);
void ckpt_reader_close(struct ckpt_reader *reader); /* NULL is allowed */
/* Reads all blocks as ckpt_reader_next() does, and calls `block` for each; its error ends the visit. */
MUST_USE paramo_err ckpt_visit(const struct ckpt *ckpt, bool (*wants)(void *arg, const struct ckpt_block *b),
                               paramo_err (*block)(void *arg, const struct ckpt_block *b), void *arg);
/* Does every file that the manifest names exist with its size? CORRUPT if not. */
MUST_USE paramo_err ckpt_check_files(struct fs *fs, const char *dir, const struct ckpt_manifest *m);

#endif
