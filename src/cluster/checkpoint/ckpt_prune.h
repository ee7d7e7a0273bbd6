/*
 * Removes old checkpoints. After a crash at any step each checkpoint is whole, or is a folder without a manifest.
 * Blocking: runs in a blocking job, never on a lane. It never reads a block. Tests: test/cluster/test_ckpt.c.
 */
#ifndef CLUSTER_CHECKPOINT_CKPT_PRUNE_H
#define CLUSTER_CHECKPOINT_CKPT_PRUNE_H

#include "cluster/checkpoint/ckpt_manifest.h"

/* Removes whole checkpoints for which mine returns true, except the newest `keep` of these and every base of
 * one that stays. Also removes attempts that are older than the newest whole checkpoint. Goes from the newest
 * to the oldest, each manifest before its files. Damaged checkpoints stay. keep > 0. *removed is set in any
 * case. FORMAT: one has a format that this program does not read; nothing is removed. */
MUST_USE paramo_err ckpt_prune(struct fs *fs, const char *dir, size_t keep,
                               bool (*mine)(void *arg, const struct ckpt_manifest *m), void *arg,
                               size_t *removed);

#endif
