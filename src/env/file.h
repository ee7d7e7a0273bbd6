/*
 * Files that are written whole or not at all, and spools. A file_out is written beside its final name and
 * takes it over in file_out_commit, after its bytes are on the disk; a crash, an error or file_out_abort
 * leaves what was there before. Blocking: never on a lane. One thread per file. Tests: test/env/test_file.c.
 */
#ifndef ENV_FILE_H
#define ENV_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "env/fs.h"

struct file_out;
struct file_spool;

/* From here on files are this fs's (NULL: the kernel's), until it is called again; what is open or mapped
 * belongs to the one it was made with. For simulations, which have one thread. */
void file_use(struct fs *fs);

/* IO names path and cause. */
MUST_USE paramo_err file_out_open(const char *path, struct file_out **out);
/* Appends; buffered. */
MUST_USE paramo_err file_out_write(struct file_out *out, const void *data, size_t len);
/* Appends all that is in the spool, which is then empty. */
MUST_USE paramo_err file_out_append_spool(struct file_out *out, struct file_spool *spool);
/* Syncs file and directory and renames; frees out in any case. */
MUST_USE paramo_err file_out_commit(struct file_out *out);
void file_out_abort(struct file_out *out); /* NULL is allowed */

/* A temporary file without a name, in the directory of path. */
MUST_USE paramo_err file_spool_open(const char *path, struct file_spool **spool);
MUST_USE paramo_err file_spool_write(struct file_spool *spool, const void *data, size_t len);
void file_spool_close(struct file_spool *spool); /* NULL is allowed */

/* A whole regular file, mapped for reading. NOT_FOUND, IO. An empty file has data NULL. */
MUST_USE paramo_err file_map(const char *path, const void **data, size_t *len);
void file_unmap(const void *data, size_t len);

#endif
