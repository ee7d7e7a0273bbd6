#include "worker/slices.h"

#include <assert.h>

#include "base/sm.h"
#include "worker/filtering.h"

static const struct sm slice_machine = {
    "slice",
    {[SLICE_IDLE] = {"idle", SM_TO(SLICE_IDLE) | SM_TO(SLICE_QUEUED) | SM_TO(SLICE_RESEND) |
                                 SM_TO(SLICE_SENT) | SM_TO(SLICE_ANSWERED)},
     [SLICE_QUEUED] = {"queued", SM_TO(SLICE_IDLE) | SM_TO(SLICE_RESEND)},
     [SLICE_RESEND] = {"resend", SM_TO(SLICE_IDLE)},
     [SLICE_SENT] = {"sent", SM_TO(SLICE_IDLE) | SM_TO(SLICE_RESEND)},
     [SLICE_ANSWERED] = {"answered", SM_TO(SLICE_IDLE)}}};

void slice_move(struct slice *p, enum slice_state to)
{
    sm_check(&slice_machine, p->state, to);
    p->state = (uint8_t)to;
}

struct slice_list *slices_of(struct slice *p)
{
    struct link *l = p->link;
    return p->state == SLICE_QUEUED ? &l->queue : p->state == SLICE_RESEND ? &l->resend : &l->sent;
}

/* before NULL: at the end. */
void slices_insert(struct slice_list *list, struct slice *before, struct slice *p)
{
    assert(!p->prev && !p->next && list->head != p);
    assert(!before || before->link == p->link);
    p->next = before;
    p->prev = before ? before->prev : list->tail;
    if (p->prev)
        p->prev->next = p;
    else
        list->head = p;
    if (before)
        before->prev = p;
    else
        list->tail = p;
}

void slices_remove(struct slice_list *list, struct slice *p)
{
    assert(p->prev ? p->prev->next == p : list->head == p);
    assert(p->next ? p->next->prev == p : list->tail == p);
    if (p->prev)
        p->prev->next = p->next;
    else
        list->head = p->next;
    if (p->next)
        p->next->prev = p->prev;
    else
        list->tail = p->prev;
    p->prev = p->next = NULL;
}

void slices_queue(struct link *l, struct slice *p)
{
    struct slice *before = NULL;
    for (struct slice *at = l->queue.tail; at; at = at->prev) {
        if (at->frame.priority >= p->frame.priority || at->overtaken >= PRIORITY_OVERTAKEN_MAX)
            break;
        at->overtaken++;
        before = at;
    }
    assert(p->link == l && !p->chunk->number);
    assert(!p->in_van && !p->placing);
    slice_move(p, SLICE_QUEUED);
    slices_insert(&l->queue, before, p);
}

void slices_resend(struct link *l, struct slice *p)
{
    struct slice *before = NULL;
    for (struct slice *at = l->resend.tail; at && at->chunk->number > p->chunk->number; at = at->prev)
        before = at;
    assert(p->link == l && p->chunk->number && !p->in_van);
    slice_move(p, SLICE_RESEND);
    slices_insert(&l->resend, before, p);
}

void link_forget(struct slice *p)
{
    struct link *l = p->link; /* gone, perhaps, if it is in no list */
    assert((!p->in_van && !p->placing && p->state != SLICE_SENT) || l->conn);
    if (p->in_van) /* calls slice_sent */
        van_withdraw(l->conn, &p->frame);
    if (p->placing) {
        van_displace(l->conn, p->span->dst, p->span->dst_bytes);
        p->placing = false;
    }
    if (p->state != SLICE_IDLE && p->state != SLICE_ANSWERED)
        slices_remove(slices_of(p), p);
    filtering_forget(p);
    assert(!p->prev && !p->next && !p->in_van && !p->coding);
    slice_move(p, SLICE_IDLE);
}
