/*
 * The frames of one connection that wait to leave: one bounded queue per class, classes in strict order,
 * inside a class by priority, with ageing.
 *
 * A frame's place in its class is fixed when it comes: rank = arrival number - priority x OUTQ_AGE_FRAMES,
 * smallest first. So equal priorities keep their order, higher ones overtake, and no frame is overtaken for
 * ever. Frames in rank order are the rule and form a list; one that overtakes goes to a pairing heap (Fredman
 * et al., Algorithmica 1986); the next frame is the smaller of the two heads. A class is charged with a
 * frame's bytes from outq_put until outq_complete, which is after the frame has left. One lane's. Tests:
 * test/van/test_van.c.
 */
#ifndef VAN_OUTQ_H
#define VAN_OUTQ_H

#include "van/van.h"

enum { OUTQ_AGE_FRAMES = 1024 };

struct outq_class {
    struct van_frame *head, *tail; /* by node.next and outq_prev */
    struct van_frame *heap;
    int64_t arrivals;
    uint64_t charged;
    bool wanting; /* refused a frame */
};

struct outq {
    struct outq_class class[VAN_CLASSES];
    uint64_t frames; /* waiting */
    uint64_t bytes;  /* of those */
};

/* Where a frame is; the van that took it out of the queue sets the last two. */
enum outq_where { OUTQ_NOWHERE = 0, OUTQ_LIST, OUTQ_HEAP, OUTQ_LEAVING, OUTQ_LEFT };

static inline enum outq_where outq_where(const struct van_frame *frame)
{
    return (enum outq_where)frame->van_private[3];
}

static inline void outq_mark(struct van_frame *frame, enum outq_where where)
{
    frame->van_private[3] = where;
}

/* Header and padded segments: what it takes on the wire. */
uint64_t outq_frame_bytes(const struct van_frame *frame);
/* INVALID, TOO_LARGE, AGAIN; else the frame is queued and charged. */
MUST_USE paramo_err outq_put(struct outq *q, const struct van_limits *limits, struct van_frame *frame);
/* The next frame to leave, still queued; NULL if there is none. */
struct van_frame *outq_peek(const struct outq *q);
/* Takes a queued frame out; it stays charged. */
void outq_remove(struct outq *q, struct van_frame *frame);
void outq_complete(struct outq *q, const struct van_frame *frame);
/* Every frame that waits: taken out, settled, and given back through done. */
void outq_cancel(struct outq *q, paramo_err status);
/* True once after a class that refused has fallen to half its bound. */
bool outq_writable(struct outq *q, const struct van_limits *limits);

#endif
