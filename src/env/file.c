#include "env/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env/env.h"

enum { FILE_BUFFER = 1 << 20 };

static struct fs *chosen; /* NULL: the kernel's files */

void file_use(struct fs *fs)
{
    chosen = fs;
}

static struct fs *files(void)
{
    return chosen ? chosen : fs_real();
}

/* A buffer of bytes that will be written to a file. */
struct sink {
    struct fs_file *file;
    size_t held;
    uint8_t *buffer;
};

struct file_out {
    struct sink sink;
    char path[FS_PATH_MAX], temporary[FS_PATH_MAX];
};

struct file_spool {
    struct sink sink;
    struct fs_file *back; /* for reading; its name is removed */
    uint64_t bytes, taken;
};

static paramo_err sink_flush(struct sink *sink)
{
    size_t held = sink->held;
    sink->held = 0;
    return fs_write_all(sink->file, sink->buffer, held);
}

static paramo_err sink_write(struct sink *sink, const void *data, size_t len)
{
    if (len > FILE_BUFFER - sink->held) {
        paramo_err err = sink_flush(sink);
        if (err)
            return err;
        if (len >= FILE_BUFFER)
            return fs_write_all(sink->file, data, len);
    }
    memcpy(sink->buffer + sink->held, data, len);
    sink->held += len;
    return PARAMO_OK;
}

static paramo_err directory_of(const char *path, char directory[FS_PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t len = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    if (strlen(path) >= FS_PATH_MAX - 32)
        return err_set(PARAMO_E_IO, "the path is too long: %.64s...", path);
    (void)snprintf(directory, FS_PATH_MAX, "%.*s", slash ? (int)len : 1, slash ? path : ".");
    return PARAMO_OK;
}

/* Creates a file with a random name in the folder of path. */
static paramo_err create_beside(const char *path, char name[FS_PATH_MAX], struct fs_file **file)
{
    char directory[FS_PATH_MAX];
    paramo_err err = directory_of(path, directory);
    if (err)
        return err;
    unsigned random = (unsigned)env_random(env_real());
    (void)snprintf(name, FS_PATH_MAX, "%s.%08x.tmp", path, random);
    err = fs_open(files(), name, FS_CREATE, file);
    return err == PARAMO_E_NOT_FOUND ? err_prefix(PARAMO_E_IO, "%s", path) : err;
}

paramo_err file_out_open(const char *path, struct file_out **out)
{
    struct file_out *made = calloc(1, sizeof *made);
    uint8_t *buffer = malloc(FILE_BUFFER);
    paramo_err err = made && buffer ? PARAMO_OK : err_memory(FILE_BUFFER);
    if (!err)
        err = create_beside(path, made->temporary, &made->sink.file);
    if (err) {
        free(buffer);
        free(made);
        return err;
    }
    made->sink.buffer = buffer;
    (void)snprintf(made->path, sizeof made->path, "%s", path);
    *out = made;
    return PARAMO_OK;
}

paramo_err file_out_write(struct file_out *out, const void *data, size_t len)
{
    return sink_write(&out->sink, data, len);
}

paramo_err file_out_append_spool(struct file_out *out, struct file_spool *spool)
{
    paramo_err err = sink_flush(&spool->sink);
    while (!err && spool->taken < spool->bytes) {
        uint64_t left = spool->bytes - spool->taken;
        size_t got = 0;
        err = fs_read(spool->back, spool->taken, spool->sink.buffer,
                      left < FILE_BUFFER ? (size_t)left : FILE_BUFFER, &got);
        if (!err && !got)
            err = err_set(PARAMO_E_IO, "a temporary file beside %s is shorter than was written", out->path);
        if (!err)
            err = file_out_write(out, spool->sink.buffer, got);
        spool->taken += got;
    }
    return err;
}

paramo_err file_out_commit(struct file_out *out)
{
    char directory[FS_PATH_MAX];
    paramo_err err = sink_flush(&out->sink);
    if (!err)
        err = fs_sync(out->sink.file);
    if (!err)
        err = fs_rename(files(), out->temporary, out->path);
    if (err) {
        file_out_abort(out);
        return err;
    }
    err = directory_of(out->path, directory);
    if (!err)
        err = fs_sync_dir(files(), directory);
    fs_close(out->sink.file);
    free(out->sink.buffer);
    free(out);
    return err;
}

void file_out_abort(struct file_out *out)
{
    if (!out)
        return;
    fs_close(out->sink.file);
    (void)!fs_unlink(files(), out->temporary);
    free(out->sink.buffer);
    free(out);
}

paramo_err file_spool_open(const char *path, struct file_spool **spool)
{
    char name[FS_PATH_MAX];
    struct file_spool *made = calloc(1, sizeof *made);
    uint8_t *buffer = malloc(FILE_BUFFER);
    paramo_err err = made && buffer ? PARAMO_OK : err_memory(FILE_BUFFER);
    if (!err)
        err = create_beside(path, name, &made->sink.file);
    if (err) {
        free(buffer);
        free(made);
        return err;
    }
    made->sink.buffer = buffer;
    err = fs_open(files(), name, FS_READ, &made->back);
    paramo_err gone = fs_unlink(files(), name);
    if (err || gone) {
        file_spool_close(made);
        return err ? err : gone;
    }
    *spool = made;
    return PARAMO_OK;
}

paramo_err file_spool_write(struct file_spool *spool, const void *data, size_t len)
{
    spool->bytes += len;
    return sink_write(&spool->sink, data, len);
}

void file_spool_close(struct file_spool *spool)
{
    if (!spool)
        return;
    fs_close(spool->sink.file);
    fs_close(spool->back);
    free(spool->sink.buffer);
    free(spool);
}

/* ---- whole files --------------------------------------------------------------------------------------- */

/* For an fs that cannot map files: a copy. */
static paramo_err file_copy(const char *path, const void **data, size_t *len)
{
    struct writer w = {0};
    paramo_err err = fs_load(chosen, path, SIZE_MAX / 2, &w);
    if (err)
        return err;
    *data = w.data;
    *len = w.len;
    return PARAMO_OK;
}

static paramo_err open_regular(const char *path, int *fd, size_t *len)
{
    struct stat st;
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0)
        return err_errno(errno == ENOENT ? PARAMO_E_NOT_FOUND : PARAMO_E_IO, errno, "%s", path);
    if (fstat(*fd, &st) || !S_ISREG(st.st_mode)) {
        (void)close(*fd);
        return err_set(PARAMO_E_IO, "%s: not a regular file", path);
    }
    *len = (size_t)st.st_size;
    return PARAMO_OK;
}

