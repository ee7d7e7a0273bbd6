/*
 * Where checkpoints may lie: checks of paths that come from outside, before anything is written. It never
 * writes. Tests: test/cluster/test_ckpt.c.
 */
#ifndef CLUSTER_CHECKPOINT_CKPT_DIR_H
#define CLUSTER_CHECKPOINT_CKPT_DIR_H

#include <stdbool.h>

#include "env/fs.h"

/* Writes the path without ".", ".." and repeated slashes. Links are not resolved. INVALID: not an absolute path.
 * TOO_LARGE. */
MUST_USE paramo_err ckpt_dir_normal(const char *dir, char out[FS_PATH_MAX]);
/* Is dir the folder root, or below it? Both paths are normal. No, if root is empty. */
bool ckpt_dir_under(const char *dir, const char *root);
/* OK: the folder is missing, is empty, or holds only checkpoints (besides hidden files and lost+found).
 * REFUSED. */
MUST_USE paramo_err ckpt_dir_plain(struct fs *fs, const char *dir);

#endif
