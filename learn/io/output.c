#include "learn/io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define BUFFER_BYTES (256u << 10) /* arbitrary */

enum { TEMP_RANDOM = 16, /* digits of 64 random bits */ TEMP_TRIES = 8 };

enum pack { PACK_NONE, PACK_GZIP, PACK_ZSTD };

struct output {
    char *path; /* the final name */
    char *temp; /* the file being written; NULL: written in place (stdout, a device, a pipe) */
    int fd;
    enum pack pack;
    z_stream gz;
    ZSTD_CStream *zstd;
    paramo_err err;
    char err_text[PARAMO_ERROR_MAX];
    size_t used; /* in buffer */
    char buffer[BUFFER_BYTES];
    char packed[BUFFER_BYTES];
};

static paramo_err output_fail(struct output *o, paramo_err err)
{
    o->err = err;
    memcpy(o->err_text, paramo_last_error(), sizeof o->err_text);
    return err;
}

static paramo_err system_error(const char *path, const char *what)
{
    int e = errno;
    return paramo_error_set(PARAMO_E_IO, "%s: %s: %s", path, what, strerror(e));
}

static int ends_in(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcmp(path + n - m, suffix) == 0;
}

/* Creates a file with an unused name. The kernel applies the umask to mode: umask() cannot be read without setting
 * it for all threads. */
