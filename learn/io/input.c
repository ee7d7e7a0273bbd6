#include "learn/io/input.h"
#include "learn/io/decoder.h"
#include "learn/io/kept_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define RAW_BYTES  (256u << 10) /* arbitrary, as the next one */
#define HEAD_BYTES (64u << 10)

struct input {
    char *name;
    char *path; /* of the file that is opened */
    int fd;     /* -1: closed until it is needed */
    int ahead; /* the bytes that were read of a pipe before (kept_pipe.h), which come first; -1: there are none */
    int stop_fd;
    int regular;
    int kept;    /* path is a copy of the pipe (kept_pipe.h) */
    int started; /* the first bytes have been read since the last rewind */
    enum decoder_kind kind;
    uint64_t size, used;
    struct decoder *decoder;
    char *raw; /* [RAW_BYTES], bytes as they are in the file */
    size_t raw_pos, raw_len;
    int raw_end;
    char *head; /* text that input_head has read ahead, which comes first */
    size_t head_pos, head_len;
};

/* ---- names --------------------------------------------------------------------------------------------- */

void input_free_names(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

static paramo_err names_add(char ***names, size_t *count, const char *name)
{
    char **more = realloc(*names, (*count + 1) * sizeof *more);
    if (more) {
        *names = more;
        more[*count] = strdup(name);
    }
    if (!more || !more[*count])
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for file names");
    ++*count;
    return PARAMO_OK;
}

static paramo_err names_add_glob(char ***names, size_t *count, const char *pattern)
{
    glob_t g;
    int rc = glob(pattern, 0, NULL, &g);
    if (rc != 0) {
        return rc == GLOB_NOMATCH
                   ? paramo_error_set(PARAMO_E_NOT_FOUND, "%s: no file matches", pattern)
                   : paramo_error_set(PARAMO_E_IO, "%s: cannot be expanded: %s", pattern,
                                      rc == GLOB_NOSPACE ? "out of memory" : "a directory cannot be read");
    }
    paramo_err err = PARAMO_OK;
    for (size_t i = 0; i < g.gl_pathc && err == PARAMO_OK; i++)
        err = names_add(names, count, g.gl_pathv[i]);
    globfree(&g);
    return err;
}

paramo_err input_expand(const char *const *paths, size_t n, char ***names, size_t *count)
{
    char **list = NULL;
    size_t len = 0;
    int stdins = 0;
    paramo_err err = n > 0 ? PARAMO_OK : paramo_error_set(PARAMO_E_INVALID, "no input file is given");
    for (size_t i = 0; i < n && err == PARAMO_OK; i++)
        if (paths[i][0] == '\0')
            err = paramo_error_set(PARAMO_E_INVALID, "a file name is empty");
        else if (strcmp(paths[i], "-") == 0 && ++stdins > 1)
            err = paramo_error_set(PARAMO_E_INVALID, "standard input (-) is given twice");
        else if (strpbrk(paths[i], "*?[") && access(paths[i], F_OK) != 0)
            err = names_add_glob(&list, &len, paths[i]);
        else
            err = names_add(&list, &len, paths[i]);
    if (err != PARAMO_OK) {
        input_free_names(list, len);
        return err;
    }
    *names = list;
    *count = len;
    return PARAMO_OK;
}

paramo_err input_refuse_output(const char *const *paths, size_t n, const char *path)
{
    struct stat out, in;
    char **names = NULL;
    size_t count = 0;
    paramo_err err = PARAMO_OK;
    if (n == 0 || stat(path, &out) != 0 || !S_ISREG(out.st_mode))
        return PARAMO_OK;
    if (input_expand(paths, n, &names, &count) != PARAMO_OK)
        return PARAMO_OK;
    for (size_t i = 0; err == PARAMO_OK && i < count; i++)
        if (stat(names[i], &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            err = paramo_error_set(PARAMO_E_INVALID, "%s is one of the data files: give another name", path);
    input_free_names(names, count);
    return err;
}

/* ---- one input ----------------------------------------------------------------------------------------- */

static paramo_err io_error(const char *name, const char *what)
{
    int e = errno;
    return paramo_error_set(e == ENOENT ? PARAMO_E_NOT_FOUND : PARAMO_E_IO, "%s: %s: %s", name, what,
                            strerror(e));
}

static paramo_err file_open(const struct input *in, int *fd)
{
    *fd = open(in->path, O_RDONLY | O_CLOEXEC);
    return *fd >= 0 ? PARAMO_OK : io_error(in->name, "cannot open");
}

/* Opens in->fd: a file, a pipe, or the kept copy of a pipe. */
static paramo_err open_source(struct input *in)
{
    struct kept_pipe kept;
    const int is_kept = kept_pipe_find(in->path, &kept);
    if (is_kept && kept.rest >= 0) {
        in->ahead = kept.memory;
        in->fd = kept.rest;
        return PARAMO_OK;
    }
    in->kept = is_kept;
    if (is_kept) {
        free(in->path);
        if (asprintf(&in->path, "/proc/self/fd/%d", kept.memory) < 0) {
            in->path = NULL;
            return paramo_error_set(PARAMO_E_MEMORY, "%s: out of memory", in->name);
        }
    }
    if (strcmp(in->path, "-") != 0)
        return file_open(in, &in->fd);
    in->fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    return in->fd >= 0 ? PARAMO_OK : io_error(in->name, "cannot open");
}

paramo_err input_open(const char *path, int stop_fd, struct input **input)
{
    struct input *in = calloc(1, sizeof *in);
    struct stat st;
    if (in)
        in->fd = in->ahead = -1;
    if (!in || !(in->path = strdup(path)) ||
        !(in->name = strdup(strcmp(path, "-") == 0 ? "<stdin>" : path))) {
        input_close(in);
        return paramo_error_set(PARAMO_E_MEMORY, "%s: out of memory", path);
    }
    in->stop_fd = stop_fd;
    paramo_err err = open_source(in);
    if (err == PARAMO_OK && fstat(in->fd, &st) != 0)
        err = io_error(in->name, "cannot stat");
    if (err == PARAMO_OK && S_ISDIR(st.st_mode)) {
        err = paramo_error_set(PARAMO_E_IO,
                               "%s: is a directory, not a file (name its files, for example '%s/*')",
                               in->name, in->name);
    }
    /* standard input from a file is read like a pipe: its offset belongs to the process that opened it */
    if (err == PARAMO_OK && S_ISREG(st.st_mode) && in->ahead < 0 && strcmp(in->path, "-") != 0) {
        unsigned char magic[8];
        in->regular = st.st_size > 0; /* files of /proc have text but no size */
        in->size = (uint64_t)st.st_size;
        ssize_t n = pread(in->fd, magic, sizeof magic, 0);
        if (n < 0)
            err = io_error(in->name, "cannot read");
        else if (n == 0)
            err = paramo_error_set(PARAMO_E_FORMAT, "%s: is empty", in->name);
        else if ((err = decoder_detect(magic, (size_t)n, &in->kind)) != PARAMO_OK)
            err = paramo_error_set(err, "%s: %s", in->name, paramo_last_error());
        if (in->regular) {
            (void)close(in->fd);
            in->fd = -1;
        }
    }
    if (err != PARAMO_OK) {
        input_close(in);
        return err;
    }
    *input = in;
    return PARAMO_OK;
}

static void input_reset(struct input *in)
{
    if (in->regular && in->fd >= 0) {
        (void)close(in->fd);
        in->fd = -1;
    }
    /* thousands of files may be named: a file that is not being read holds no memory */
    decoder_close(in->decoder);
    free(in->head);
    free(in->raw);
    in->decoder = NULL;
    in->head = in->raw = NULL;
    in->started = in->raw_end = 0;
    in->raw_pos = in->raw_len = in->head_pos = in->head_len = 0;
    in->used = 0;
}

void input_close(struct input *in)
{
    if (!in)
        return;
    input_reset(in);
    if (in->fd >= 0)
        (void)close(in->fd);
    if (in->ahead >= 0)
        (void)close(in->ahead);
    free(in->name);
    free(in->path);
    free(in);
}

const char *input_name(const struct input *in)
{
    return in->name;
}

uint64_t input_size(const struct input *in)
{
    return in->size;
}

uint64_t input_used(const struct input *in)
{
    return in->used;
}

int input_is_kept(const struct input *in)
{
    return in->kept;
}

int input_is_plain(const struct input *in)
{
    return in->regular && in->kind == DECODER_NONE;
}

paramo_err input_rewind(struct input *in)
{
    if (!in->regular && in->started) {
        return paramo_error_set(
            PARAMO_E_UNSUPPORTED,
            "%s: cannot be read a second time (it is not a regular file): write the data to a file",
            in->name);
    }
    input_reset(in);
    return PARAMO_OK;
}

/* Reads the bytes of in->ahead; *got 0: there are no more. */
static paramo_err ahead_read(struct input *in, char *data, size_t cap, size_t *got)
{
    ssize_t n = in->ahead < 0 ? 0 : read(in->ahead, data, cap);
    if (n < 0)
        return io_error(in->name, "cannot read what is kept of it");
    if (n == 0 && in->ahead >= 0) {
        (void)close(in->ahead);
        in->ahead = -1;
    }
    *got = (size_t)n;
    in->used += (uint64_t)n;
    return PARAMO_OK;
}

/* Reads bytes of the file; *got 0 at its end. */
static paramo_err raw_read(struct input *in, char *data, size_t cap, size_t *got)
{
    paramo_err err = ahead_read(in, data, cap, got);
    if (err != PARAMO_OK || *got > 0)
        return err;
    if (!in->regular && in->stop_fd >= 0) {
        struct pollfd fds[2] = {{.fd = in->fd, .events = POLLIN}, {.fd = in->stop_fd, .events = POLLIN}};
        while (poll(fds, 2, -1) < 0)
            if (errno != EINTR)
                return io_error(in->name, "cannot wait for data");
        if (fds[1].revents != 0)
            return paramo_error_set(PARAMO_E_INTERRUPTED, "%s: interrupted before its end", in->name);
    }
    ssize_t n;
    do {
        n = read(in->fd, data, cap);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return io_error(in->name, "cannot read");
    *got = (size_t)n;
    in->used += (uint64_t)n;
    return PARAMO_OK;
}

static paramo_err input_start(struct input *in)
{
    paramo_err err;
    if (in->fd < 0 && (err = file_open(in, &in->fd)) != PARAMO_OK)
        return err;
    if (!(in->raw = malloc(RAW_BYTES)))
        return paramo_error_set(PARAMO_E_MEMORY, "%s: out of memory", in->name);
    in->started = 1;
    if (in->regular)
        (void)posix_fadvise(in->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    while (in->raw_len < 8 && !in->raw_end) {
        size_t n;
        if ((err = raw_read(in, in->raw + in->raw_len, RAW_BYTES - in->raw_len, &n)) != PARAMO_OK)
            return err;
        in->raw_len += n;
        in->raw_end = n == 0;
    }
    /* the kind of a regular file is known already, and other threads read it */
    if (!in->regular &&
        (err = decoder_detect((const unsigned char *)in->raw, in->raw_len, &in->kind)) != PARAMO_OK)
        return paramo_error_set(err, "%s: %s", in->name, paramo_last_error());
    return in->kind != DECODER_NONE ? decoder_open(in->kind, &in->decoder) : PARAMO_OK;
}

static paramo_err decoded_read(struct input *in, char *text, size_t cap, size_t *got)
{
    for (;;) {
        paramo_err err;
        if (in->raw_pos == in->raw_len) {
            in->raw_pos = in->raw_len = 0;
            if (!in->raw_end) {
                if ((err = raw_read(in, in->raw, RAW_BYTES, &in->raw_len)) != PARAMO_OK)
                    return err;
                in->raw_end = in->raw_len == 0;
            }
        }
        if (in->raw_end && in->raw_len == 0 && decoder_complete(in->decoder)) {
            *got = 0;
            return PARAMO_OK;
        }
        /* also without input: the decoder may have text that did not fit in the last call */
        err = decoder_run(in->decoder, in->raw, in->raw_len, &in->raw_pos, text, cap, got);
        if (err != PARAMO_OK)
            return paramo_error_set(err, "%s: %s", in->name, paramo_last_error());
        if (*got > 0)
            return PARAMO_OK;
        if (in->raw_end && in->raw_pos == in->raw_len && !decoder_complete(in->decoder)) {
            return paramo_error_set(PARAMO_E_CORRUPT, "%s: truncated %s data (the file ends too early)",
                                    in->name, in->kind == DECODER_GZIP ? "gzip" : "zstd");
        }
    }
}

/* The next text after the head. */
static paramo_err text_read(struct input *in, char *text, size_t cap, size_t *got)
{
    if (in->kind != DECODER_NONE)
        return decoded_read(in, text, cap, got);
    if (in->raw_pos < in->raw_len) {
        *got = in->raw_len - in->raw_pos < cap ? in->raw_len - in->raw_pos : cap;
        memcpy(text, in->raw + in->raw_pos, *got);
        in->raw_pos += *got;
        return PARAMO_OK;
    }
    *got = 0;
    return in->raw_end ? PARAMO_OK : raw_read(in, text, cap, got);
}

paramo_err input_read(struct input *in, char *text, size_t cap, size_t *got)
{
    paramo_err err;
    if (!in->started && (err = input_start(in)) != PARAMO_OK)
        return err;
    if (in->head_pos < in->head_len) {
        *got = in->head_len - in->head_pos < cap ? in->head_len - in->head_pos : cap;
        memcpy(text, in->head + in->head_pos, *got);
        in->head_pos += *got;
        return PARAMO_OK;
    }
    return text_read(in, text, cap, got);
}

paramo_err input_head(struct input *in, const char **text, size_t *len, int *whole)
{
    paramo_err err;
    if (!in->started && (err = input_start(in)) != PARAMO_OK)
        return err;
    if (!in->head && !(in->head = malloc(HEAD_BYTES)))
        return paramo_error_set(PARAMO_E_MEMORY, "%s: out of memory", in->name);
    *whole = 0;
    while (in->head_len < HEAD_BYTES && !*whole) {
        size_t n;
        if ((err = text_read(in, in->head + in->head_len, HEAD_BYTES - in->head_len, &n)) != PARAMO_OK)
            return err;
        in->head_len += n;
        *whole = n == 0;
    }
    if (in->head_len == 0)
        return paramo_error_set(PARAMO_E_FORMAT, "%s: is empty", in->name);
    *text = in->head;
    *len = in->head_len;
    return PARAMO_OK;
}

static paramo_err read_fully(int fd, const char *name, uint64_t offset, char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = pread(fd, data, len, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return io_error(name, "cannot read");
        if (n == 0)
            return paramo_error_set(PARAMO_E_IO, "%s: became shorter while it was read", name);
        data += n;
        offset += (uint64_t)n;
        len -= (size_t)n;
    }
    return PARAMO_OK;
}

paramo_err input_read_at(const struct input *in, uint64_t offset, char *text, size_t len)
{
    int fd;
    paramo_err err = file_open(in, &fd);
    if (err == PARAMO_OK) {
        err = read_fully(fd, in->name, offset, text, len);
        (void)close(fd);
    }
    return err;
}

/* ---- the temporary file -------------------------------------------------------------------------------- */

paramo_err input_temp_open(const char *dir, int *fd)
{
    char path[4096];
    if (!dir)
        dir = getenv("TMPDIR");
    if (!dir || *dir == '\0')
        dir = "/var/tmp"; /* /tmp is memory on many systems */
    *fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
    if (*fd >= 0)
        return PARAMO_OK;
    /* file systems without O_TMPFILE */
    if (snprintf(path, sizeof path, "%s/paramo-XXXXXX", dir) >= (int)sizeof path)
        return paramo_error_set(PARAMO_E_INVALID, "%s: path is too long", dir);
    *fd = mkostemp(path, O_CLOEXEC);
    if (*fd < 0)
        return io_error(dir, "cannot make a temporary file");
    (void)unlink(path);
    return PARAMO_OK;
}

paramo_err input_temp_write(int fd, uint64_t offset, const void *data, size_t len)
{
    const char *p = data;
    while (len > 0) {
        ssize_t n = pwrite(fd, p, len, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return io_error("temporary file", "cannot write");
        p += n;
        offset += (uint64_t)n;
        len -= (size_t)n;
    }
    return PARAMO_OK;
}

paramo_err input_temp_read(int fd, uint64_t offset, void *data, size_t len)
{
    return read_fully(fd, "temporary file", offset, data, len);
}

void input_temp_close(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

/* ---- the machine --------------------------------------------------------------------------------------- */

paramo_err input_stop_open(int *fd)
{
    *fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return *fd >= 0 ? PARAMO_OK
                    : paramo_error_set(PARAMO_E_SYSTEM, "cannot make the eventfd that interrupts reading: %s",
                                       strerror(errno));
}

void input_stop_raise(int fd)
{
    int e = errno;
    const uint64_t one = 1;
    ssize_t n = write(fd, &one, sizeof one);
    (void)n; /* it fails only if the descriptor is readable already */
    errno = e;
}

/* The number that follows `word` in a small file, times unit; UINT64_MAX if there is none (the file says "max", or does
 * not exist). */
static uint64_t number_in_file(const char *path, const char *word, uint64_t unit)
{
    char text[8192];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return UINT64_MAX;
    ssize_t n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *p = strstr(text, word);
    if (!p)
        return UINT64_MAX;
    char *end;
    p += strlen(word);
    unsigned long long v = strtoull(p, &end, 10);
    return end == p ? UINT64_MAX : v * unit;
}

uint64_t input_available_memory(void)
{
    uint64_t machine = number_in_file("/proc/meminfo", "MemAvailable:", 1024);
    uint64_t limit = number_in_file("/sys/fs/cgroup/memory.max", "", 1);
    uint64_t used = number_in_file("/sys/fs/cgroup/memory.current", "", 1);
    uint64_t group = limit == UINT64_MAX || used == UINT64_MAX ? UINT64_MAX : limit > used ? limit - used : 0;
    uint64_t least = machine < group ? machine : group;
    return least == UINT64_MAX ? UINT64_C(1) << 30 : least;
}

unsigned input_available_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    return (unsigned)CPU_COUNT(&set);
}
