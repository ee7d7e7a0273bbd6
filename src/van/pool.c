#include "van/pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum { POOL_CLASSES = POOL_MAX_SHIFT - POOL_MIN_SHIFT + 1 };

struct van_hold {
    _Alignas(64) struct pool *pool;
    /* from malloc, and aligned by hand: aligned_alloc would split off what lies before and after */
    void *memory;
    struct van_hold *next; /* when free */
    uint64_t size;
    unsigned class; /* POOL_CLASSES: too large to keep */
    atomic_uint refs;
};

struct pool {
    pthread_mutex_t lock; /* guards free, free_bytes, out and orphaned */
    struct van_hold *free[POOL_CLASSES];
    uint64_t free_bytes;
    uint64_t out; /* buffers in use */
    bool orphaned;
};

static unsigned pool_class(uint64_t bytes)
{
    unsigned class = 0;
    while (class < POOL_CLASSES && bytes > (UINT64_C(1) << (class + POOL_MIN_SHIFT)) + POOL_SLACK)
        class ++;
    return class;
}

static void pool_free(struct pool *pool)
{
    assert(pool->orphaned);
    assert(!pool->out);
    for (unsigned i = 0; i < POOL_CLASSES; i++)
        while (pool->free[i]) {
            struct van_hold *hold = pool->free[i];
            pool->free[i] = hold->next;
            free(hold->memory);
        }
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

paramo_err pool_create(struct pool **out)
{
    struct pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return err_memory(sizeof *pool);
    int cause = pthread_mutex_init(&pool->lock, NULL);
    if (cause) {
        free(pool);
        return err_errno(PARAMO_E_SYSTEM, cause, "make the lock of the receive buffers");
    }
    *out = pool;
    return PARAMO_OK;
}

void pool_destroy(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    assert(!pool->orphaned);
    pool->orphaned = true;
    bool last = pool->out == 0;
    pthread_mutex_unlock(&pool->lock);
    if (last)
        pool_free(pool);
}

/* The first aligned place in the memory. */
static struct van_hold *hold_in(char *memory)
{
    return (struct van_hold *)(memory + (-(uintptr_t)memory & (_Alignof(struct van_hold) - 1)));
}

paramo_err pool_get(struct pool *pool, uint64_t bytes, struct van_hold **out)
{
    if (bytes > SIZE_MAX / 2)
        return err_memory(SIZE_MAX);
    unsigned class = pool_class(bytes);
    struct van_hold *hold = NULL;
    pthread_mutex_lock(&pool->lock);
    if (class < POOL_CLASSES && pool->free[class]) {
        hold = pool->free[class];
        pool->free[class] = hold->next;
        assert(pool->free_bytes >= hold->size);
        pool->free_bytes -= hold->size;
    }
    pool->out++;
    pthread_mutex_unlock(&pool->lock);
    if (!hold) {
        uint64_t size = class < POOL_CLASSES ? (UINT64_C(1) << (class + POOL_MIN_SHIFT)) + POOL_SLACK : bytes;
        void *memory = malloc(_Alignof(struct van_hold) - 1 + sizeof *hold + (size_t)size);
        if (!memory) {
            pthread_mutex_lock(&pool->lock);
            pool->out--;
            pthread_mutex_unlock(&pool->lock);
            return err_memory((size_t)size);
        }
        hold = hold_in(memory);
        hold->memory = memory;
        hold->pool = pool;
        hold->size = size;
        hold->class = class;
    }
    atomic_init(&hold->refs, 1);
    assert(hold->pool == pool && hold->size >= bytes);
    *out = hold;
    return PARAMO_OK;
}

uint8_t *hold_data(struct van_hold *hold)
{
    return (uint8_t *)(hold + 1);
}

void hold_ref(struct van_hold *hold)
{
    atomic_fetch_add_explicit(&hold->refs, 1, memory_order_relaxed);
}

void hold_unref(struct van_hold *hold)
{
    if (atomic_fetch_sub_explicit(&hold->refs, 1, memory_order_acq_rel) != 1)
        return;
    struct pool *pool = hold->pool;
    pthread_mutex_lock(&pool->lock);
    bool keep =
        hold->class < POOL_CLASSES && !pool->orphaned && pool->free_bytes + hold->size <= POOL_KEEP_BYTES;
    if (keep) {
        hold->next = pool->free[hold->class];
        pool->free[hold->class] = hold;
        pool->free_bytes += hold->size;
    }
    assert(pool->out > 0);
    assert(pool->free_bytes <= POOL_KEEP_BYTES);
    pool->out--;
    bool last = pool->orphaned && pool->out == 0;
    pthread_mutex_unlock(&pool->lock);
    if (!keep)
        free(hold->memory);
    if (last)
        pool_free(pool);
}

uint64_t pool_free_bytes(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    uint64_t bytes = pool->free_bytes;
    pthread_mutex_unlock(&pool->lock);
    return bytes;
}
