/*
 * Where checkpoints may lie: checks of paths that come from outside, before anything is written. It never writes.
 * Tests: test/cluster/test_ckpt.c.
 */
#ifndef CLUSTER_CHECKPOINT_CKPT_DIR_H
#define CLUSTER_CHECKPOINT_CKPT_DIR_H

#include <stdbool.h>

#include "env/fs.h"

/* The same folder without "." and ".." and slashes that are too many, as the name says it, whatever links
 * there are. INVALID: not from the root on. TOO_LARGE. */
MUST_USE paramo_err ckpt_dir_normal(const char *dir, char out[FS_PATH_MAX]);
/* Is it root, or below it? Both as ckpt_dir_normal has them; root "": no. */
bool ckpt_dir_under(const char *dir, const char *root);
/* OK: it is not there, or empty, or nothing but checkpoints is in it (hidden files and lost+found aside).
 * REFUSED. */
MUST_USE paramo_err ckpt_dir_plain(struct fs *fs, const char *dir);

#endif
