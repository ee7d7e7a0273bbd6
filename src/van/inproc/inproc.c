/*
 * The van between lanes of one process. It passes parcels that point at the sender's memory.
 *
 *     sender's lane                                             receiver's lane
 *     van_send -> outq --(end of round: parcels, one push)--> inbox -> place(), frame() in place
 *     done()   <- returns <----------------(one push)--------- parcels, DONE
 *
 * Two ends make a pipe. Each end has two mailboxes that the other end posts to, and one task that its lane
 * runs when either has mail. A parcel's state decides which side may use the sender's memory: the sender's
 * withdraw moves SENT -> WITHDRAWN and the receiver SENT -> TAKEN -> DONE, each by compare-and-swap. A sender
 * that finds TAKEN waits for the receiver's frame() to return, which itself never waits. If both ends are on
 * one lane, the sender would wait for itself, so the receiver copies first.
 *
 * A pipe is freed with the last reference: one per open end, one per posted task.
 */
#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sm.h"
#include "van/core.h"
#include "van/outq.h"
#include "van/pool.h"

enum {
    /* per run of the task, so that the lane's other connections get their turn; arbitrary */
    INPROC_ROUND_FRAMES = 256,
    INPROC_ROUND_BYTES = 4 << 20
};

enum parcel_state { PARCEL_SENT, PARCEL_TAKEN, PARCEL_DONE, PARCEL_WITHDRAWN };

struct parcel {
    struct qnode node;
    _Atomic int state;
    struct parcel *next, *prev; /* the sender's list of parcels that are sent and not done */
    struct van_frame *frame;    /* the sender's */
    uint8_t head[VAN_HEAD];
    struct van_seg seg[VAN_SEGS];
    const void *note;
    uint8_t nseg, class;
};

enum end_state {
    END_UNBORN, /* the listener has not accepted it yet */
    END_OPEN,
    END_BROKEN,   /* closed() was called, van_close was not */
    END_FLUSHING, /* an orphan */
    END_CLOSED
};

struct inproc_pipe;

struct inproc_end {
    struct van_conn base;
    struct inproc_pipe *pipe;
    struct inproc_end *peer;

    /* the other end's side */
    struct mailbox inbox, returns;
    struct lane_task task;
    atomic_bool posted;
    atomic_bool peer_closed;        /* the other end sends no more; set after it pushed its last parcel */
    pthread_mutex_t lock;           /* lane_at does not change or end while a task is posted to it */
    _Atomic(struct lane *) lane_at; /* written under lock; NULL: closed */

    /* this lane's */
    enum end_state state;
    bool moving;
    struct queue incoming; /* taken from inbox, not yet delivered */
    struct outq out;
    struct parcel *in_transit, *in_transit_newest;
    struct parcel *spare;
    struct lane_task hook, end;
    bool hooked;
    struct lane_timer deadline;
    paramo_err broken_why;
    char broken_text[ERR_TEXT_MAX];
    struct lane_task arrive;
    void (*arrived)(void *arg, struct van_conn *conn);
    void *arrived_arg;
};

struct inproc_listener;

struct inproc_pipe {
    struct inproc_end end[2]; /* 0: the connector's */
    atomic_uint refs;
    struct inproc_listener *listener; /* until accepted; holds a reference */
};

struct inproc_van {
    struct van base;
    pthread_mutex_t lock; /* guards the list of listeners and whether each is closed */
    struct inproc_listener *listeners;
    unsigned next_number;
};

struct inproc_listener {
    struct van_listener base;
    struct inproc_listener *next;
    struct lane *lane;
    void (*accept)(void *arg, struct van_conn *conn);
    void *arg;
    bool closed;
    unsigned refs; /* under the van's lock */
};

static struct inproc_end *end_of(struct van_conn *conn)
{
    return (struct inproc_end *)conn;
}

