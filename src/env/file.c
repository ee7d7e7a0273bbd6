#include "env/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env/env.h"

enum { FILE_BUFFER = 1 << 20 };

/* Bytes on their way to a descriptor. */
struct sink {
    int fd;
    size_t held;
    uint8_t *buffer;
};

struct file_out {
    struct sink sink;
    char path[PATH_MAX];
    char temporary[PATH_MAX];
};

struct file_spool {
    struct sink sink;
    char path[PATH_MAX]; /* for messages */
};

static paramo_err write_all(int fd, const uint8_t *data, size_t len, const char *path)
{
    while (len) {
        ssize_t wrote = write(fd, data, len);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return err_errno(PARAMO_E_IO, errno, "write %s", path);
        data += wrote;
        len -= (size_t)wrote;
    }
    return PARAMO_OK;
}

static paramo_err sink_flush(struct sink *sink, const char *path)
{
    size_t held = sink->held;
    sink->held = 0;
    return write_all(sink->fd, sink->buffer, held, path);
}

static paramo_err sink_write(struct sink *sink, const void *data, size_t len, const char *path)
{
    if (len > FILE_BUFFER - sink->held) {
        paramo_err err = sink_flush(sink, path);
        if (err)
            return err;
        if (len >= FILE_BUFFER)
            return write_all(sink->fd, data, len, path);
    }
    memcpy(sink->buffer + sink->held, data, len);
    sink->held += len;
    return PARAMO_OK;
}

static paramo_err directory_of(const char *path, char directory[PATH_MAX])
{
    char copy[PATH_MAX];
    if (strlen(path) >= sizeof copy - 32)
        return err_set(PARAMO_E_IO, "the path is too long: %.64s...", path);
    (void)snprintf(copy, sizeof copy, "%s", path);
    (void)snprintf(directory, PATH_MAX, "%s", dirname(copy));
    return PARAMO_OK;
}

/* A new file of a random name beside path, with the modes that the process gives its files (mkstemp would
 * not). */
static paramo_err create_beside(const char *path, char name[PATH_MAX], int *fd)
{
    for (int tries = 0; tries < 16; tries++) {
        unsigned random = (unsigned)env_random(env_real());
        if (snprintf(name, PATH_MAX, "%s.%08x.tmp", path, random) >= PATH_MAX)
            return err_set(PARAMO_E_IO, "the path is too long: %.64s...", path);
        *fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (*fd >= 0)
            return PARAMO_OK;
        if (errno != EEXIST)
            return err_errno(PARAMO_E_IO, errno, "create %s", path);
    }
    return err_set(PARAMO_E_IO, "create %s: sixteen random names are taken", path);
}

paramo_err file_out_open(const char *path, struct file_out **out)
{
    char directory[PATH_MAX];
    paramo_err err = directory_of(path, directory);
    if (err)
        return err;
    struct file_out *made = calloc(1, sizeof *made);
    if (!made)
        return err_memory(sizeof *made);
    made->sink.buffer = malloc(FILE_BUFFER);
    if (!made->sink.buffer) {
        err = err_memory(FILE_BUFFER);
        goto err_free;
    }
    (void)snprintf(made->path, sizeof made->path, "%s", path);
    err = create_beside(path, made->temporary, &made->sink.fd);
    if (err)
        goto err_free;
    *out = made;
    return PARAMO_OK;

err_free:
    free(made->sink.buffer);
    free(made);
    return err;
}

paramo_err file_out_write(struct file_out *out, const void *data, size_t len)
{
    return sink_write(&out->sink, data, len, out->path);
}

paramo_err file_out_patch(struct file_out *out, uint64_t offset, const void *data, size_t len)
{
    paramo_err err = sink_flush(&out->sink, out->path);
    if (err)
        return err;
    const uint8_t *at = data;
    while (len) {
        ssize_t wrote = pwrite(out->sink.fd, at, len, (off_t)offset);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return err_errno(PARAMO_E_IO, errno, "write %s", out->path);
        at += wrote;
        offset += (uint64_t)wrote;
        len -= (size_t)wrote;
    }
    return PARAMO_OK;
}

