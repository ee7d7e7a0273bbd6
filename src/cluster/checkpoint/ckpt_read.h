/*
 * Reading checkpoints: list them, open one with all that it is based on, visit its blocks in order. Blocking:
 * runs in a blocking job, never on a lane. It never knows what a payload means. Tests: test/cluster/test_ckpt.c,
 * fuzz/fuzz_ckpt.c.
 */
#ifndef CLUSTER_CHECKPOINT_CKPT_READ_H
#define CLUSTER_CHECKPOINT_CKPT_READ_H

#include "cluster/checkpoint/ckpt_manifest.h"

/* A checkpoint and those it is based on. */
struct ckpt;

/* Ascending numbers. m is NULL where status is not OK: NOT_FOUND an attempt that did not end, else a manifest
 * that is damaged (text says how). NOT_FOUND: no such folder. */
MUST_USE paramo_err ckpt_list(struct fs *fs, const char *dir,
                              void (*each)(void *arg, uint64_t number, paramo_err status, const char *text,
                                           const struct ckpt_manifest *m),
                              void *arg);
/* number 0: the last that has a manifest; if that one is damaged it is an error, not an older one's turn.
 * Checks the manifests and that every file has its size. NOT_FOUND, CORRUPT, FORMAT, IO. */
MUST_USE paramo_err ckpt_open(struct fs *fs, const char *dir, uint64_t number, struct ckpt **ckpt);
void ckpt_close(struct ckpt *ckpt);
/* The newest's; of links 0 (that one) to ckpt_links - 1 (the full one). */
const struct ckpt_manifest *ckpt_manifest(const struct ckpt *ckpt, unsigned link);
unsigned ckpt_links(const struct ckpt *ckpt);
/* Gives out the blocks one by one in the order that counts: a later block wins. Those for which wants says
 * false are skipped unread (NULL: none are). Each is checked before it is given, each file to its end; it is
 * borrowed until the next call. CORRUPT names file and place; after an error only close is left. */
struct ckpt_reader;
MUST_USE paramo_err ckpt_reader_open(const struct ckpt *ckpt, struct ckpt_reader **reader);
MUST_USE paramo_err ckpt_reader_next(struct ckpt_reader *reader,
                                     bool (*wants)(void *arg, const struct ckpt_block *b), void *arg,
                                     struct ckpt_block *block, bool *end);
/* Of which link (ckpt_manifest) the block is that wants is asked about, or that was given last. */
unsigned ckpt_reader_link(const struct ckpt_reader *reader);
void ckpt_reader_close(struct ckpt_reader *reader); /* NULL is allowed */
/* The same with a callback; an error of block ends it. */
MUST_USE paramo_err ckpt_visit(const struct ckpt *ckpt, bool (*wants)(void *arg, const struct ckpt_block *b),
                               paramo_err (*block)(void *arg, const struct ckpt_block *b), void *arg);
/* Does every file that the manifest names exist with its size? CORRUPT if not. */
MUST_USE paramo_err ckpt_check_files(struct fs *fs, const char *dir, const struct ckpt_manifest *m);

#endif
