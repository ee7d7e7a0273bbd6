#include "learn/data/cache.h"
#include "learn/data/packed.h"
#include "learn/io/input.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    struct held *held; /* in memory */
    uint64_t offset;   /* in the file, if spilled */
    uint64_t first_line;
    struct packed packed; /* if spilled */
    unsigned seen : 1, spilled : 1;
};

struct entries {
    struct entry *entry;
    size_t len;
};

struct cache {
    pthread_mutex_t lock; /* of all below; never held while blocks are read or written */
    uint64_t limit, memory, spilled;
    char *spill_dir;
    int fd; /* -1: not opened yet */
    int spill_failed;
    char spill_error[160];
    uint32_t streams;
    struct entries *stream; /* [streams] */
};

void held_retain(struct held *held)
{
    (void)atomic_fetch_add_explicit(&held->owners, 1, memory_order_relaxed);
}

void held_release(struct held *held)
{
    if (atomic_fetch_sub_explicit(&held->owners, 1, memory_order_acq_rel) == 1) {
        block_free(&held->block);
        block_keys_free(atomic_load_explicit(&held->keys, memory_order_relaxed));
        free(held);
    }
}

paramo_err cache_open(uint32_t streams, uint64_t limit, const char *spill_dir, struct cache **cache)
{
    struct cache *c = calloc(1, sizeof *c);
    if (c) {
        c->stream = calloc(streams, sizeof *c->stream);
        c->spill_dir = spill_dir ? strdup(spill_dir) : NULL;
    }
    if (!c || !c->stream || (spill_dir && !c->spill_dir)) {
        if (c) {
            free(c->stream);
            free(c->spill_dir);
        }
        free(c);
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the cache of parsed data");
    }
    (void)pthread_mutex_init(&c->lock, NULL);
    c->streams = streams;
    c->limit = limit;
    c->fd = -1;
    *cache = c;
    return PARAMO_OK;
}

void cache_close(struct cache *c)
{
    if (!c)
        return;
    for (uint32_t s = 0; s < c->streams; s++) {
        for (size_t i = 0; i < c->stream[s].len; i++)
            if (c->stream[s].entry[i].held)
                held_release(c->stream[s].entry[i].held);
        free(c->stream[s].entry);
    }
    input_temp_close(c->fd);
    (void)pthread_mutex_destroy(&c->lock);
    free(c->stream);
    free(c->spill_dir);
    free(c);
}

/* ---- get and put --------------------------------------------------------------------------------------- */

paramo_err cache_get(struct cache *c, uint32_t stream, uint64_t index, struct held **held, int *seen)
{
    struct entry e = {0};
    int fd;
    *held = NULL;
    (void)pthread_mutex_lock(&c->lock);
    if (index < c->stream[stream].len) {
        e = c->stream[stream].entry[index];
        if (e.held)
            held_retain(e.held);
    }
    fd = c->fd;
    (void)pthread_mutex_unlock(&c->lock);
    *seen = e.seen;
    *held = e.held;
    if (!e.spilled)
        return PARAMO_OK;
    struct held *h = calloc(1, sizeof *h);
    if (!h)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a block of the cache");
    paramo_err err = packed_read(fd, e.offset, &e.packed, &h->block, NULL);
    if (err != PARAMO_OK) {
        free(h);
        return err;
    }
    h->bytes = block_bytes(&e.packed.shape);
    h->block.stream = stream;
    h->block.index = index;
    h->block.first_line = e.first_line;
    atomic_init(&h->owners, 1);
    *held = h;
    return PARAMO_OK;
}

static paramo_err entries_reserve(struct entries *list, uint64_t index)
{
    if (index < list->len)
        return PARAMO_OK;
    size_t len = (size_t)index + 16 + (size_t)index / 2;
    struct entry *entry = realloc(list->entry, len * sizeof *entry);
    if (!entry)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the list of parts");
    memset(entry + list->len, 0, (len - list->len) * sizeof *entry);
    list->entry = entry;
    list->len = len;
    return PARAMO_OK;
}