static struct inproc_van *van_of(struct van *van)
{
    return (struct inproc_van *)van;
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static void parcels_free(struct mailbox *box)
{
    struct queue q = {0};
    mailbox_drain(box, &q);
    for (struct qnode *node; (node = queue_pop(&q));)
        free(container_of(node, struct parcel, node));
}

static void pipe_unref(struct inproc_pipe *pipe)
{
    unsigned before = atomic_fetch_sub(&pipe->refs, 1);
    assert(before > 0);
    if (before != 1)
        return;
    for (unsigned i = 0; i < 2; i++) {
        struct inproc_end *e = &pipe->end[i];
        parcels_free(&e->inbox);
        parcels_free(&e->returns);
        for (struct qnode *node; (node = queue_pop(&e->incoming));)
            free(container_of(node, struct parcel, node));
        while (e->spare) {
            struct parcel *next = e->spare->next;
            free(e->spare);
            e->spare = next;
        }
        pthread_mutex_destroy(&e->lock);
    }
    free(pipe);
}

static void listener_unref_locked(struct inproc_listener *l)
{
    if (--l->refs == 0)
        free(l);
}

/* ---- between the lanes --------------------------------------------------------------------------------- */

/* Makes e's lane look at its mailboxes; the caller holds a reference to the pipe. */
static void kick(struct inproc_end *e)
{
    if (atomic_exchange(&e->posted, true))
        return;
    pthread_mutex_lock(&e->lock);
    if (e->lane_at) {
        atomic_fetch_add_explicit(&e->pipe->refs, 1, memory_order_relaxed);
        lane_post(e->lane_at, &e->task);
    }
    pthread_mutex_unlock(&e->lock);
}

static void push_all(struct mailbox *box, struct queue *q)
{
    /* The mailbox is a stack with the newest first: reverse the batch, then swap once. */
    struct qnode *newest = NULL;
    struct qnode *oldest = q->head;
    assert(!oldest == !q->tail && (!oldest || !q->tail->next));
    if (!oldest)
        return;
    for (struct qnode *node = q->head; node;) {
        struct qnode *next = node->next;
        node->next = newest;
        newest = node;
        node = next;
    }
    q->head = q->tail = NULL;
    struct qnode *top = atomic_load_explicit(&box->top, memory_order_relaxed);
    do {
        oldest->next = top;
    } while (!atomic_compare_exchange_weak_explicit(&box->top, &top, newest, memory_order_release,
                                                    memory_order_relaxed));
}

/* ---- sending ------------------------------------------------------------------------------------------- */

static void hook_arm(struct inproc_end *e)
{
    if (e->hooked || e->moving || e->state == END_CLOSED)
        return;
    e->hooked = true;
    lane_at_end(e->base.lane, &e->hook);
}

static void break_later(struct inproc_end *e, paramo_err why)
{
    assert(why);
    if (e->broken_why)
        return;
    e->broken_why = why;
    err_text_copy(e->broken_text);
    hook_arm(e);
}

static paramo_err inproc_send(struct van_conn *base, struct van_frame *frame)
{
    struct inproc_end *e = end_of(base);
    if (e->state != END_OPEN || e->moving)
        return err_set(PARAMO_E_DISCONNECTED, "the connection to %s is gone", base->peer);
    paramo_err err = outq_put(&e->out, &base->limits, frame);
    if (err)
        return err;
    hook_arm(e);
    return PARAMO_OK;
}

static struct parcel *parcel_make(struct inproc_end *e)
{
    struct parcel *p = e->spare;
    if (p)
        e->spare = p->next;
    else
        p = malloc(sizeof *p);
    return p;
}

static void in_transit_remove(struct inproc_end *e, struct parcel *p)
{
    assert(p->prev ? p->prev->next == p : e->in_transit == p);
    assert(p->next ? p->next->prev == p : e->in_transit_newest == p);
    if (p->prev)
        p->prev->next = p->next;
    else
        e->in_transit = p->next;
    if (p->next)
        p->next->prev = p->prev;
    else
        e->in_transit_newest = p->prev;
}

static void send_queued(struct inproc_end *e)
{
    struct queue batch = {0};
    assert(!e->in_transit == !e->in_transit_newest);
    assert(e->state == END_OPEN || e->state == END_FLUSHING);
    struct van_frame *frame;
    while ((frame = outq_peek(&e->out))) {
        struct parcel *p = parcel_make(e);
        if (!p) {
            break_later(e, err_memory(sizeof *p));
            break;
        }
        outq_remove(&e->out, frame);
        outq_mark(frame, OUTQ_LEAVING);
        frame->van_private[0] = (uintptr_t)p;
        atomic_init(&p->state, PARCEL_SENT);
        p->frame = frame;
        memcpy(p->head, frame->head, VAN_HEAD);
        memcpy(p->seg, frame->seg, sizeof p->seg);
        p->note = frame->note;
        p->nseg = frame->nseg;
        p->class = frame->class;
        p->next = NULL;
        p->prev = e->in_transit_newest;
        if (p->prev)
            p->prev->next = p;
        else
            e->in_transit = p;
        e->in_transit_newest = p;
        queue_push(&batch, &p->node);
        e->base.counters.frames_sent++;
        e->base.counters.bytes_sent += outq_frame_bytes(frame);
    }
    if (!queue_empty(&batch)) {
        push_all(&e->peer->inbox, &batch);
        kick(e->peer);
    }
}

/* Ends the sender's claim on a parcel, so that its frame can be given back. */
static void parcel_complete(struct inproc_end *e, struct parcel *p)
{
    assert(p->frame);
    assert(p->frame->van_private[0] == (uintptr_t)p);
    in_transit_remove(e, p);
    outq_complete(&e->out, p->frame);
    outq_mark(p->frame, OUTQ_NOWHERE);
    p->frame = NULL;
}

/* The receiver does not touch the frame's memory after this. */
static void parcel_revoke(struct parcel *p)
{
    int sent = PARCEL_SENT;
    if (atomic_compare_exchange_strong(&p->state, &sent, PARCEL_WITHDRAWN))
        return;
    while (atomic_load_explicit(&p->state, memory_order_acquire) == PARCEL_TAKEN)
        (void)sched_yield(); /* a frame() runs on another lane; it returns without waiting */
}

static void inproc_withdraw(struct van_conn *base, struct van_frame *frame)
{
    struct inproc_end *e = end_of(base);
    switch (outq_where(frame)) {
    case OUTQ_LIST:
    case OUTQ_HEAP:
        outq_remove(&e->out, frame);
        outq_complete(&e->out, frame);
        break;
    case OUTQ_LEAVING: {
        struct parcel *p = (struct parcel *)(uintptr_t)frame->van_private[0];
        parcel_revoke(p);
        parcel_complete(e, p);
        break;
    }
    default:
        return;
    }
    hook_arm(e); /* a class may have room again */
    frame->done(frame, PARAMO_E_CANCELLED);
}

/* Calls done of every frame. */
static void send_abort(struct inproc_end *e, paramo_err status)
{
    struct van_frame *frame;
    for (struct parcel *p; (p = e->in_transit);) {
        frame = p->frame;
        parcel_revoke(p);
        bool arrived = atomic_load(&p->state) == PARCEL_DONE;
        parcel_complete(e, p);
        frame->done(frame, arrived ? PARAMO_OK : status);
    }
    outq_cancel(&e->out, status);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static void end_free(struct lane_task *task)
{
    pipe_unref(container_of(task, struct inproc_end, end)->pipe);
}

/* Closes the sending side. The other end learns of that after all frames that were sent. */
static void send_goodbye(struct inproc_end *e)
{
    atomic_store(&e->peer->peer_closed, true);
    kick(e->peer);
}

static const struct sm machine = {
    "end of an inproc connection",
    {[END_UNBORN] = {"unborn", SM_TO(END_OPEN)},
     [END_OPEN] = {"open", SM_TO(END_BROKEN) | SM_TO(END_FLUSHING) | SM_TO(END_CLOSED)},
     [END_BROKEN] = {"broken", SM_TO(END_CLOSED)},
     [END_FLUSHING] = {"flushing", SM_TO(END_CLOSED)},
     [END_CLOSED] = {"closed", 0}}};

static void move(struct inproc_end *e, enum end_state to)
{
    sm_check(&machine, e->state, to);
    e->state = to;
}

static void end_close(struct inproc_end *e, paramo_err status)
{
    if (e->state == END_CLOSED)
        return;
    assert(!e->moving);
    move(e, END_CLOSED);
    van_orphan_remove(&e->base);
    lane_timer_cancel(e->base.lane, &e->deadline);
    send_abort(e, status);
    assert(!e->in_transit && !e->out.frames);
    pthread_mutex_lock(&e->lock);
    e->lane_at = NULL;
    pthread_mutex_unlock(&e->lock);
    send_goodbye(e);
    e->end.run = end_free;
    lane_at_end(e->base.lane, &e->end);
}

static void end_break(struct inproc_end *e, paramo_err why)
{
    char text[ERR_TEXT_MAX];
    if (e->state == END_FLUSHING) {
        end_close(e, why);
        return;
    }
    if (e->state != END_OPEN)
        return;
    err_text_copy(text);
    move(e, END_BROKEN);
    send_abort(e, why);
    send_goodbye(e);
    if (e->state == END_BROKEN && e->base.user_ops)
        e->base.user_ops->closed(e->base.user, &e->base, why, text);
}

static void flush_deadline(struct lane_timer *timer)
{
    struct inproc_end *e = container_of(timer, struct inproc_end, deadline);
    if (!van_flush_wait(&e->base, timer))
        end_close(e, PARAMO_E_TIMEOUT);
}

static void inproc_close(struct van_conn *base, bool flush)
{
    struct inproc_end *e = end_of(base);
    assert(!e->moving && e->state != END_FLUSHING);
    assert(!base->orphan);
    bool pending = e->state == END_OPEN && !e->broken_why && (e->out.frames || e->in_transit);
    if (!flush || !pending || !van_flush_wait(base, &e->deadline)) {
        end_close(e, PARAMO_E_CLOSED);
        return;
    }
    base->user_ops = NULL;
    move(e, END_FLUSHING);
    van_orphan_add(base);
    hook_arm(e);
}

static void inproc_abandon(struct van_conn *base)
{
    end_close(end_of(base), PARAMO_E_CLOSED);
}

static void hook_run(struct lane_task *task)
{
    struct inproc_end *e = container_of(task, struct inproc_end, hook);
    assert(e->hooked);
    e->hooked = false;
    if (e->moving)
        return;
    if (e->broken_why && e->state < END_BROKEN) {
        end_break(e, err_set(e->broken_why, "%s", e->broken_text));
        return;
    }
    if (e->state == END_OPEN || e->state == END_FLUSHING)
        send_queued(e);
    if (e->state == END_FLUSHING && !e->out.frames && !e->in_transit) {
        end_close(e, PARAMO_OK);
        return;
    }
    if (e->state == END_OPEN && outq_writable(&e->out, &e->base.limits) && e->base.user_ops->writable)
        e->base.user_ops->writable(e->base.user, &e->base);
}

/* ---- receiving ----------------------------------------------------------------------------------------- */

static void collect_returns(struct inproc_end *e, struct queue *returned)
{
    for (struct qnode *node; (node = queue_pop(returned));) {
        struct parcel *p = container_of(node, struct parcel, node);
        struct van_frame *frame = p->frame;
        if (frame)
            parcel_complete(e, p);
        p->next = e->spare;
        e->spare = p;
        if (frame)
            frame->done(frame, PARAMO_OK);
    }
}

/* Copies the parcel's segments to this end's memory, for a sender whose memory may go away during frame(). */
static paramo_err parcel_copy(struct inproc_end *e, const struct parcel *p, void *dst[VAN_SEGS],
                              struct van_seg *seg, struct van_hold **hold)
{
    uint64_t pooled = 0;
    for (unsigned i = 0; i < p->nseg; i++)
        if (dst[i] == VAN_POOL)
            pooled += van_padded(p->seg[i].len);
    paramo_err err = pool_get(e->base.van->pool, pooled, hold);
    if (err)
        return err;
    uint8_t *at = hold_data(*hold);
    for (unsigned i = 0; i < p->nseg; i++) {
        if (dst[i] != VAN_POOL)
            continue;
        if (p->seg[i].len)
            memcpy(at, p->seg[i].data, (size_t)p->seg[i].len);
        seg[i].data = at;
        at += van_padded(p->seg[i].len);
    }
    assert(at == (uint8_t *)hold_data(*hold) + pooled);
    return PARAMO_OK;
}

static paramo_err parcel_deliver(struct inproc_end *e, struct parcel *p)
{
    struct van_seg seg[VAN_SEGS];
    uint64_t len[VAN_SEGS];
    void *dst[VAN_SEGS];
    struct van_hold *hold = NULL;
    unsigned borrowed = 0;
    uint64_t bytes = VAN_HEADER_BYTES;
    paramo_err err = van_frame_check(p->seg, p->nseg, e->base.limits.frame_bytes);
    if (err)
        return err;
    for (unsigned i = 0; i < p->nseg; i++) {
        len[i] = p->seg[i].len;
        bytes += len[i];
    }
    e->base.counters.bytes_received += bytes;
    if (van_drops(e->base.van, p->class))
        return PARAMO_OK;
    err = van_ask_place(&e->base, p->head, len, p->nseg, dst);
    if (err || e->state != END_OPEN)
        return err;
    for (unsigned i = 0; i < p->nseg; i++) {
        seg[i] = p->seg[i];
        if (dst[i] == VAN_POOL) {
            borrowed |= 1u << i;
        } else if (dst[i] == VAN_SINK) {
            seg[i].data = NULL;
        } else {
            if (len[i])
                memcpy(dst[i], p->seg[i].data, (size_t)len[i]);
            seg[i].data = dst[i];
        }
    }
    if (atomic_load_explicit(&e->peer->lane_at, memory_order_relaxed) == e->base.lane) {
        err = parcel_copy(e, p, dst, seg, &hold);
        if (err)
            return err;
        borrowed = 0;
        atomic_store_explicit(&p->state, PARCEL_DONE, memory_order_release);
    }
    e->base.rx_note = hold ? NULL : p->note; /* with a copy, the sender's memory may go away */
    err = van_deliver(&e->base, p->head, seg, p->nseg, hold, borrowed);
    e->base.rx_note = NULL;
    van_release(hold);
    return err;
}

static void collect_incoming(struct inproc_end *e)
{
    struct queue back = {0};
    uint64_t bytes = 0;
    unsigned frames = 0;
    struct qnode *node;
    while (e->state == END_OPEN && !e->moving && frames < INPROC_ROUND_FRAMES && bytes < INPROC_ROUND_BYTES &&
           (node = queue_pop(&e->incoming))) {
        struct parcel *p = container_of(node, struct parcel, node);
        int sent = PARCEL_SENT;
        if (atomic_compare_exchange_strong(&p->state, &sent, PARCEL_TAKEN)) {
            frames++;
            for (unsigned i = 0; i < p->nseg; i++)
                bytes += p->seg[i].len;
            paramo_err err = parcel_deliver(e, p);
            atomic_store_explicit(&p->state, PARCEL_DONE, memory_order_release);
            if (err)
                end_break(e, err_prefix(err, "peer %s", e->base.peer));
        }
        queue_push(&back, node);
    }
    if (!queue_empty(&back)) {
        push_all(&e->peer->returns, &back);
        kick(e->peer);
    }
}

static void end_run(struct lane_task *task)
{
    struct inproc_end *e = container_of(task, struct inproc_end, task);
    struct inproc_pipe *pipe = e->pipe;
    struct queue returned = {0};

    pthread_mutex_lock(&e->lock);
    struct lane *lane = e->lane_at;
    bool elsewhere = lane && !lane_held(lane);
    if (elsewhere)
        lane_post(lane, &e->task); /* the end has moved; the reference moves with it */
    pthread_mutex_unlock(&e->lock);
    if (elsewhere)
        return;
    atomic_store(&e->posted, false);
    if (!lane || e->moving || e->state == END_UNBORN || e->state == END_CLOSED) {
        pipe_unref(pipe);
        return;
    }
    /* The inbox is drained before the returns and handled after them, so that done() of a request comes
     * before its answer. peer_closed is read before both, so that nothing follows the end. */
    bool ended = atomic_load(&e->peer_closed);
    mailbox_drain(&e->inbox, &e->incoming);
    mailbox_drain(&e->returns, &returned);
    if (!queue_empty(&returned))
        hook_arm(e); /* a class may have room again, an orphan may be done */
    collect_returns(e, &returned);
    collect_incoming(e);
    if (!queue_empty(&e->incoming) && e->state == END_OPEN && !e->moving)
        kick(e);
    else if (ended && !e->moving)
        end_break(e, err_set(PARAMO_E_DISCONNECTED, "peer %s closed the connection", e->base.peer));
    pipe_unref(pipe);
}

/* ---- moving -------------------------------------------------------------------------------------------- */

static void move_arrive(struct lane_task *task)
{
    struct inproc_end *e = container_of(task, struct inproc_end, arrive);
    assert(e->moving);
    assert(e->arrived);
    e->moving = false;
    e->arrived(e->arrived_arg, &e->base);
    if (e->state == END_OPEN && !e->moving)
        kick(e); /* for mail that came during the move */
}

static void move_leave(struct lane_task *task)
{
    struct inproc_end *e = container_of(task, struct inproc_end, end);
    struct lane *to = e->base.lane;
    assert(e->moving);
    assert(e->state == END_OPEN);
    e->arrive.run = move_arrive;
    pthread_mutex_lock(&e->lock);
    e->lane_at = to;
    pthread_mutex_unlock(&e->lock);
    lane_post(to, &e->arrive);
}

static void inproc_move(struct van_conn *base, struct lane *lane,
                        void (*arrived)(void *arg, struct van_conn *conn), void *arg)
{
    struct inproc_end *e = end_of(base);
    assert(e->state == END_OPEN && !e->moving && !e->out.frames);
    assert(!e->in_transit == !e->in_transit_newest);
    struct lane *from = base->lane;
    e->moving = true;
    e->arrived = arrived;
    e->arrived_arg = arg;
    base->lane = lane;
    e->end.run = move_leave;
    lane_at_end(from, &e->end);
}

/* ---- listening and connecting -------------------------------------------------------------------------- */

static void accept_run(struct lane_task *task)
{
    struct inproc_end *e = container_of(task, struct inproc_end, arrive);
    struct inproc_listener *l = e->pipe->listener;
    struct inproc_van *van = van_of(e->base.van);
    pthread_mutex_lock(&van->lock);
    bool closed = l->closed;
    pthread_mutex_unlock(&van->lock);
    move(e, END_OPEN);
    if (closed)
        end_close(e, PARAMO_E_CLOSED);
    else
        l->accept(l->arg, &e->base);
    pthread_mutex_lock(&van->lock);
    listener_unref_locked(l);
    pthread_mutex_unlock(&van->lock);
    if (e->state == END_OPEN && !e->moving)
        kick(e);
}

static paramo_err end_init(struct inproc_pipe *pipe, unsigned i, struct van *van, struct lane *lane)
{
    struct inproc_end *e = &pipe->end[i];
    van_conn_init(&e->base, van, lane);
    e->pipe = pipe;
    e->peer = &pipe->end[1 - i];
    e->lane_at = lane;
    e->task.run = end_run;
    e->hook.run = hook_run;
    e->deadline.fire = flush_deadline;
    int cause = pthread_mutex_init(&e->lock, NULL);
    return cause ? err_errno(PARAMO_E_SYSTEM, cause, "make the lock of a connection of van inproc")
                 : PARAMO_OK;
}

static paramo_err inproc_connect(struct van *base, struct lane *lane, const char *address,
                                 const struct van_user *user_ops, void *user, struct van_conn **conn)
{
    struct inproc_van *van = van_of(base);
    struct inproc_pipe *pipe = calloc(1, sizeof *pipe);
    if (!pipe)
        return err_memory(sizeof *pipe);
    pthread_mutex_lock(&van->lock);
    struct inproc_listener *l = van->listeners;
    while (l && strcmp(l->base.address, address) != 0)
        l = l->next;
    if (l)
        l->refs++;
    unsigned number = ++van->next_number;
    pthread_mutex_unlock(&van->lock);

    paramo_err err = end_init(pipe, 0, base, lane);
    if (err)
        goto err_free;
    err = end_init(pipe, 1, base, l ? l->lane : lane);
    if (err)
        goto err_fini_end;
    (void)snprintf(pipe->end[0].base.peer, sizeof pipe->end[0].base.peer, "%s", address);
    (void)snprintf(pipe->end[1].base.peer, sizeof pipe->end[1].base.peer, "inproc:%u", number);
    van_set_user(&pipe->end[0].base, user_ops, user);
    move(&pipe->end[0], END_OPEN);
    atomic_init(&pipe->refs, l ? 2 : 1);
    if (l) {
        pipe->listener = l;
        pipe->end[1].arrive.run = accept_run;
        lane_post(l->lane, &pipe->end[1].arrive);
    } else {
        pipe->end[1].lane_at = NULL;
        break_later(&pipe->end[0],
                    err_set(PARAMO_E_CONNECTION_REFUSED, "connect %s: connection refused", address));
    }
    *conn = &pipe->end[0].base;
    return PARAMO_OK;

err_fini_end:
    pthread_mutex_destroy(&pipe->end[0].lock);
err_free:
    if (l) {
        pthread_mutex_lock(&van->lock);
        listener_unref_locked(l);
        pthread_mutex_unlock(&van->lock);
    }
    free(pipe);
    return err;
}

static paramo_err inproc_listen(struct van *base, struct lane *lane, const char *address,
                                void (*accept)(void *arg, struct van_conn *conn), void *arg,
                                struct van_listener **listener)
{
    struct inproc_van *van = van_of(base);
    struct inproc_listener *l = calloc(1, sizeof *l);
    if (!l)
        return err_memory(sizeof *l);
    if (strlen(address) >= sizeof l->base.address || !*address) {
        free(l);
        return err_set(PARAMO_E_ADDRESS, "address \"%s\" is empty or too long", address);
    }
    (void)snprintf(l->base.address, sizeof l->base.address, "%s", address);
    l->base.van = base;
    l->lane = lane;
    l->accept = accept;
    l->arg = arg;
    l->refs = 1;
    pthread_mutex_lock(&van->lock);
    const struct inproc_listener *same = van->listeners;
    while (same && strcmp(same->base.address, address) != 0)
        same = same->next;
    if (!same) {
        l->next = van->listeners;
        van->listeners = l;
    }
    pthread_mutex_unlock(&van->lock);
    if (same) {
        free(l);
        return err_set(PARAMO_E_ADDRESS_IN_USE, "listen %s: the address is in use", address);
    }
    *listener = &l->base;
    return PARAMO_OK;
}

static void inproc_listener_close(struct van_listener *listener)
{
    struct inproc_listener *l = (struct inproc_listener *)listener;
    struct inproc_van *van = van_of(listener->van);
    pthread_mutex_lock(&van->lock);
    struct inproc_listener **at = &van->listeners;
    assert(!l->closed);
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    l->closed = true;
    listener_unref_locked(l);
    pthread_mutex_unlock(&van->lock);
}

static void inproc_destroy(struct van *base)
{
    struct inproc_van *van = van_of(base);
    assert(!van->listeners);
    pthread_mutex_destroy(&van->lock);
    van_fini(base);
    free(van);
}

static const struct van_ops inproc_ops = {
    .name = "inproc",
    .in_process = true,
    .connect = inproc_connect,
    .listen = inproc_listen,
    .listener_close = inproc_listener_close,
    .send = inproc_send,
    .withdraw = inproc_withdraw,
    .close = inproc_close,
    .move = inproc_move,
    .abandon = inproc_abandon,
    .destroy = inproc_destroy,
};

paramo_err van_inproc_create(struct env *env, struct van **out)
{
    struct inproc_van *van = calloc(1, sizeof *van);
    if (!van)
        return err_memory(sizeof *van);
    int cause = pthread_mutex_init(&van->lock, NULL);
    if (cause) {
        free(van);
        return err_errno(PARAMO_E_SYSTEM, cause, "make the lock of van inproc");
    }
    paramo_err err = van_init(&van->base, &inproc_ops, env);
    if (err) {
        pthread_mutex_destroy(&van->lock);
        free(van);
        return err;
    }
    *out = &van->base;
    return PARAMO_OK;
}
