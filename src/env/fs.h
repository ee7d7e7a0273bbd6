/*
 * Files for code that must survive a crash, and be tested in one: few operations, each a step that can fail,
 * stop half-way or be the last before a crash. fs_real is the kernel's; sim/env/simfs.h keeps files in
 * memory, with faults. What a rename, creation or removal did is durable after sync_dir of its directory,
 * bytes after sync of their file: nothing else is promised.
 *
 * Operations may block: never on a lane; env/blocking_job.h runs them beside it. One thread at a time for
 * each file; an fs itself takes any number. Errors are IO (NOT_FOUND where said) and name path and cause.
 * Never knows what files mean. Tests: test/env/test_fs.c.
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
    FS_READ,   /* NOT_FOUND if it is not there */
    FS_CREATE, /* for appending; it must not be there */
    FS_LOCK    /* created if need be; nobody else has it open in this mode until close, or REFUSED */
};

struct fs_ops {
    paramo_err (*open)(struct fs *fs, const char *path, enum fs_mode mode, struct fs_file **file);
    /* Appends at least one byte, perhaps fewer than len. */
    paramo_err (*write)(struct fs_file *file, const void *data, size_t len, size_t *wrote);
    /* Fewer than len only at the end. */
    paramo_err (*read)(struct fs_file *file, uint64_t at, void *data, size_t len, size_t *got);
    paramo_err (*size)(struct fs_file *file, uint64_t *size);
    /* After an error the bytes may be lost although a later sync succeeds: write a new file. */
    paramo_err (*sync)(struct fs_file *file);
    void (*close)(struct fs_file *file);
    paramo_err (*rename)(struct fs *fs, const char *from, const char *to);
    /* NOT_FOUND if it is not there. */
    paramo_err (*unlink)(struct fs *fs, const char *path);
    /* OK if it is there already. */
    paramo_err (*make_dir)(struct fs *fs, const char *path);
    /* REFUSED if anything of that name is there: of all who try, one makes it. */
    paramo_err (*new_dir)(struct fs *fs, const char *path);
    /* An empty one; NOT_FOUND. */
    paramo_err (*remove_dir)(struct fs *fs, const char *path);
    paramo_err (*sync_dir)(struct fs *fs, const char *path);
    /* Names of files and folders in it, in no order, without "." and "..". NOT_FOUND. */
    paramo_err (*list)(struct fs *fs, const char *path, void (*entry)(void *arg, const char *name),
                       void *arg);
};

struct fs {
    const struct fs_ops *ops;
};

struct fs_file {
    const struct fs_ops *ops;
};

/* The process's own, for ever. */
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

/* All of it, however many writes that takes. */
MUST_USE paramo_err fs_write_all(struct fs_file *file, const void *data, size_t len);
/* dir/name, or TOO_LARGE. */
enum { FS_PATH_MAX = 1024 };
MUST_USE paramo_err fs_join(const char *dir, const char *name, char path[FS_PATH_MAX]);
/* Makes the folder if it is not there, and its name durable either way. */
MUST_USE paramo_err fs_keep_dir(struct fs *fs, const char *path);
/* A whole small file into an empty writer (free it by writer_fini). NOT_FOUND; TOO_LARGE beyond max. */
MUST_USE paramo_err fs_load(struct fs *fs, const char *path, size_t max, struct writer *w);
/* Puts a whole file at dir/name: written as name.tmp, synced, renamed, and the folder synced; what was there
 * is replaced. A crash at any step leaves the old file or the new one. After an error either is there, too,
 * and the caller cannot know which, but never a third. */
MUST_USE paramo_err fs_replace(struct fs *fs, const char *dir, const char *name, const void *data,
                               size_t len);

#endif
