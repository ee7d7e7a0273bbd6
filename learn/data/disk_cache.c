#include "learn/data/disk_cache.h"
#include "learn/data/cache_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

#define NAME_LEN 100 /* characters of the source's name in the name of its file, at most; arbitrary */

struct stored_stream {
    char *source, *path;    /* NULL: the stream is not cached */
    struct cache_source as; /* the source when this run began */
    struct cache_file kept; /* of another run */
    struct cache_file made; /* of this run */
    int damaged;            /* kept is damaged: this run replaces it */
    int failed;             /* no more parts are written */
    int committed;
    unsigned writing; /* threads that use the descriptor of a file, to write or to read */
};

struct disk_cache {
    pthread_mutex_t lock; /* of all below; held during output only in commit() */
    char *dir;
    uint32_t streams;
    char note[PARAMO_ERROR_MAX];
    struct stored_stream *stream; /* [streams] */
};

paramo_err disk_cache_open(const char *dir, uint32_t streams, struct disk_cache **cache)
{
    struct disk_cache *c = calloc(1, sizeof *c);
    if (c) {
        c->stream = calloc(streams, sizeof *c->stream);
        c->dir = strdup(dir);
    }
    if (!c || !c->stream || !c->dir) {
        if (c) {
            free(c->stream);
            free(c->dir);
        }
        free(c);
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the cache on disk");
    }
    (void)pthread_mutex_init(&c->lock, NULL);
    c->streams = streams;
    for (uint32_t s = 0; s < streams; s++) {
        cache_file_init(&c->stream[s].kept);
        cache_file_init(&c->stream[s].made);
    }
    *cache = c;
    return PARAMO_OK;
}

/* Keeps the first error, and `what` follows from it; lock held. */
static void note(struct disk_cache *c, const char *what)
{
    if (c->note[0] == '\0')
        (void)snprintf(c->note, sizeof c->note, "%.*s; %s", PARAMO_ERROR_MAX - 80, paramo_last_error(), what);
}

/* Keeps no more parts of this stream; lock held. The file stays open while a thread uses its descriptor. */
static void give_up(struct disk_cache *c, struct stored_stream *s)
{
    s->failed = 1;
    note(c, "this run continues without writing the cache");
    if (s->writing == 0)
        cache_file_close(&s->made);
}

/* dir/<name of the source>-<hash of its path and of the settings>.parts; NULL: no memory. */
static char *path_of(const char *dir, const char *source, uint64_t settings)
{
    const char *slash = strrchr(source, '/'), *name = slash ? slash + 1 : source;
    char *path;
    return asprintf(&path, "%s/%.*s-%016llx.parts", dir, NAME_LEN, name,
                    (unsigned long long)XXH3_64bits_withSeed(source, strlen(source), settings)) < 0
               ? NULL
               : path;
}

void disk_cache_source(struct disk_cache *c, uint32_t stream, const char *path, const void *settings,
                       size_t len)
{
    struct stored_stream *s = &c->stream[stream];
    const uint64_t sum = XXH3_64bits(settings, len);
    s->source = realpath(path, NULL);
    paramo_err err = s->source ? cache_source_look(s->source, sum, &s->as)
                               : paramo_error_set(PARAMO_E_IO, "%s: %s", path, strerror(errno));
    if (err == PARAMO_OK) {
        s->path = path_of(c->dir, s->source, sum);
        err = s->path ? cache_file_open(s->path, &s->as, &s->kept)
                      : paramo_error_set(PARAMO_E_MEMORY, "out of memory for the cache on disk");
    }
    if (err == PARAMO_OK)
        return;
    (void)pthread_mutex_lock(&c->lock);
    note(c, err == PARAMO_E_CORRUPT ? "it is made again" : "it is not used");
    (void)pthread_mutex_unlock(&c->lock);
    s->damaged = err == PARAMO_E_CORRUPT;
    if (err != PARAMO_E_CORRUPT) {
        free(s->path);
        s->path = NULL;
    }
}