static void spill_give_up(struct cache *c)
{
    (void)pthread_mutex_lock(&c->lock);
    if (!c->spill_failed) {
        c->spill_failed = 1;
        (void)snprintf(c->spill_error, sizeof c->spill_error, "%s", paramo_last_error());
    }
    (void)pthread_mutex_unlock(&c->lock);
}

/* Writes the block to the file, and then sets its entry. */
static void spill(struct cache *c, const struct held *held)
{
    const struct block *b = &held->block;
    struct entry e = {.packed = packed_of(b), .first_line = b->first_line, .seen = 1, .spilled = 1};
    (void)pthread_mutex_lock(&c->lock);
    int fd = c->fd;
    paramo_err err = PARAMO_OK;
    if (fd < 0) { /* once */
        err = input_temp_open(c->spill_dir, &c->fd);
        fd = c->fd;
    }
    e.offset = c->spilled;
    c->spilled += packed_bytes(&e.packed);
    (void)pthread_mutex_unlock(&c->lock);
    if (err == PARAMO_OK)
        err = packed_write(fd, e.offset, &e.packed, b, NULL);
    if (err != PARAMO_OK) {
        spill_give_up(c);
        return;
    }
    (void)pthread_mutex_lock(&c->lock);
    struct entry *entry = &c->stream[b->stream].entry[b->index];
    if (!entry->held && !entry->spilled)
        *entry = e;
    (void)pthread_mutex_unlock(&c->lock);
}

paramo_err cache_put(struct cache *c, struct held *held, int may_spill)
{
    const struct block *b = &held->block;
    (void)pthread_mutex_lock(&c->lock);
    struct entries *list = &c->stream[b->stream];
    paramo_err err = entries_reserve(list, b->index);
    int to_file = 0;
    if (err == PARAMO_OK) {
        struct entry *entry = &list->entry[b->index];
        entry->seen = 1;
        if (c->limit == 0 || entry->held || entry->spilled) {
            to_file = 0;
        } else if (c->memory + held->bytes <= c->limit) {
            held_retain(held);
            held->home = c;
            entry->held = held;
            c->memory += held->bytes;
        } else {
            to_file = may_spill && !c->spill_failed;
        }
    }
    (void)pthread_mutex_unlock(&c->lock);
    if (to_file)
        spill(c, held);
    return err;
}

const struct block_keys *cache_keys(struct held *held, int *wanted)
{
    struct cache *c = held->home;
    const struct block_keys *keys = atomic_load_explicit(&held->keys, memory_order_acquire);
    *wanted = 0;
    if (!keys && c) {
        (void)pthread_mutex_lock(&c->lock);
        *wanted = c->memory + block_keys_bytes(held->block.features, held->block.features) <= c->limit;
        (void)pthread_mutex_unlock(&c->lock);
    }
    return keys;
}

const struct block_keys *cache_keep_keys(struct held *held, struct block_keys *keys)
{
    struct cache *c = held->home;
    const size_t bytes = block_keys_bytes(keys->n, held->block.features);
    (void)pthread_mutex_lock(&c->lock);
    struct block_keys *kept = atomic_load_explicit(&held->keys, memory_order_relaxed);
    if (!kept && c->memory + bytes <= c->limit) {
        atomic_store_explicit(&held->keys, keys, memory_order_release);
        c->memory += bytes;
        kept = keys;
    }
    (void)pthread_mutex_unlock(&c->lock);
    if (kept != keys)
        block_keys_free(keys);
    return kept;
}

void cache_stats(struct cache *c, uint64_t *memory_bytes, uint64_t *spill_bytes, char *spill_error,
                 size_t cap)
{
    (void)pthread_mutex_lock(&c->lock);
    *memory_bytes = c->memory;
    *spill_bytes = c->spilled;
    (void)snprintf(spill_error, cap, "%s", c->spill_error);
    (void)pthread_mutex_unlock(&c->lock);
}