static int create_temp(char *name, size_t random_at, mode_t mode)
{
    for (int i = 0; i < TEMP_TRIES; i++) {
        uint64_t random;
        if (getrandom(&random, sizeof random, 0) != sizeof random)
            return -1;
        (void)snprintf(name + random_at, TEMP_RANDOM + 1, "%0*" PRIx64, TEMP_RANDOM, random);
        int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* Creates the temporary file, in the directory of the final file, to which path may lead through a symbolic link. mode:
 * that of the file that it replaces; -1: there is none. */
static paramo_err open_temp(struct output *o, int mode)
{
    char *real = realpath(o->path, NULL);
    if (real) {
        free(o->path);
        o->path = real;
    }
    size_t random_at = strlen(o->path) + strlen(".tmp-"), len = random_at + TEMP_RANDOM + 1;
    o->temp = malloc(len);
    if (!o->temp)
        return paramo_error_set(PARAMO_E_MEMORY, "%s: out of memory", o->path);
    (void)snprintf(o->temp, len, "%s.tmp-", o->path);
    o->fd = create_temp(o->temp, random_at, mode < 0 ? 0666 : 0600);
    if (o->fd < 0) {
        paramo_err err = system_error(o->path, "cannot create");
        free(o->temp);
        o->temp = NULL;
        return err;
    }
    if (mode >= 0 && fchmod(o->fd, (mode_t)mode) != 0)
        return system_error(o->path, "cannot set permissions");
    return PARAMO_OK;
}

static paramo_err open_target(struct output *o)
{
    struct stat st;
    if (strcmp(o->path, "-") == 0) {
        o->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        return o->fd >= 0 ? PARAMO_OK : system_error("standard output", "cannot write");
    }
    int there = stat(o->path, &st) == 0;
    if (there && S_ISDIR(st.st_mode))
        return paramo_error_set(PARAMO_E_IO, "%s: is a directory", o->path);
    if (there && !S_ISREG(st.st_mode)) {
        o->fd = open(o->path, O_WRONLY | O_CLOEXEC);
        return o->fd >= 0 ? PARAMO_OK : system_error(o->path, "cannot open");
    }
    return open_temp(o, there ? (int)(st.st_mode & 0777) : -1);
}

paramo_err output_open(const char *path, struct output **output)
{
    struct output *o = calloc(1, sizeof *o);
    if (o) {
        o->fd = -1;
        o->path = strdup(path);
    }
    if (!o || !o->path) {
        output_abort(o);
        return paramo_error_set(PARAMO_E_MEMORY, "%s: out of memory", path);
    }
    int ok = 1;
    if (ends_in(path, ".gz")) {
        ok = deflateInit2(&o->gz, 4, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK;
        o->pack = ok ? PACK_GZIP : PACK_NONE;
    } else if (ends_in(path, ".zst")) {
        o->zstd = ZSTD_createCStream();
        ok = o->zstd && !ZSTD_isError(ZSTD_CCtx_setParameter(o->zstd, ZSTD_c_checksumFlag, 1));
        o->pack = PACK_ZSTD;
    }
    paramo_err err = ok ? open_target(o) : paramo_error_set(PARAMO_E_MEMORY, "%s: out of memory", path);
    if (err != PARAMO_OK) {
        output_abort(o);
        return err;
    }
    *output = o;
    return PARAMO_OK;
}

static paramo_err write_bytes(struct output *o, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(o->fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            return output_fail(
                o, system_error(strcmp(o->path, "-") == 0 ? "standard output" : o->path, "cannot write"));
        }
        data += n;
        len -= (size_t)n;
    }
    return PARAMO_OK;
}

/* Writes the buffer; last: it is the last one. */
static paramo_err flush(struct output *o, int last)
{
    size_t len = o->used;
    o->used = 0;
    if (o->err != PARAMO_OK)
        return paramo_error_set(o->err, "%s", o->err_text);
    if (o->pack == PACK_NONE)
        return write_bytes(o, o->buffer, len);
    ZSTD_inBuffer in = {o->buffer, len, 0};
    o->gz.next_in = (Bytef *)(void *)o->buffer;
    o->gz.avail_in = (uInt)len;
    int done;
    do {
        size_t n;
        if (o->pack == PACK_GZIP) {
            o->gz.next_out = (Bytef *)(void *)o->packed;
            o->gz.avail_out = BUFFER_BYTES;
            int rc = deflate(&o->gz, last ? Z_FINISH : Z_NO_FLUSH);
            n = BUFFER_BYTES - o->gz.avail_out;
            done = last ? rc == Z_STREAM_END : o->gz.avail_in == 0 && n < BUFFER_BYTES;
        } else {
            ZSTD_outBuffer out = {o->packed, BUFFER_BYTES, 0};
            size_t rc = ZSTD_compressStream2(o->zstd, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
            if (ZSTD_isError(rc)) {
                return output_fail(
                    o, paramo_error_set(PARAMO_E_INTERNAL, "%s: zstd: %s", o->path, ZSTD_getErrorName(rc)));
            }
            n = out.pos;
            done = last ? rc == 0 : in.pos == in.size;
        }
        paramo_err err = write_bytes(o, o->packed, n);
        if (err != PARAMO_OK)
            return err;
    } while (!done);
    return PARAMO_OK;
}

paramo_err output_write(struct output *o, const void *data, size_t len)
{
    const char *p = data;
    if (o->err != PARAMO_OK)
        return paramo_error_set(o->err, "%s", o->err_text);
    while (len > 0) {
        size_t n = BUFFER_BYTES - o->used < len ? BUFFER_BYTES - o->used : len;
        memcpy(o->buffer + o->used, p, n);
        o->used += n;
        p += n;
        len -= n;
        if (o->used == BUFFER_BYTES) {
            paramo_err err = flush(o, 0);
            if (err != PARAMO_OK)
                return err;
        }
    }
    return PARAMO_OK;
}

/* The new name is data of the directory: without this, a crash could undo the rename. */
static void sync_directory(const char *path)
{
    char dir[4096];
    const char *slash = strrchr(path, '/');
    size_t n = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
    if (n >= sizeof dir)
        return;
    memcpy(dir, path, n);
    dir[n] = '\0';
    int fd = open(n == 0 ? "." : dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd); /* some file systems do not support it; the file itself is synced */
        (void)close(fd);
    }
}

paramo_err output_commit(struct output *o)
{
    paramo_err err = flush(o, 1);
    if (err == PARAMO_OK && o->temp) {
        if (fsync(o->fd) != 0) {
            err = system_error(o->path, "cannot sync");
        } else if (rename(o->temp, o->path) != 0) {
            err = system_error(o->path, "cannot rename the finished file to its name");
        } else {
            free(o->temp);
            o->temp = NULL;
            sync_directory(o->path);
        }
    }
    output_abort(o);
    return err;
}

void output_abort(struct output *o)
{
    if (!o)
        return;
    if (o->pack == PACK_GZIP)
        (void)deflateEnd(&o->gz);
    (void)ZSTD_freeCStream(o->zstd);
    if (o->fd >= 0)
        (void)close(o->fd);
    if (o->temp)
        (void)unlink(o->temp);
    free(o->temp);
    free(o->path);
    free(o);
}