uint64_t disk_cache_parts(struct disk_cache *c, uint32_t stream)
{
    struct stored_stream *s = &c->stream[stream];
    (void)pthread_mutex_lock(&c->lock);
    const uint64_t parts = s->damaged || s->kept.parts == UINT64_MAX ? s->made.parts : s->kept.parts;
    (void)pthread_mutex_unlock(&c->lock);
    return parts;
}

int disk_cache_get(struct disk_cache *c, uint32_t stream, uint64_t index, struct held **held, uint64_t *bad,
                   char first_bad[PARAMO_ERROR_MAX])
{
    struct stored_stream *s = &c->stream[stream];
    struct cache_record record;
    int found = 0, fd = -1, kept = 0;
    if (!s->path)
        return 0;
    (void)pthread_mutex_lock(&c->lock);
    const struct cache_record *at = cache_file_find(&s->made, index);
    const struct cache_file *of = at ? &s->made : &s->kept;
    kept = !at;
    if (!at && !s->damaged)
        at = cache_file_find(&s->kept, index);
    if (at) {
        found = 1;
        record = *at;
        fd = of->fd;
        (void)snprintf(first_bad, PARAMO_ERROR_MAX, "%s", of->bad_part == index ? of->first_bad : "");
        s->writing++; /* so that the descriptor stays open */
    }
    (void)pthread_mutex_unlock(&c->lock);
    if (!found)
        return 0;
    struct held *h = calloc(1, sizeof *h);
    paramo_err err = h ? cache_record_read(fd, &record, &h->block)
                       : paramo_error_set(PARAMO_E_MEMORY, "out of memory for a block of the cache");
    if (err == PARAMO_E_CORRUPT)
        err = paramo_error_set(err, "%s: %s", s->path, paramo_last_error());
    (void)pthread_mutex_lock(&c->lock);
    s->writing--;
    if (err != PARAMO_OK && kept && !s->damaged) {
        note(c, "it is made again");
        s->damaged = 1;
    } else if (err != PARAMO_OK && !kept) {
        give_up(c, s);
    }
    (void)pthread_mutex_unlock(&c->lock);
    if (err != PARAMO_OK) {
        free(h);
        return 0;
    }
    const struct block_shape shape = block_shape(&h->block);
    h->bytes = block_bytes(&shape) + sizeof *h;
    h->block.stream = stream;
    atomic_init(&h->owners, 1);
    *bad = record.bad_lines;
    *held = h;
    return 1;
}

/* ---- writing ---- */

/* Copies the parts of `from` that the new file lacks. */
static paramo_err take_parts(struct cache_file *made, const struct cache_file *from)
{
    paramo_err err = PARAMO_OK;
    for (size_t i = 0; i < from->n && err == PARAMO_OK; i++) {
        struct cache_record record = from->record[i];
        if (cache_file_find(made, record.index))
            continue;
        record.offset = made->end;
        err = cache_record_copy(from->fd, from->record[i].offset, made->fd, &record);
        if (err == PARAMO_OK)
            err = cache_file_add(made, &record);
        made->end += cache_record_bytes(&record);
    }
    if (made->parts == UINT64_MAX)
        made->parts = from->parts;
    if (made->bad_part == UINT64_MAX && from->bad_part != UINT64_MAX) {
        made->bad_part = from->bad_part;
        memcpy(made->first_bad, from->first_bad, sizeof made->first_bad);
    }
    return err;
}

/* Renames the file into place, with the parts that other processes have put there. Lock held: readers of parts wait. */
static void commit(struct disk_cache *c, struct stored_stream *s)
{
    struct cache_source now;
    struct cache_file there;
    s->committed = 1;
    if (cache_source_look(s->source, s->as.settings, &now) != PARAMO_OK || !cache_source_same(&now, &s->as))
        return; /* the source has changed while it was read */
    int folder = open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (folder >= 0 && flock(folder, LOCK_EX) != 0 && errno == EINTR) {
    }
    paramo_err err = PARAMO_OK;
    if (s->made.n < s->made.parts) { /* not all */
        if (cache_file_open(s->path, &s->as, &there) == PARAMO_OK && there.fd >= 0) {
            err = take_parts(&s->made, &there);
            cache_file_close(&there);
        } else if (!s->damaged && s->kept.fd >= 0) {
            err = take_parts(&s->made, &s->kept);
        }
    }
    if (err == PARAMO_OK)
        err = cache_file_commit(&s->made, s->path, &s->as);
    if (err != PARAMO_OK)
        give_up(c, s);
    if (folder >= 0)
        (void)close(folder);
}

