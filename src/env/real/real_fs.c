#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env/fs.h"

struct real_file {
    struct fs_file file;
    int fd;
    char path[]; /* for messages */
};

static paramo_err failed(int why, const char *what, const char *path)
{
    return err_errno(why == ENOENT ? PARAMO_E_NOT_FOUND : PARAMO_E_IO, why, "%s %s", what, path);
}

static paramo_err real_open(struct fs *fs, const char *path, enum fs_mode mode, struct fs_file **out)
{
    size_t len = strlen(path) + 1;
    struct real_file *file = malloc(sizeof *file + len);
    if (!file)
        return err_memory(sizeof *file + len);
    file->file.ops = fs->ops;
    memcpy(file->path, path, len);
    int flags = mode == FS_READ     ? O_RDONLY
                : mode == FS_CREATE ? O_WRONLY | O_CREAT | O_EXCL | O_APPEND
                                    : O_RDWR | O_CREAT;
    file->fd = open(path, flags | O_CLOEXEC, 0666);
    paramo_err err = file->fd < 0 ? failed(errno, mode == FS_CREATE ? "create" : "open", path) : PARAMO_OK;
    if (!err && mode == FS_LOCK && flock(file->fd, LOCK_EX | LOCK_NB)) {
        err = errno == EWOULDBLOCK ? err_set(PARAMO_E_REFUSED, "%s is locked by another process", path)
                                   : failed(errno, "lock", path);
        (void)close(file->fd);
    }
    if (err) {
        free(file);
        return err;
    }
    *out = &file->file;
    return PARAMO_OK;
}

static paramo_err real_write(struct fs_file *f, const void *data, size_t len, size_t *wrote)
{
    const struct real_file *file = (const struct real_file *)f;
    ssize_t n;
    do {
        n = write(file->fd, data, len);
    } while (n < 0 && errno == EINTR);
    if (n <= 0)
        return failed(n < 0 ? errno : ENOSPC, "write", file->path);
    *wrote = (size_t)n;
    return PARAMO_OK;
}

static paramo_err real_read(struct fs_file *f, uint64_t at, void *data, size_t len, size_t *got)
{
    const struct real_file *file = (const struct real_file *)f;
    size_t have = 0;
    while (have < len) {
        ssize_t n = pread(file->fd, (uint8_t *)data + have, len - have, (off_t)(at + have));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed(errno, "read", file->path);
        if (n == 0)
            break;
        have += (size_t)n;
    }
    *got = have;
    return PARAMO_OK;
}

static paramo_err real_size(struct fs_file *f, uint64_t *size)
{
    const struct real_file *file = (const struct real_file *)f;
    struct stat st;
    if (fstat(file->fd, &st))
        return failed(errno, "look at", file->path);
    if (!S_ISREG(st.st_mode))
        return err_set(PARAMO_E_IO, "%s: not a regular file", file->path);
    *size = (uint64_t)st.st_size;
    return PARAMO_OK;
}

static paramo_err real_sync(struct fs_file *f)
{
    const struct real_file *file = (const struct real_file *)f;
    return fsync(file->fd) ? failed(errno, "sync", file->path) : PARAMO_OK;
}

static void real_close(struct fs_file *f)
{
    struct real_file *file = (struct real_file *)f;
    (void)close(file->fd);
    free(file);
}

static paramo_err real_rename(struct fs *fs, const char *from, const char *to)
{
    (void)fs;
    return rename(from, to) ? failed(errno, "rename", from) : PARAMO_OK;
}

static paramo_err real_unlink(struct fs *fs, const char *path)
{
    (void)fs;
    return unlink(path) ? failed(errno, "remove", path) : PARAMO_OK;
}

static paramo_err real_make_dir(struct fs *fs, const char *path)
{
    (void)fs;
    struct stat st;
    if (mkdir(path, 0777) == 0)
        return PARAMO_OK;
    int why = errno;
    if (why == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return PARAMO_OK;
    return failed(why, "make the folder", path);
}

static paramo_err real_new_dir(struct fs *fs, const char *path)
{
    (void)fs;
    if (mkdir(path, 0777) == 0)
        return PARAMO_OK;
    if (errno == EEXIST)
        return err_set(PARAMO_E_REFUSED, "make the folder %s: it exists already", path);
    return failed(errno, "make the folder", path);
}

static paramo_err real_remove_dir(struct fs *fs, const char *path)
{
    (void)fs;
    return rmdir(path) ? failed(errno, "remove the folder", path) : PARAMO_OK;
}

static paramo_err real_sync_dir(struct fs *fs, const char *path)
{
    (void)fs;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return failed(errno, "open the folder", path);
    int why = fsync(fd) ? errno : 0;
    (void)close(fd);
    if (why && why != EINVAL && why != ENOTSUP) /* some file systems cannot sync a folder */
        return failed(why, "sync the folder", path);
    return PARAMO_OK;
}

static paramo_err real_list(struct fs *fs, const char *path, void (*entry)(void *arg, const char *name),
                            void *arg)
{
    (void)fs;
    DIR *dir = opendir(path);
    if (!dir)
        return failed(errno, "list", path);
    errno = 0;
    for (const struct dirent *found; (found = readdir(dir)); errno = 0)
        if (strcmp(found->d_name, ".") != 0 && strcmp(found->d_name, "..") != 0)
            entry(arg, found->d_name);
    int why = errno;
    (void)closedir(dir);
    return why ? failed(why, "list", path) : PARAMO_OK;
}

struct fs *fs_real(void)
{
    static const struct fs_ops ops = {
        .open = real_open,
        .write = real_write,
        .read = real_read,
        .size = real_size,
        .sync = real_sync,
        .close = real_close,
        .rename = real_rename,
        .unlink = real_unlink,
        .make_dir = real_make_dir,
        .new_dir = real_new_dir,
        .remove_dir = real_remove_dir,
        .sync_dir = real_sync_dir,
        .list = real_list,
    };
    static struct fs fs = {.ops = &ops};
    return &fs;
}
