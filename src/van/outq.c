#include "van/outq.h"

#include <assert.h>

#include "van/core.h"

static struct van_frame *frame_next(const struct van_frame *f)
{
    return f->node.next ? container_of(f->node.next, struct van_frame, node) : NULL;
}

static void set_next(struct van_frame *f, struct van_frame *next)
{
    f->node.next = next ? &next->node : NULL;
}

static struct van_frame *frame_prev(const struct van_frame *f)
{
    return (struct van_frame *)(uintptr_t)f->van_private[0];
}

static void set_prev(struct van_frame *f, struct van_frame *prev)
{
    f->van_private[0] = (uintptr_t)prev;
}

static struct van_frame *frame_child(const struct van_frame *f)
{
    return (struct van_frame *)(uintptr_t)f->van_private[1];
}

static void set_child(struct van_frame *f, struct van_frame *child)
{
    f->van_private[1] = (uintptr_t)child;
}

static int64_t rank_of(const struct van_frame *f)
{
    return (int64_t)f->van_private[2];
}

/* ---- the pairing heap: next is the right sibling, prev the left sibling or the parent ---- */

static struct van_frame *heap_join(struct van_frame *a, struct van_frame *b)
{
    if (!a || !b)
        return a ? a : b;
    if (rank_of(b) < rank_of(a)) {
        struct van_frame *t = a;
        a = b;
        b = t;
    }
    struct van_frame *child = frame_child(a);
    set_next(b, child);
    if (child)
        set_prev(child, b);
    set_prev(b, a);
    set_child(a, b);
    set_next(a, NULL);
    set_prev(a, NULL);
    return a;
}

/* Joins a list of siblings: pairs from left to right, then the pairs from right to left. */
static struct van_frame *heap_join_siblings(struct van_frame *f)
{
    struct van_frame *pairs = NULL;
    while (f) {
        struct van_frame *b = frame_next(f);
        struct van_frame *rest = b ? frame_next(b) : NULL;
        set_next(f, NULL);
        set_prev(f, NULL);
        if (b) {
            set_next(b, NULL);
            set_prev(b, NULL);
        }
        struct van_frame *pair = heap_join(f, b);
        set_next(pair, pairs);
        pairs = pair;
        f = rest;
    }
    struct van_frame *root = NULL;
    while (pairs) {
        struct van_frame *next = frame_next(pairs);
        set_next(pairs, NULL);
        root = heap_join(root, pairs);
        pairs = next;
    }
    return root;
}

static void heap_remove(struct outq_class *c, struct van_frame *f)
{
    struct van_frame *below = heap_join_siblings(frame_child(f));
    set_child(f, NULL);
    if (f == c->heap) {
        c->heap = below;
        return;
    }
    struct van_frame *left = frame_prev(f);
    struct van_frame *right = frame_next(f);
    assert(c->heap);
    assert((frame_child(left) == f || frame_next(left) == f));
    if (frame_child(left) == f)
        set_child(left, right);
    else
        set_next(left, right);
    if (right)
        set_prev(right, left);
    c->heap = heap_join(c->heap, below);
}

/* ---- the queue ---- */

uint64_t outq_frame_bytes(const struct van_frame *frame)
{
    uint64_t bytes = VAN_HEADER_BYTES;
    for (unsigned i = 0; i < frame->nseg; i++)
        bytes += van_padded(frame->seg[i].len);
    return bytes;
}

paramo_err outq_put(struct outq *q, const struct van_limits *limits, struct van_frame *frame)
{
    if (frame->nseg > VAN_SEGS || frame->class >= VAN_CLASSES)
        return err_set(PARAMO_E_INVALID, "a frame of %u segments and class %u is not valid", frame->nseg,
                       frame->class);
    paramo_err err = van_frame_check(frame->seg, frame->nseg, (uint64_t)1 << 62);
    if (err)
        return err;
    struct outq_class *c = &q->class[frame->class];
    uint64_t bytes = outq_frame_bytes(frame);
    uint64_t bound = limits->queue_bytes[frame->class];
    if (c->charged > 0 && (c->charged >= bound || bytes > bound - c->charged)) {
        c->refused = true;
        return PARAMO_E_AGAIN; /* no message: this is not a failure, and it is on the fast path */
    }
    assert(!c->head == !c->tail);
    assert((q->frames || !q->bytes));
    c->charged += bytes;
    q->frames++;
    q->bytes += bytes;
    int64_t rank = c->arrivals++ - (int64_t)frame->priority * OUTQ_AGE_FRAMES;
    frame->van_private[1] = 0;
    frame->van_private[2] = (uint64_t)rank;
    set_next(frame, NULL);
    if (!c->tail || rank_of(c->tail) <= rank) {
        set_prev(frame, c->tail);
        if (c->tail)
            set_next(c->tail, frame);
        else
            c->head = frame;
        c->tail = frame;
        outq_mark(frame, OUTQ_LIST);
    } else {
        set_prev(frame, NULL);
        c->heap = heap_join(c->heap, frame);
        outq_mark(frame, OUTQ_HEAP);
    }
    return PARAMO_OK;
}

struct van_frame *outq_peek(const struct outq *q)
{
    if (!q->frames)
        return NULL;
    for (unsigned i = 0; i < VAN_CLASSES; i++) {
        const struct outq_class *c = &q->class[i];
        if (c->heap && (!c->head || rank_of(c->heap) < rank_of(c->head)))
            return c->heap;
        if (c->head)
            return c->head;
    }
    return NULL;
}

void outq_remove(struct outq *q, struct van_frame *frame)
{
    struct outq_class *c = &q->class[frame->class];
    if (outq_where(frame) == OUTQ_HEAP) {
        heap_remove(c, frame);
    } else {
        assert(outq_where(frame) == OUTQ_LIST);
        struct van_frame *prev = frame_prev(frame);
        struct van_frame *next = frame_next(frame);
        if (prev)
            set_next(prev, next);
        else
            c->head = next;
        if (next)
            set_prev(next, prev);
        else
            c->tail = prev;
    }
    assert(q->frames > 0);
    q->frames--;
    q->bytes -= outq_frame_bytes(frame);
    outq_mark(frame, OUTQ_NOWHERE);
}

void outq_complete(struct outq *q, const struct van_frame *frame)
{
    assert(q->class[frame->class].charged >= outq_frame_bytes(frame));
    q->class[frame->class].charged -= outq_frame_bytes(frame);
}

void outq_cancel(struct outq *q, paramo_err status)
{
    for (struct van_frame *frame; (frame = outq_peek(q));) {
        outq_remove(q, frame);
        outq_complete(q, frame);
        frame->done(frame, status);
    }
}

bool outq_writable(struct outq *q, const struct van_limits *limits)
{
    bool writable = false;
    for (unsigned i = 0; i < VAN_CLASSES; i++) {
        struct outq_class *c = &q->class[i];
        if (c->refused && c->charged <= limits->queue_bytes[i] / 2) {
            c->refused = false;
            writable = true;
        }
    }
    return writable;
}