/* Are all parts in the new file? Lock held. */
static int complete(const struct stored_stream *s)
{
    return s->made.fd >= 0 && s->writing == 0 && !s->failed && !s->committed && s->made.parts != UINT64_MAX &&
           s->made.n == s->made.parts;
}

/* Reserves a place for the record in the new file, and creates the file for the first record. Returns 0 if the record
 * is not kept. Lock held. */
static int begin_put(struct disk_cache *c, struct stored_stream *s, struct cache_record *record)
{
    const int there = cache_file_find(&s->made, record->index) != NULL ||
                      (!s->damaged && cache_file_find(&s->kept, record->index) != NULL);
    if (s->failed || s->committed || there)
        return 0;
    if (s->made.fd < 0) {
        const uint64_t parts = s->made.parts;
        if (cache_file_create(c->dir, &s->made) != PARAMO_OK) {
            give_up(c, s);
            return 0;
        }
        s->made.parts = parts;
    }
    record->offset = s->made.end;
    s->made.end += cache_record_bytes(record);
    s->writing++;
    return 1;
}

int disk_cache_put(struct disk_cache *c, uint32_t stream, const struct block *block, uint64_t bad,
                   const char *first_bad)
{
    struct stored_stream *s = &c->stream[stream];
    if (!s->path)
        return 0;
    struct cache_record record = cache_record_of(block, 0, bad);
    (void)pthread_mutex_lock(&c->lock);
    const int begun = begin_put(c, s, &record), fd = s->made.fd;
    (void)pthread_mutex_unlock(&c->lock);
    if (!begun)
        return 0;
    paramo_err err = cache_record_write(fd, &record, block);
    (void)pthread_mutex_lock(&c->lock);
    s->writing--;
    if (err == PARAMO_OK && !s->failed)
        err = cache_file_add(&s->made, &record);
    if (err == PARAMO_OK && bad > 0 && first_bad[0] != '\0' && s->made.bad_part == UINT64_MAX) {
        s->made.bad_part = block->index;
        (void)snprintf(s->made.first_bad, sizeof s->made.first_bad, "%s", first_bad);
    }
    if (err != PARAMO_OK || s->failed)
        give_up(c, s);
    else if (complete(s))
        commit(c, s);
    const int done = !s->failed;
    (void)pthread_mutex_unlock(&c->lock);
    return done;
}

void disk_cache_end(struct disk_cache *c, uint32_t stream, uint64_t parts)
{
    struct stored_stream *s = &c->stream[stream];
    (void)pthread_mutex_lock(&c->lock);
    if (s->path && s->made.parts == UINT64_MAX) {
        s->made.parts = parts;
        if (complete(s))
            commit(c, s);
    }
    (void)pthread_mutex_unlock(&c->lock);
}

void disk_cache_close(struct disk_cache *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < c->streams; i++) {
        struct stored_stream *s = &c->stream[i];
        if (s->made.fd >= 0 && s->made.n > 0 && !s->failed && !s->committed)
            commit(c, s);
        cache_file_close(&s->made);
        cache_file_close(&s->kept);
        free(s->source);
        free(s->path);
    }
    (void)pthread_mutex_destroy(&c->lock);
    free(c->stream);
    free(c->dir);
    free(c);
}

void disk_cache_note(struct disk_cache *c, char *text, size_t cap, uint64_t *bytes)
{
    (void)pthread_mutex_lock(&c->lock);
    (void)snprintf(text, cap, "%s", c->note);
    *bytes = 0;
    for (uint32_t i = 0; i < c->streams; i++)
        *bytes += (c->stream[i].made.fd >= 0 ? c->stream[i].made.end : 0) +
                  (c->stream[i].kept.fd >= 0 ? c->stream[i].kept.end : 0);
    (void)pthread_mutex_unlock(&c->lock);
}
