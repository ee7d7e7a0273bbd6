#include "learn/data/cache_file.h"
#include "learn/io/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define MAGIC        "paramoC1"
#define BYTE_ORDER_4 UINT32_C(0x01020304)
#define VERSION      1 /* of this file's layout */
#define PIECE        4096
#define PIECES       128
#define NS_PER_S     UINT64_C(1000000000)

enum { HAS_VALUE = 1, HAS_FIELD = 2, HAS_WEIGHT = 4, NARROW = 8, FLAGS = 15 };

struct header {
    char magic[8];
    uint32_t byte_order, version;
    struct cache_source source;
    uint64_t parts, records, index_offset, index_sum, bad_part;
    char first_bad[CACHE_FILE_TEXT];
    char zero[512 - 16 - sizeof(struct cache_source) - 5 * 8 - CACHE_FILE_TEXT - 8];
    uint64_t sum; /* of all before it */
};
_Static_assert(sizeof(struct header) == 512, "the header of a cache's file");

static paramo_err no_memory(void)
{
    return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the cache on disk");
}

static paramo_err io_error(const char *path)
{
    return paramo_error_set(errno == ENOENT ? PARAMO_E_NOT_FOUND : PARAMO_E_IO, "%s: %s", path,
                            strerror(errno));
}

/* ---- the source ---- */

