#include "server/shard/rowcache.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"

/* Never 0. Lists with equal marks are told apart by their keys. */
static uint64_t mark_of(const uint64_t *keys, size_t n)
{
    uint64_t x = mix64(keys[0] + n);
    x = mix64(x ^ keys[n / 3]);
    x = mix64(x ^ keys[n / 2]);
    return mix64(x ^ keys[n - 1]) | 1;
}

static size_t bytes_of(size_t n)
{
    return n * (sizeof(uint64_t) + sizeof(uint32_t));
}

void rowcache_init(struct rowcache *c, struct bufpool *pool)
{
    *c = (struct rowcache){.pool = pool};
}

/* The lists are a part of a circle; none has memory when there is no list. */
static void rowcache_check(const struct rowcache *c)
{
    assert(c->count <= ROWCACHE_LISTS && c->oldest < ROWCACHE_LISTS);
    assert(c->bytes <= ROWCACHE_BYTES && (c->count || !c->bytes));
}

static void drop_oldest(struct rowcache *c)
{
    rowcache_check(c);
    struct rowcache_list *l = &c->list[c->oldest];
    assert(c->count > 0 && c->bytes >= bytes_of(l->n));
    bufpool_put(c->pool, l->keys, bytes_of(l->n));
    c->bytes -= bytes_of(l->n);
    c->mark[c->oldest] = 0;
    c->oldest = (c->oldest + 1) % ROWCACHE_LISTS;
    c->count--;
}

void rowcache_fini(struct rowcache *c)
{
    while (c->count)
        drop_oldest(c);
    assert(!c->bytes);
}

struct rowcache_list *rowcache_find(struct rowcache *c, uint64_t generation, const uint64_t *keys, size_t n)
{
    rowcache_check(c);
    if (n < ROWCACHE_KEYS_MIN || !c->count)
        return NULL;
    uint64_t mark = mark_of(keys, n);
    for (unsigned i = 0; i < ROWCACHE_LISTS; i++) {
        struct rowcache_list *l = &c->list[i];
        if (c->mark[i] != mark || l->n != n || l->generation != generation)
            continue;
        if (memcmp(l->keys, keys, n * sizeof *keys))
            continue;
        c->idle = 0;
        return l;
    }
    return NULL;
}

static unsigned newest(const struct rowcache *c)
{
    return (c->oldest + c->count - 1) % ROWCACHE_LISTS;
}

uint32_t *rowcache_offer(struct rowcache *c, const uint64_t *keys, size_t n)
{
    if (n < ROWCACHE_KEYS_MIN || bytes_of(n) > ROWCACHE_BYTES / 4)
        return NULL;
    if (++c->idle > ROWCACHE_IDLE && c->idle % ROWCACHE_ROUND >= ROWCACHE_TRY)
        return NULL;
    while (c->count == ROWCACHE_LISTS || (c->count && c->bytes + bytes_of(n) > ROWCACHE_BYTES))
        drop_oldest(c);
    uint64_t *copy = bufpool_get(c->pool, bytes_of(n));
    if (!copy)
        return NULL;
    memcpy(copy, keys, n * sizeof *keys);
    c->count++;
    c->bytes += bytes_of(n);
    assert(!c->mark[newest(c)]);
    struct rowcache_list *l = &c->list[newest(c)];
    *l = (struct rowcache_list){.n = n, .keys = copy, .rows = (uint32_t *)(void *)(copy + n)};
    assert(c->count <= ROWCACHE_LISTS && c->bytes <= ROWCACHE_BYTES);
    return l->rows; /* its mark is 0 until it is kept */
}

void rowcache_keep(struct rowcache *c, uint64_t generation)
{
    rowcache_check(c);
    struct rowcache_list *l = &c->list[newest(c)];
    assert(c->count > 0 && !c->mark[newest(c)]);
    l->generation = generation;
    c->mark[newest(c)] = mark_of(l->keys, l->n);
}

void rowcache_drop(struct rowcache *c)
{
    struct rowcache_list *l = &c->list[newest(c)];
    assert(c->count > 0 && !c->mark[newest(c)] && c->bytes >= bytes_of(l->n));
    bufpool_put(c->pool, l->keys, bytes_of(l->n));
    c->bytes -= bytes_of(l->n);
    c->count--;
    rowcache_check(c);
}
