#include "env/fs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

paramo_err fs_write_all(struct fs_file *file, const void *data, size_t len)
{
    const uint8_t *at = data;
    while (len) {
        size_t wrote = 0;
        paramo_err err = file->ops->write(file, at, len, &wrote);
        if (err)
            return err;
        at += wrote;
        len -= wrote;
    }
    return PARAMO_OK;
}

paramo_err fs_join(const char *dir, const char *name, char path[FS_PATH_MAX])
{
    if (snprintf(path, FS_PATH_MAX, "%s/%s", dir, name) >= FS_PATH_MAX)
        return err_set(PARAMO_E_TOO_LARGE, "the path is too long: %.64s...", dir);
    return PARAMO_OK;
}

/* The folder that has path as an entry. */
static paramo_err parent_of(const char *path, char parent[FS_PATH_MAX])
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    while (len && path[len - 1] != '/')
        len--;
    while (len > 1 && path[len - 1] == '/')
        len--;
    if (len >= FS_PATH_MAX)
        return err_set(PARAMO_E_TOO_LARGE, "the path is too long: %.64s...", path);
    if (!len)
        parent[len++] = '.';
    else
        memcpy(parent, path, len);
    parent[len] = '\0';
    return PARAMO_OK;
}

paramo_err fs_keep_dir(struct fs *fs, const char *path)
{
    char parent[FS_PATH_MAX];
    paramo_err err = parent_of(path, parent);
    if (!err)
        err = fs_make_dir(fs, path);
    return err ? err : fs_sync_dir(fs, parent);
}

paramo_err fs_load(struct fs *fs, const char *path, size_t max, struct writer *w)
{
    struct fs_file *file;
    uint64_t size;
    paramo_err err = fs_open(fs, path, FS_READ, &file);
    if (err)
        return err;
    err = fs_size(file, &size);
    if (!err && size > max)
        err = err_set(PARAMO_E_TOO_LARGE, "%s has %llu bytes, more than %zu", path, (unsigned long long)size,
                      max);
    if (!err) {
        size_t got = 0;
        uint8_t *data = malloc(size + 1);
        if (!data)
            err = err_memory(size + 1);
        else
            err = fs_read(file, 0, data, size, &got);
        if (err)
            free(data);
        else
            *w = (struct writer){.data = data, .len = got, .capacity = size + 1};
    }
    fs_close(file);
    return err;
}

paramo_err fs_replace(struct fs *fs, const char *dir, const char *name, const void *data, size_t len)
{
    char path[FS_PATH_MAX], temporary[FS_PATH_MAX];
    struct fs_file *file;
    paramo_err err = fs_join(dir, name, path);
    if (err)
        return err;
    if (snprintf(temporary, sizeof temporary, "%s.tmp", path) >= FS_PATH_MAX)
        return err_set(PARAMO_E_TOO_LARGE, "the path is too long: %.64s...", path);
    err = fs_unlink(fs, temporary); /* left by an attempt that did not end */
    if (err && err != PARAMO_E_NOT_FOUND)
        return err;
    err = fs_open(fs, temporary, FS_CREATE, &file);
    if (err)
        return err;
    err = fs_write_all(file, data, len);
    if (!err)
        err = fs_sync(file);
    fs_close(file);
    if (!err)
        err = fs_rename(fs, temporary, path);
    if (!err)
        err = fs_sync_dir(fs, dir);
    return err;
}
