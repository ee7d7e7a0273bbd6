/*
 * Files for code that must survive a crash, and must be tested with crashes. There are few operations; each
 * is a step that can fail, stop half-way or be the last before a crash. fs_real is the kernel's;
 * sim/env/simfs.h keeps files in memory, with faults. A rename, creation or removal is durable after
 * sync_dir of its folder, bytes after sync of their file. Nothing else is promised.
 *
 * Operations may block: never call them on a lane; env/blocking_job.h runs them beside it. One thread at a
 * time per file; any number of threads per fs. Errors are IO (NOT_FOUND where noted); their messages name
 * path and cause. This module never knows what files mean. Tests: test/env/test_fs.c.
 */
#ifndef ENV_FS_H
#define ENV_FS_H

#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/err.h"

struct fs;
struct fs_file;

enum fs_mode {
    FS_READ,   /* NOT_FOUND without such a file */
    FS_CREATE, /* for appending; the file must not exist */
    FS_LOCK    /* created if needed; locked until close. REFUSED: it is locked */
};

struct fs_ops {
    paramo_err (*open)(struct fs *fs, const char *path, enum fs_mode mode, struct fs_file **file);
    /* Appends at least one byte, but perhaps fewer than len. */
    paramo_err (*write)(struct fs_file *file, const void *data, size_t len, size_t *wrote);
    /* Reads fewer bytes than len only at the file's end. */
    paramo_err (*read)(struct fs_file *file, uint64_t at, void *data, size_t len, size_t *got);
    paramo_err (*size)(struct fs_file *file, uint64_t *size);
    /* After an error the bytes may be lost even if a later sync succeeds: write a new file. */
    paramo_err (*sync)(struct fs_file *file);
    void (*close)(struct fs_file *file);
    paramo_err (*rename)(struct fs *fs, const char *from, const char *to);
    /* NOT_FOUND without such a file. */
    paramo_err (*unlink)(struct fs *fs, const char *path);
    /* OK if the folder exists already. */
    paramo_err (*make_dir)(struct fs *fs, const char *path);
    /* REFUSED if anything has that name: of several callers one makes it. */
    paramo_err (*new_dir)(struct fs *fs, const char *path);
    /* The folder must be empty. NOT_FOUND. */
    paramo_err (*remove_dir)(struct fs *fs, const char *path);
    paramo_err (*sync_dir)(struct fs *fs, const char *path);
    /* Calls entry with the name of each file and folder in it, in no order, without "." and "..".
     * NOT_FOUND. */
    paramo_err (*list)(struct fs *fs, const char *path, void (*entry)(void *arg, const char *name),
                       void *arg);
};

struct fs {
    const struct fs_ops *ops;
};

struct fs_file {
    const struct fs_ops *ops;
};

/* The kernel's files. Never freed. */
struct fs *fs_real(void);

MUST_USE static inline paramo_err fs_open(struct fs *fs, const char *path, enum fs_mode mode,
                                          struct fs_file **file)
{
    return fs->ops->open(fs, path, mode, file);
}
MUST_USE static inline paramo_err fs_read(struct fs_file *file, uint64_t at, void *data, size_t len,
                                          size_t *got)
{
    return file->ops->read(file, at, data, len, got);
}
MUST_USE static inline paramo_err fs_size(struct fs_file *file, uint64_t *size)
{
    return file->ops->size(file, size);
}
MUST_USE static inline paramo_err fs_sync(struct fs_file *file)
{
    return file->ops->sync(file);
}
/* NULL is allowed. */
static inline void fs_close(struct fs_file *file)
{
    if (file)
        file->ops->close(file);
}
MUST_USE static inline paramo_err fs_rename(struct fs *fs, const char *from, const char *to)
{
    return fs->ops->rename(fs, from, to);
}
MUST_USE static inline paramo_err fs_unlink(struct fs *fs, const char *path)
{
    return fs->ops->unlink(fs, path);
}
MUST_USE static inline paramo_err fs_make_dir(struct fs *fs, const char *path)
{
    return fs->ops->make_dir(fs, path);
}
MUST_USE static inline paramo_err fs_new_dir(struct fs *fs, const char *path)
{
    return fs->ops->new_dir(fs, path);
}
MUST_USE static inline paramo_err fs_remove_dir(struct fs *fs, const char *path)
{
    return fs->ops->remove_dir(fs, path);
}
MUST_USE static inline paramo_err fs_sync_dir(struct fs *fs, const char *path)
{
    return fs->ops->sync_dir(fs, path);
}
MUST_USE static inline paramo_err fs_list(struct fs *fs, const char *path,
                                          void (*entry)(void *arg, const char *name), void *arg)
{
    return fs->ops->list(fs, path, entry, arg);
}

/* Writes all bytes, with as many writes as needed. */
MUST_USE paramo_err fs_write_all(struct fs_file *file, const void *data, size_t len);
enum { FS_PATH_MAX = 1024 };
/* dir/name, or TOO_LARGE. */
MUST_USE paramo_err fs_join(const char *dir, const char *name, char path[FS_PATH_MAX]);
/* Makes the folder if it does not exist, and makes its name durable in any case. */
MUST_USE paramo_err fs_keep_dir(struct fs *fs, const char *path);
/* Reads a whole small file into an empty writer (free it with writer_fini). NOT_FOUND; TOO_LARGE beyond
 * max. */
MUST_USE paramo_err fs_load(struct fs *fs, const char *path, size_t max, struct writer *w);
/* Replaces the file dir/name: writes name.tmp, syncs it, renames it and syncs the folder. A crash at any step
 * leaves the old file or the new one. After an error the caller cannot know which. */
MUST_USE paramo_err fs_replace(struct fs *fs, const char *dir, const char *name, const void *data,
                               size_t len);

#endif