paramo_err file_out_append_spool(struct file_out *out, struct file_spool *spool)
{
    paramo_err err = sink_flush(&spool->sink, spool->path);
    if (err)
        return err;
    off_t at = 0;
    for (;;) {
        ssize_t got = pread(spool->sink.fd, spool->sink.buffer, FILE_BUFFER, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(PARAMO_E_IO, errno, "read a temporary file beside %s", spool->path);
        if (got == 0)
            break;
        err = file_out_write(out, spool->sink.buffer, (size_t)got);
        if (err)
            return err;
        at += got;
    }
    if (ftruncate(spool->sink.fd, 0) || lseek(spool->sink.fd, 0, SEEK_SET) < 0)
        return err_errno(PARAMO_E_IO, errno, "empty a temporary file beside %s", spool->path);
    return PARAMO_OK;
}

static paramo_err directory_sync(const char *path)
{
    char directory[PATH_MAX];
    paramo_err err = directory_of(path, directory);
    if (err)
        return err;
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(PARAMO_E_IO, errno, "open %s", directory);
    int failed = fsync(fd);
    int why = errno;
    (void)close(fd);
    if (failed && why != EINVAL && why != ENOTSUP) /* some file systems cannot sync a directory */
        return err_errno(PARAMO_E_IO, why, "sync %s", directory);
    return PARAMO_OK;
}

paramo_err file_out_commit(struct file_out *out)
{
    paramo_err err = sink_flush(&out->sink, out->path);
    if (!err && fsync(out->sink.fd))
        err = err_errno(PARAMO_E_IO, errno, "sync %s", out->path);
    if (!err && rename(out->temporary, out->path))
        err = err_errno(PARAMO_E_IO, errno, "rename %s to %s", out->temporary, out->path);
    if (err) {
        file_out_abort(out);
        return err;
    }
    err = directory_sync(out->path);
    (void)close(out->sink.fd);
    free(out->sink.buffer);
    free(out);
    return err;
}

void file_out_abort(struct file_out *out)
{
    if (!out)
        return;
    (void)close(out->sink.fd);
    (void)unlink(out->temporary);
    free(out->sink.buffer);
    free(out);
}

paramo_err file_spool_open(const char *path, struct file_spool **spool)
{
    char name[PATH_MAX];
    struct file_spool *made = calloc(1, sizeof *made);
    uint8_t *buffer = malloc(FILE_BUFFER);
    paramo_err err = PARAMO_OK;
    if (!made || !buffer) {
        err = err_memory(FILE_BUFFER);
        goto err_free;
    }
    made->sink.buffer = buffer;
    (void)snprintf(made->path, sizeof made->path, "%s", path);
    err = create_beside(path, name, &made->sink.fd);
    if (err)
        goto err_free;
    (void)unlink(name);
    *spool = made;
    return PARAMO_OK;

err_free:
    free(buffer);
    free(made);
    return err;
}

paramo_err file_spool_write(struct file_spool *spool, const void *data, size_t len)
{
    return sink_write(&spool->sink, data, len, spool->path);
}

void file_spool_close(struct file_spool *spool)
{
    if (!spool)
        return;
    (void)close(spool->sink.fd);
    free(spool->sink.buffer);
    free(spool);
}

paramo_err file_map(const char *path, const void **data, size_t *len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(errno == ENOENT ? PARAMO_E_NOT_FOUND : PARAMO_E_IO, errno, "%s", path);
    paramo_err err = PARAMO_OK;
    struct stat st;
    void *map = NULL;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode))
        err = err_set(PARAMO_E_IO, "%s: not a regular file", path);
    else if (st.st_size > 0 &&
             (map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) == MAP_FAILED)
        err = err_errno(PARAMO_E_IO, errno, "%s: cannot be mapped", path);
    (void)close(fd);
    if (err)
        return err;
    *data = map;
    *len = (size_t)st.st_size;
    return PARAMO_OK;
}

void file_unmap(const void *data, size_t len)
{
    if (data)
        (void)munmap((void *)(uintptr_t)data, len);
}
