/*
 * Files that are written whole or not at all, and spools. A file_out is written under a temporary name and
 * gets its final name in file_out_commit, after its bytes are on the disk. After a crash, an error or
 * file_out_abort the old file is still there. The functions block: never call them on a lane. One thread per
 * file. This module never knows what a file means. Tests: test/env/test_file.c.
 */
#ifndef ENV_FILE_H
#define ENV_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "env/fs.h"

struct file_out;
struct file_spool;

/* Uses this fs (NULL: the kernel's) from now on. Files that are open or mapped belong to the fs that they
 * were made with. For simulations, which have one thread. */
void file_use(struct fs *fs);

/* The message of IO names the path and the cause. */
MUST_USE paramo_err file_out_open(const char *path, struct file_out **out);
/* Appends to a buffer. */
MUST_USE paramo_err file_out_write(struct file_out *out, const void *data, size_t len);
/* Appends the spool's bytes. The spool is empty afterwards. */
MUST_USE paramo_err file_out_append_spool(struct file_out *out, struct file_spool *spool);
/* Syncs the file, renames it and syncs the folder. Frees out in any case. */
MUST_USE paramo_err file_out_commit(struct file_out *out);
void file_out_abort(struct file_out *out); /* NULL is allowed */

/* A temporary file without a name, in the folder of path. */
MUST_USE paramo_err file_spool_open(const char *path, struct file_spool **spool);
MUST_USE paramo_err file_spool_write(struct file_spool *spool, const void *data, size_t len);
void file_spool_close(struct file_spool *spool); /* NULL is allowed */

/* Maps a whole regular file for reading. NOT_FOUND, IO. data is NULL for an empty file. */
MUST_USE paramo_err file_map(const char *path, const void **data, size_t *len);
/* Like file_map(), but reads the file into memory, so later writes to the file do not show. Also MEMORY. */
MUST_USE paramo_err file_load(const char *path, const void **data, size_t *len);
void file_unmap(const void *data, size_t len); /* of both */

#endif
