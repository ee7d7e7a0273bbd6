/*
 * The number of entries in a list of what an application has registered (functions, tasks, filters): one thread at a
 * time registers, any thread reads without a lock. Entries below the number are whole, and do not change. The list is
 * the owner's; this module must never know what an entry is. Tests: test/base/test_user_function.c, test_user_task.c,
 * test/filter/test_users.c.
 */
#ifndef BASE_REGISTERED_H
#define BASE_REGISTERED_H

#include <stdatomic.h>
#include <stdbool.h>

struct registered {
    atomic_uint count;
    atomic_flag busy; /* a thread registers */
};

#define REGISTERED_NONE                                                                                      \
    {                                                                                                        \
        .busy = ATOMIC_FLAG_INIT                                                                             \
    }

static inline unsigned registered_count(struct registered *r)
{
    return atomic_load_explicit(&r->count, memory_order_acquire);
}

/* Spins until no other thread registers, which is a moment. Others spin until registered_end. Any thread. */
static inline void registered_begin(struct registered *r)
{
    while (atomic_flag_test_and_set_explicit(&r->busy, memory_order_acquire))
        ;
}

/* added: the entry after the last one is whole. */
static inline void registered_end(struct registered *r, bool added)
{
    if (added)
        atomic_fetch_add_explicit(&r->count, 1, memory_order_release);
    atomic_flag_clear_explicit(&r->busy, memory_order_release);
}

/* For tests: no entry is left, and no other thread registers or reads. */
static inline void registered_forget(struct registered *r)
{
    atomic_store(&r->count, 0);
}

#endif
