#include "sim/disk.h"

#include <stdlib.h>

#include "sim/env/simfs.h"

struct disk {
    struct fs fs;
    struct simfs *files;
    void (*pause)(void *arg);
    void *arg;
    bool shared;
    bool gone;
    unsigned left; /* operations that still run before the process is gone */
};

struct disk_file {
    struct fs_file file;
    struct disk *disk;
    struct fs_file *of; /* of the simfs */
};

static struct disk *disk_of(struct fs *fs)
{
    return (struct disk *)fs;
}

static struct disk_file *file_of(struct fs_file *file)
{
    return (struct disk_file *)file;
}

static paramo_err wait_for(struct disk *disk)
{
    if (disk->pause)
        disk->pause(disk->arg);
    if (!disk->gone || disk->left--)
        return PARAMO_OK;
    disk->left = 0;
    return err_set(PARAMO_E_IO, "the process is gone");
}

static paramo_err slow_open(struct fs *fs, const char *path, enum fs_mode mode, struct fs_file **out)
{
    struct disk *disk = disk_of(fs);
    struct disk_file *file = malloc(sizeof *file); /* the process's own, as any file's is */
    if (!file)
        return err_memory(sizeof *file);
    *file = (struct disk_file){.file.ops = fs->ops, .disk = disk};
    paramo_err err = wait_for(disk);
    if (!err)
        err = fs_open(simfs_fs(disk->files), path, mode, &file->of);
    if (err)
        free(file);
    else
        *out = &file->file;
    return err;
}

static paramo_err slow_write(struct fs_file *f, const void *data, size_t len, size_t *wrote)
{
    struct disk_file *file = file_of(f);
    paramo_err err = wait_for(file->disk);
    return err ? err : file->of->ops->write(file->of, data, len, wrote);
}

static paramo_err slow_read(struct fs_file *f, uint64_t at, void *data, size_t len, size_t *got)
{
    struct disk_file *file = file_of(f);
    paramo_err err = wait_for(file->disk);
    return err ? err : fs_read(file->of, at, data, len, got);
}

static paramo_err slow_size(struct fs_file *f, uint64_t *size)
{
    return fs_size(file_of(f)->of, size);
}

static paramo_err slow_sync(struct fs_file *f)
{
    struct disk_file *file = file_of(f);
    paramo_err err = wait_for(file->disk);
    return err ? err : fs_sync(file->of);
}

static void slow_close(struct fs_file *f)
{
    fs_close(file_of(f)->of);
    free(f);
}

static paramo_err slow_rename(struct fs *fs, const char *from, const char *to)
{
    paramo_err err = wait_for(disk_of(fs));
    return err ? err : fs_rename(simfs_fs(disk_of(fs)->files), from, to);
}

static paramo_err slow_unlink(struct fs *fs, const char *path)
{
    paramo_err err = wait_for(disk_of(fs));
    return err ? err : fs_unlink(simfs_fs(disk_of(fs)->files), path);
}

static paramo_err slow_make_dir(struct fs *fs, const char *path)
{
    paramo_err err = wait_for(disk_of(fs));
    return err ? err : fs_make_dir(simfs_fs(disk_of(fs)->files), path);
}

static paramo_err slow_new_dir(struct fs *fs, const char *path)
{
    paramo_err err = wait_for(disk_of(fs));
    return err ? err : fs_new_dir(simfs_fs(disk_of(fs)->files), path);
}

static paramo_err slow_remove_dir(struct fs *fs, const char *path)
{
    paramo_err err = wait_for(disk_of(fs));
    return err ? err : fs_remove_dir(simfs_fs(disk_of(fs)->files), path);
}

static paramo_err slow_sync_dir(struct fs *fs, const char *path)
{
    paramo_err err = wait_for(disk_of(fs));
    return err ? err : fs_sync_dir(simfs_fs(disk_of(fs)->files), path);
}

static paramo_err slow_list(struct fs *fs, const char *path, void (*entry)(void *arg, const char *name),
                            void *arg)
{
    return fs_list(simfs_fs(disk_of(fs)->files), path, entry, arg);
}

static struct disk *disk_over(struct simfs *files)
{
    static const struct fs_ops ops = {
        .open = slow_open,
        .write = slow_write,
        .read = slow_read,
        .size = slow_size,
        .sync = slow_sync,
        .close = slow_close,
        .rename = slow_rename,
        .unlink = slow_unlink,
        .make_dir = slow_make_dir,
        .new_dir = slow_new_dir,
        .remove_dir = slow_remove_dir,
        .sync_dir = slow_sync_dir,
        .list = slow_list,
    };
    struct disk *disk = calloc(1, sizeof *disk);
    if (!disk)
        abort();
    disk->fs.ops = &ops;
    disk->files = files;
    return disk;
}

struct disk *disk_new(uint64_t seed, void (*pause)(void *arg), void *arg)
{
    struct simfs *files;
    if (simfs_create(seed, &files))
        abort();
    struct disk *disk = disk_over(files);
    disk->pause = pause;
    disk->arg = arg;
    return disk;
}

struct disk *disk_share(struct simfs *files)
{
    struct disk *disk = disk_over(files);
    disk->shared = true;
    return disk;
}

void disk_free(struct disk *disk)
{
    if (!disk->shared)
        simfs_destroy(disk->files);
    free(disk);
}

struct fs *disk_fs(struct disk *disk)
{
    return &disk->fs;
}

void disk_fail(struct disk *disk, enum simfs_fault fault, unsigned n)
{
    simfs_plan(disk->files, fault, simfs_steps(disk->files) + n);
}

uint64_t disk_struck(const struct disk *disk)
{
    return simfs_struck(disk->files);
}

void disk_process_gone(struct disk *disk, bool gone, unsigned left)
{
    disk->gone = gone;
    disk->left = left;
}

void disk_lie(struct disk *disk, unsigned syncs)
{
    simfs_lie(disk->files, syncs);
}

bool disk_lost(const struct disk *disk, const char *path)
{
    return simfs_lost(disk->files, path);
}

bool disk_crashed(const struct disk *disk)
{
    return simfs_crashed(disk->files);
}

void disk_power_fails(struct disk *disk)
{
    simfs_restart(disk->files);
}
