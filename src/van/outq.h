/*
 * The frames of one connection that wait to be sent: one bounded queue per class. Classes are served in
 * strict order; inside a class frames are ordered by priority, with ageing.
 *
 * A frame's place in its class is fixed when it is queued: rank = arrival number - priority x
 * OUTQ_AGE_FRAMES, smallest first. So equal priorities keep their order, higher ones overtake, and no frame
 * is overtaken forever. Most frames come in rank order and form a list. A frame that overtakes goes to a
 * pairing heap (Fredman et al., Algorithmica 1986). The next frame is the smaller of the two heads. A class
 * is charged with a frame's bytes from outq_put until outq_complete, which follows the sending. One lane
 * owns the queue. Tests: test/van/test_van.c.
 */
#ifndef VAN_OUTQ_H
#define VAN_OUTQ_H

#include "van/van.h"

enum { OUTQ_AGE_FRAMES = 1024 };

struct outq_class {
    struct van_frame *head, *tail; /* in order of rank, linked both ways */
    struct van_frame *heap;
    int64_t arrivals;
    uint64_t charged;
    bool refused; /* it has refused a frame since outq_writable was last true for it */
};

struct outq {
    struct outq_class class[VAN_CLASSES];
    uint64_t frames; /* waiting */
    uint64_t bytes;  /* of the frames that wait */
};

/* Where a frame is (its van_private[3]; outq.c uses the others while it is queued). The van that takes it out of the
 * queue sets the last two. */
enum outq_where { OUTQ_NOWHERE = 0, OUTQ_LIST, OUTQ_HEAP, OUTQ_LEAVING, OUTQ_LEFT };

static inline enum outq_where outq_where(const struct van_frame *frame)
{
    return (enum outq_where)frame->van_private[3];
}

static inline void outq_mark(struct van_frame *frame, enum outq_where where)
{
    frame->van_private[3] = where;
}

/* The frame's bytes on the wire: header and padded segments. */
uint64_t outq_frame_bytes(const struct van_frame *frame);
/* OK: the frame is queued and charged. AGAIN: its class is full. INVALID, TOO_LARGE. */
MUST_USE paramo_err outq_put(struct outq *q, const struct van_limits *limits, struct van_frame *frame);
/* The next frame to send, which stays queued. NULL: the queue is empty. */
struct van_frame *outq_peek(const struct outq *q);
/* Takes a queued frame out. It stays charged. */
void outq_remove(struct outq *q, struct van_frame *frame);
void outq_complete(struct outq *q, const struct van_frame *frame);
/* Takes out every frame that waits and calls its done with status. */
void outq_cancel(struct outq *q, paramo_err status);
/* True once after a class that has refused a frame falls to half its bound. */
bool outq_writable(struct outq *q, const struct van_limits *limits);

#endif