static int read_piece(int fd, uint64_t at, char *piece, size_t len)
{
    for (size_t got = 0; got < len;) {
        ssize_t n = pread(fd, piece + got, len - got, (off_t)(at + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        got += (size_t)n;
    }
    return 1;
}

static paramo_err content_of(int fd, const char *path, uint64_t size, uint64_t *sum)
{
    char *piece = malloc(PIECE);
    XXH3_state_t *state = XXH3_createState();
    paramo_err err = piece && state ? PARAMO_OK : no_memory();
    const uint64_t pieces = size <= (uint64_t)PIECES * PIECE ? (size + PIECE - 1) / PIECE : PIECES;
    if (state)
        (void)XXH3_64bits_reset(state);
    for (uint64_t i = 0; err == PARAMO_OK && i < pieces; i++) {
        const uint64_t last = size > PIECE ? size - PIECE : 0;
        const uint64_t at = size <= (uint64_t)PIECES * PIECE
                                ? i * PIECE
                                : (uint64_t)((double)last * (double)i / (double)(pieces - 1));
        const size_t len = size - at < PIECE ? (size_t)(size - at) : PIECE;
        errno = 0; /* stays 0 if the file has become shorter */
        if (!read_piece(fd, at, piece, len))
            err = paramo_error_set(PARAMO_E_IO, "%s: %s", path,
                                   errno ? strerror(errno) : "it has changed while it was read");
        else
            (void)XXH3_64bits_update(state, piece, len);
    }
    if (err == PARAMO_OK)
        *sum = XXH3_64bits_digest(state);
    (void)XXH3_freeState(state);
    free(piece);
    return err;
}

paramo_err cache_source_look(const char *path, uint64_t settings, struct cache_source *source)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        paramo_err err = io_error(path);
        if (fd >= 0)
            (void)close(fd);
        return err;
    }
    *source = (struct cache_source){.dev = st.st_dev,
                                    .ino = st.st_ino,
                                    .size = (uint64_t)st.st_size,
                                    .mtime_ns =
                                        (uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec,
                                    .settings = settings};
    paramo_err err = content_of(fd, path, source->size, &source->content);
    (void)close(fd);
    return err;
}

int cache_source_same(const struct cache_source *a, const struct cache_source *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* ---- records ---- */

void cache_file_init(struct cache_file *f)
{
    *f = (struct cache_file){
        .fd = -1, .parts = UINT64_MAX, .end = sizeof(struct header), .bad_part = UINT64_MAX};
}

void cache_file_close(struct cache_file *f)
{
    if (f->temporary[0] != '\0')
        (void)unlink(f->temporary);
    if (f->fd >= 0)
        (void)close(f->fd);
    free(f->record);
    cache_file_init(f);
}

/* The place of the first record whose index is not below `index`. */
static size_t place_of(const struct cache_file *f, uint64_t index)
{
    size_t from = 0, to = f->n;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (f->record[middle].index < index)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

const struct cache_record *cache_file_find(const struct cache_file *f, uint64_t index)
{
    const size_t at = place_of(f, index);
    return at < f->n && f->record[at].index == index ? &f->record[at] : NULL;
}

paramo_err cache_file_add(struct cache_file *f, const struct cache_record *record)
{
    if (f->n == f->cap) {
        const size_t cap = 2 * f->cap + 64;
        struct cache_record *more = realloc(f->record, cap * sizeof *more);
        if (!more)
            return no_memory();
        f->record = more;
        f->cap = cap;
    }
    const size_t at = place_of(f, record->index);
    memmove(f->record + at + 1, f->record + at, (f->n - at) * sizeof *f->record);
    f->record[at] = *record;
    f->n++;
    return PARAMO_OK;
}

static struct packed packed_like(const struct cache_record *r)
{
    return (struct packed){.shape = {.rows = (size_t)r->rows,
                                     .features = (size_t)r->features,
                                     .has_value = (r->flags & HAS_VALUE) != 0,
                                     .has_field = (r->flags & HAS_FIELD) != 0,
                                     .has_weight = (r->flags & HAS_WEIGHT) != 0},
                           .narrow = (r->flags & NARROW) != 0};
}

size_t cache_record_bytes(const struct cache_record *record)
{
    const struct packed packed = packed_like(record);
    return packed_bytes(&packed);
}

struct cache_record cache_record_of(const struct block *b, uint64_t offset, uint64_t bad_lines)
{
    const struct packed p = packed_of(b);
    return (struct cache_record){.index = b->index,
                                 .offset = offset,
                                 .rows = b->rows,
                                 .features = b->features,
                                 .first_line = b->first_line,
                                 .bad_lines = bad_lines,
                                 .flags = (p.shape.has_value ? HAS_VALUE : 0u) |
                                          (p.shape.has_field ? HAS_FIELD : 0u) |
                                          (p.shape.has_weight ? HAS_WEIGHT : 0u) | (p.narrow ? NARROW : 0u)};
}

paramo_err cache_record_write(int fd, struct cache_record *record, const struct block *block)
{
    const struct packed packed = packed_like(record);
    return packed_write(fd, record->offset, &packed, block, &record->sum);
}

/* Do the rows' offsets ascend? A checksum shows damage, but not that a program wrote nonsense. */
static int rows_valid(const struct block *b)
{
    int valid = b->offset[0] == 0 && b->offset[b->rows] == b->features;
    for (size_t r = 0; r < b->rows; r++)
        valid &= b->offset[r] <= b->offset[r + 1];
    return valid;
}

paramo_err cache_record_read(int fd, const struct cache_record *record, struct block *block)
{
    const struct packed packed = packed_like(record);
    uint64_t sum;
    paramo_err err = packed_read(fd, record->offset, &packed, block, &sum);
    if (err == PARAMO_OK && (sum != record->sum || !rows_valid(block))) {
        block_free(block);
        err = paramo_error_set(PARAMO_E_CORRUPT, "the checksum of part %llu is wrong",
                               (unsigned long long)record->index);
    }
    if (err == PARAMO_OK) {
        block->index = record->index;
        block->first_line = record->first_line;
    }
    return err;
}

paramo_err cache_record_copy(int from, uint64_t offset, int to, const struct cache_record *record)
{
    const size_t len = cache_record_bytes(record);
    char *bytes = malloc(len);
    paramo_err err = bytes ? PARAMO_OK : no_memory();
    if (err == PARAMO_OK)
        err = input_temp_read(from, offset, bytes, len);
    if (err == PARAMO_OK)
        err = input_temp_write(to, record->offset, bytes, len);
    free(bytes);
    return err;
}

/* ---- files ---- */

/* What is wrong with a header; NULL: nothing. */
static const char *header_wrong(const struct header *h, uint64_t size)
{
    if (memcmp(h->magic, MAGIC, sizeof h->magic) != 0 || h->byte_order != BYTE_ORDER_4)
        return "is not a cache file";
    if (h->sum != XXH3_64bits(h, sizeof *h - sizeof h->sum))
        return "the checksum of its header is wrong";
    if (h->index_offset < sizeof *h || h->index_offset > size ||
        h->records > (size - h->index_offset) / sizeof(struct cache_record) ||
        size - h->index_offset != h->records * sizeof(struct cache_record))
        return "does not have the size that it was written with";
    return NULL;
}

/* What is wrong with an index; NULL: nothing. */
static const char *index_wrong(const struct cache_file *f, const struct header *h)
{
    if (XXH3_64bits(f->record, f->n * sizeof *f->record) != h->index_sum)
        return "the checksum of its index is wrong";
    for (size_t i = 0; i < f->n; i++) {
        const struct cache_record *r = &f->record[i];
        if (r->rows > UINT32_MAX || r->features > UINT32_MAX || r->flags > FLAGS || r->index >= h->parts ||
            r->offset < sizeof *h || r->offset > h->index_offset ||
            cache_record_bytes(r) > h->index_offset - r->offset ||
            (i > 0 && f->record[i - 1].index >= r->index))
            return "its index is not valid";
    }
    return NULL;
}

/* Reads header and index of f->fd. *ours 0: the file is of another source or version. */
static paramo_err read_index(struct cache_file *f, const char *path, const struct cache_source *source,
                             int *ours)
{
    struct header h;
    struct stat st;
    *ours = 0;
    if (fstat(f->fd, &st) != 0)
        return io_error(path);
    errno = 0;
    if (st.st_size < (off_t)sizeof h || !read_piece(f->fd, 0, (char *)&h, sizeof h))
        return errno ? io_error(path)
                     : paramo_error_set(PARAMO_E_CORRUPT, "%s: is shorter than the header of a cache's file",
                                        path);
    const char *wrong = header_wrong(&h, (uint64_t)st.st_size);
    if (wrong)
        return paramo_error_set(PARAMO_E_CORRUPT, "%s: %s", path, wrong);
    if (h.version != VERSION || !cache_source_same(&h.source, source))
        return PARAMO_OK;
    f->record = malloc(h.records * sizeof *f->record + 1);
    if (!f->record)
        return no_memory();
    if (!read_piece(f->fd, h.index_offset, (char *)f->record, h.records * sizeof *f->record))
        return paramo_error_set(PARAMO_E_IO, "%s: its index cannot be read", path);
    f->n = f->cap = (size_t)h.records;
    if ((wrong = index_wrong(f, &h)))
        return paramo_error_set(PARAMO_E_CORRUPT, "%s: %s", path, wrong);
    f->parts = h.parts;
    f->end = h.index_offset;
    f->bad_part = h.bad_part;
    memcpy(f->first_bad, h.first_bad, sizeof f->first_bad);
    f->first_bad[sizeof f->first_bad - 1] = '\0';
    *ours = 1;
    return PARAMO_OK;
}

paramo_err cache_file_open(const char *path, const struct cache_source *source, struct cache_file *f)
{
    int ours = 0;
    cache_file_init(f);
    f->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0)
        return errno == ENOENT ? PARAMO_OK : io_error(path);
    paramo_err err = read_index(f, path, source, &ours);
    if (err != PARAMO_OK || !ours)
        cache_file_close(f);
    return err;
}

paramo_err cache_file_create(const char *dir, struct cache_file *f)
{
    cache_file_init(f);
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return paramo_error_set(PARAMO_E_IO, "%s: cannot be created: %s", dir, strerror(errno));
    f->fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    if (f->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
        if (snprintf(f->temporary, sizeof f->temporary, "%s/.paramo-cache-XXXXXX", dir) >=
            (int)sizeof f->temporary)
            return paramo_error_set(PARAMO_E_INVALID, "%s: path is too long", dir);
        f->fd = mkostemp(f->temporary, O_CLOEXEC);
        if (f->fd < 0)
            f->temporary[0] = '\0';
    }
    return f->fd >= 0 ? PARAMO_OK : paramo_error_set(PARAMO_E_IO, "%s: %s", dir, strerror(errno));
}

/* Gives an unnamed file a name beside path: rename needs one. */
static paramo_err name_file(struct cache_file *f, const char *path)
{
    char of[64];
    if (f->temporary[0] != '\0')
        return PARAMO_OK;
    (void)snprintf(of, sizeof of, "/proc/self/fd/%d", f->fd);
    for (int i = 0; i < 100; i++) { /* an older process with the same pid may have left such a file */
        if (snprintf(f->temporary, sizeof f->temporary, "%s.%ld-%d.tmp", path, (long)getpid(), i) >=
            (int)sizeof f->temporary)
            break;
        if (linkat(AT_FDCWD, of, AT_FDCWD, f->temporary, AT_SYMLINK_FOLLOW) == 0)
            return PARAMO_OK;
        if (errno != EEXIST)
            break;
    }
    f->temporary[0] = '\0';
    return io_error(path);
}

paramo_err cache_file_commit(struct cache_file *f, const char *path, const struct cache_source *source)
{
    struct header h = {.byte_order = BYTE_ORDER_4,
                       .version = VERSION,
                       .source = *source,
                       .parts = f->parts,
                       .records = f->n,
                       .index_offset = f->end,
                       .index_sum = XXH3_64bits(f->record, f->n * sizeof *f->record),
                       .bad_part = f->bad_part};
    memcpy(h.magic, MAGIC, sizeof h.magic);
    memcpy(h.first_bad, f->first_bad, sizeof h.first_bad);
    h.sum = XXH3_64bits(&h, sizeof h - sizeof h.sum);
    paramo_err err = input_temp_write(f->fd, f->end, f->record, f->n * sizeof *f->record);
    if (err == PARAMO_OK)
        err = input_temp_write(f->fd, 0, &h, sizeof h);
    if (err == PARAMO_OK)
        err = name_file(f, path);
    if (err == PARAMO_OK && rename(f->temporary, path) != 0)
        err = io_error(path);
    if (err == PARAMO_OK)
        f->temporary[0] = '\0';
    return err;
}