paramo_err file_map(const char *path, const void **data, size_t *len)
{
    int fd;
    void *map = NULL;
    if (chosen)
        return file_copy(path, data, len);
    paramo_err err = open_regular(path, &fd, len);
    if (err)
        return err;
    if (*len > 0 && (map = mmap(NULL, *len, PROT_READ, MAP_PRIVATE, fd, 0)) == MAP_FAILED)
        err = err_errno(PARAMO_E_IO, errno, "%s: cannot be mapped", path);
    (void)close(fd);
    if (!err)
        *data = map;
    return err;
}

static paramo_err read_all(int fd, const char *path, void *data, size_t len)
{
    for (size_t at = 0; at < len;) {
        ssize_t got = read(fd, (char *)data + at, len - at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(PARAMO_E_IO, errno, "%s: cannot be read", path);
        if (got == 0)
            return err_set(PARAMO_E_IO, "%s: became shorter while it was read", path);
        at += (size_t)got;
    }
    return PARAMO_OK;
}

paramo_err file_load(const char *path, const void **data, size_t *len)
{
    int fd;
    void *memory = NULL;
    if (chosen)
        return file_copy(path, data, len);
    paramo_err err = open_regular(path, &fd, len);
    if (err)
        return err;
    if (*len > 0)
        memory = mmap(NULL, *len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        err = err_memory(*len);
    else if ((err = read_all(fd, path, memory, *len)) != PARAMO_OK)
        file_unmap(memory, *len);
    (void)close(fd);
    if (!err)
        *data = memory;
    return err;
}

void file_unmap(const void *data, size_t len)
{
    if (chosen)
        free((void *)(uintptr_t)data);
    else if (data)
        (void)munmap((void *)(uintptr_t)data, len);
}
