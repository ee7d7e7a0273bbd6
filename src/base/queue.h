/*
 * Intrusive queues. `queue` is a plain FIFO for one owner. `mailbox` takes posts from any thread; one thread drains
 * it and gets all posts in the order posted (a Treiber stack, which mailbox_drain reverses: a post is one
 * compare-and-swap, a drain one exchange). Posting and checking are sequentially consistent. Lanes rely on this:
 * without it a wake-up could be lost. It never knows what a node is part of. Tests: test/base/test_base.c.
 */
#ifndef BASE_QUEUE_H
#define BASE_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct qnode {
    struct qnode *next;
};

struct queue {
    struct qnode *head;
    struct qnode *tail;
};

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline bool queue_empty(const struct queue *q)
{
    return !q->head;
}

static inline void queue_push(struct queue *q, struct qnode *n)
{
    n->next = NULL;
    if (q->tail)
        q->tail->next = n;
    else
        q->head = n;
    q->tail = n;
}

static inline struct qnode *queue_pop(struct queue *q)
{
    struct qnode *n = q->head;
    if (n) {
        q->head = n->next;
        if (!q->head)
            q->tail = NULL;
    }
    return n;
}

/* Moves all of `more` to the end of q. */
static inline void queue_append(struct queue *q, struct queue *more)
{
    if (!more->head)
        return;
    if (q->tail)
        q->tail->next = more->head;
    else
        q->head = more->head;
    q->tail = more->tail;
    more->head = more->tail = NULL;
}

struct mailbox {
    _Atomic(struct qnode *) top;
};

static inline void mailbox_post(struct mailbox *m, struct qnode *n)
{
    struct qnode *top = atomic_load_explicit(&m->top, memory_order_relaxed);
    do {
        n->next = top;
    } while (
        !atomic_compare_exchange_weak_explicit(&m->top, &top, n, memory_order_seq_cst, memory_order_relaxed));
}

/* Posts all of q, oldest first, and empties it. q must not be empty. */
static inline void mailbox_post_all(struct mailbox *m, struct queue *q)
{
    struct qnode *oldest = q->head, *newest = NULL;
    while (q->head) {
        struct qnode *next = q->head->next;
        q->head->next = newest;
        newest = q->head;
        q->head = next;
    }
    q->tail = NULL;
    struct qnode *top = atomic_load_explicit(&m->top, memory_order_relaxed);
    do {
        oldest->next = top;
    } while (!atomic_compare_exchange_weak_explicit(&m->top, &top, newest, memory_order_seq_cst,
                                                    memory_order_relaxed));
}

static inline bool mailbox_empty(struct mailbox *m)
{
    return !atomic_load(&m->top);
}

/* Appends everything posted so far to q, oldest first. One thread at a time. */
static inline void mailbox_drain(struct mailbox *m, struct queue *q)
{
    struct qnode *n = atomic_exchange_explicit(&m->top, NULL, memory_order_acquire);
    struct qnode *oldest_first = NULL;
    while (n) {
        struct qnode *next = n->next;
        n->next = oldest_first;
        oldest_first = n;
        n = next;
    }
    while (oldest_first) {
        struct qnode *next = oldest_first->next;
        queue_push(q, oldest_first);
        oldest_first = next;
    }
}

#endif
