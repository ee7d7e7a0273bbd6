#include "van/tcp/tcp_send.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

static const uint8_t zeroes[VAN_ALIGN];

bool tcp_send_pending(const struct tcp_conn *conn)
{
    return conn->out.frames || conn->stage_at < conn->stage_len || conn->current || conn->rest ||
           conn->own_frame_len;
}

bool tcp_send_held(const struct tcp_conn *conn)
{
    return conn->out_by == TCP_OUT_HELD && conn->stage_at == conn->stage_len;
}

/* ---- bursts -------------------------------------------------------------------------------------------- */

/* Answers have come together: times the round, and ends the window when it is full. */
static void cut_time(struct tcp_conn *conn, unsigned answers)
{
    struct tcp_cut *cut = &conn->burst.cut;
    cut->answered += answers;
    if (answers < TCP_CUT_TIMED)
        return;
    uint64_t now = lane_now(conn->base.lane), took = now - cut->since;
    if (cut->since)
        cut->took += took < TCP_CUT_LATE ? took : TCP_CUT_LATE;
    else
        cut->answered = 0; /* since an unknown time */
    cut->since = now;
    if (cut->answered < TCP_CUT_WINDOW)
        return;
    two_ways_window(&cut->ways, cut->took / (cut->answered / 64) + 1);
    cut->took = cut->answered = 0;
}

/* How many frames of a burst that is due leave together. */
static unsigned burst_most(const struct tcp_burst *b)
{
    if (!b->cut.ways.second || b->due < TCP_CUT_MIN || b->due / 2 > TCP_BURST_FRAMES)
        return TCP_BURST_FRAMES;
    return (b->due + 1) / 2;
}

/* Answers have come, and their callbacks are about to run. Each is likely to be followed by a request. A single
 * request has no other to wait for. */
static void burst_begins(struct tcp_conn *conn)
{
    struct tcp_burst *b = &conn->burst;
    unsigned hints = b->hints;
    if (!hints)
        return;
    b->hints = 0;
    cut_time(conn, hints);
    if (b->skip)
        b->skip--;
    else if (b->due + hints + conn->out.frames > 1)
        b->due += hints;
    b->most = burst_most(b);
}

/* A request of the burst was queued. */
static void burst_goes_on(struct tcp_conn *conn)
{
    struct tcp_burst *b = &conn->burst;
    assert(b->due > 0);
    if (--b->due == 0 && b->misses)
        b->misses--;
    if (!b->due || conn->out.frames >= b->most)
        conn->urgent = true;
}

/* The other requests of the burst did not come in time. */
static void burst_missed(struct tcp_conn *conn)
{
    struct tcp_burst *b = &conn->burst;
    if (!b->due)
        return;
    b->due = 0;
    b->misses = b->misses + TCP_BURST_MISS < TCP_BURST_MISSES ? b->misses + TCP_BURST_MISS : TCP_BURST_MISSES;
    b->skip = 1u << b->misses;
}

paramo_err tcp_send(struct van_conn *base, struct van_frame *frame)
{
    struct tcp_conn *conn = tcp_of(base);
    if (conn->state > TCP_OPEN || conn->move_to)
        return err_set(PARAMO_E_DISCONNECTED, "the connection to %s is gone", base->peer);
    paramo_err err = outq_put(&conn->out, &base->limits, frame);
    if (err)
        return err;
    if (frame->class == VAN_CONTROL || frame->class == VAN_ANSWER)
        conn->urgent = true;
    if (frame->class == VAN_REQUEST)
        conn->more = frame->more;
    if (conn->burst.due && frame->class == VAN_REQUEST)
        burst_goes_on(conn);
    tcp_hook(conn);
    return PARAMO_OK;
}

void tcp_flush(struct van_conn *base)
{
    struct tcp_conn *conn = tcp_of(base);
    conn->burst.due = conn->burst.hints = 0; /* a thread that waits issues no further request */
    conn->more = false;
    if (conn->state > TCP_OPEN || conn->move_to || !conn->out.frames)
        return;
    conn->urgent = true;
    tcp_hook(conn);
}

void tcp_expect(struct van_conn *base)
{
    struct tcp_conn *conn = tcp_of(base);
    if (!tcp_alive(conn))
        return;
    conn->burst.hints++;
    tcp_hook(conn);
}

static bool stage_ready(struct tcp_conn *conn)
{
    return conn->stage || (conn->stage = malloc(TCP_STAGE_BYTES));
}

static void stage_append(struct tcp_conn *conn, const void *src, size_t len)
{
    memcpy(conn->stage + conn->stage_len, src, len);
    conn->stage_len += len;
}

static void frame_left(struct tcp_conn *conn, struct van_frame *frame)
{
    assert(conn->current != frame);
    outq_complete(&conn->out, frame);
    outq_mark(frame, OUTQ_LEFT);
    queue_push(&conn->finished, &frame->node);
    conn->base.counters.frames_sent++;
}

/* Moves frames from the queue to the bytes that are sent next: whole small frames into the stage, or the
 * header of a large one. */
static void fill(struct tcp_conn *conn)
{
    assert(conn->stage_at <= conn->stage_len);
    assert(conn->stage_len <= TCP_STAGE_BYTES);
    if (conn->stage_at == conn->stage_len)
        conn->stage_at = conn->stage_len = 0;
    if (conn->out_by == TCP_OUT_HELD)
        return;
    if (conn->own_frame_len && !conn->current && !conn->rest) {
        if (conn->stage_len + conn->own_frame_len > TCP_STAGE_BYTES)
            return;
        stage_append(conn, conn->own_frame, conn->own_frame_len);
        conn->own_frame_len = 0;
        if (conn->own_frame_last) {
            conn->out_by = TCP_OUT_HELD;
            return;
        }
    }
    struct van_frame *frame;
    while (!conn->current && !conn->rest && (frame = outq_peek(&conn->out))) {
        uint64_t bytes = outq_frame_bytes(frame);
        bool beside = conn->out.frames > 1 || conn->stage_at < conn->stage_len;
        bool small = bytes <= (beside ? TCP_JOIN_MAX : TCP_COPY_MAX);
        size_t need = small ? (size_t)bytes : VAN_HEADER_BYTES;
        if (conn->stage_len + need > TCP_STAGE_BYTES)
            return;
        outq_remove(&conn->out, frame);
        if (frame->class >= VAN_CHAIN)
            conn->unheard = true;
        van_header_encode(frame, conn->stage + conn->stage_len);
        conn->stage_len += VAN_HEADER_BYTES;
        if (!small) {
            outq_mark(frame, OUTQ_LEAVING);
            conn->current = frame;
            conn->current_at = 0;
            return;
        }
        for (unsigned i = 0; i < frame->nseg; i++) {
            size_t len = (size_t)frame->seg[i].len;
            if (len)
                stage_append(conn, frame->seg[i].data, len);
            stage_append(conn, zeroes, (size_t)van_padded(len) - len);
        }
        frame_left(conn, frame);
    }
}

static size_t iov_add(struct iovec *iov, int *n, const void *data, uint64_t len, size_t room)
{
    if (!len || !room)
        return 0;
    size_t take = len < room ? (size_t)len : room;
    iov[*n] = (struct iovec){.iov_base = (void *)(uintptr_t)data, .iov_len = take};
    ++*n;
    return take;
}

size_t tcp_gather(struct tcp_conn *conn, struct iovec iov[1 + 2 * VAN_SEGS], int *n, size_t room)
{
    size_t total = 0;
    *n = 0;
    total += iov_add(iov, n, conn->stage + conn->stage_at, conn->stage_len - conn->stage_at, room);
    if (conn->rest)
        total += iov_add(iov, n, conn->rest + conn->rest_at, conn->rest_len - conn->rest_at, room - total);
    if (!conn->current)
        return total;
    uint64_t skip = conn->current_at;
    for (unsigned i = 0; i < conn->current->nseg; i++) {
        const struct van_seg *seg = &conn->current->seg[i];
        uint64_t padded = van_padded(seg->len);
        if (skip >= padded) {
            skip -= padded;
            continue;
        }
        if (skip < seg->len)
            total += iov_add(iov, n, (const uint8_t *)seg->data + skip, seg->len - skip, room - total);
        uint64_t pad_skip = skip > seg->len ? skip - seg->len : 0;
        total += iov_add(iov, n, zeroes, padded - seg->len - pad_skip, room - total);
        skip = 0;
    }
    return total;
}

static void advance(struct tcp_conn *conn, size_t sent)
{
    assert(!conn->rest || !conn->current); /* one of them is behind the stage */
    conn->base.counters.bytes_sent += sent;
    size_t staged = conn->stage_len - conn->stage_at;
    size_t part = sent < staged ? sent : staged;
    conn->stage_at += part;
    sent -= part;
    if (conn->rest) {
        conn->rest_at += sent;
        if (conn->rest_at == conn->rest_len && conn->stage_at == conn->stage_len) {
            free(conn->rest);
            conn->rest = NULL;
        }
    }
    if (conn->current) {
        struct van_frame *frame = conn->current;
        conn->current_at += sent;
        assert(conn->current_at <= outq_frame_bytes(frame) - VAN_HEADER_BYTES);
        if (conn->current_at == outq_frame_bytes(frame) - VAN_HEADER_BYTES &&
            conn->stage_at == conn->stage_len) {
            conn->current = NULL;
            frame_left(conn, frame);
        }
    }
}

static void block(struct tcp_conn *conn)
{
    conn->blocked = true;
    if (lane_source_change(conn->base.lane, &conn->source, EPOLLIN | EPOLLOUT))
        tcp_break_later(conn, PARAMO_E_SYSTEM);
}

/* Sends over the way, which has room for a few megabytes. */
static void push_over(struct tcp_conn *conn)
{
    struct iovec iov[1 + 2 * VAN_SEGS];
    int n;
    while (tcp_send_pending(conn)) {
        fill(conn);
        (void)tcp_gather(conn, iov, &n, SIZE_MAX);
        size_t sent = tcp_ways(conn)->write(conn, iov, n);
        if (!sent) {
            conn->blocked = true;
            return;
        }
        advance(conn, sent);
    }
    conn->urgent = false;
}

void tcp_way_open(struct tcp_conn *conn, size_t taken)
{
    assert(conn->out_by != TCP_OUT_SOCKET);
    if (taken)
        advance(conn, taken);
    conn->out_by = TCP_OUT_WAY;
    conn->blocked = false;
    conn->urgent = true;
    tcp_hook(conn); /* at least for finished frames */
}

paramo_err tcp_send_own(struct tcp_conn *conn, const void *body, size_t len, bool last)
{
    size_t size = VAN_HEADER_BYTES + (size_t)van_padded(len);
    if (!conn->own_frame && !(conn->own_frame = malloc(TCP_OWN_MAX)))
        return err_memory(TCP_OWN_MAX);
    if (size > TCP_OWN_MAX)
        return err_set(PARAMO_E_INVALID, "a frame of the van itself has %zu bytes, which is too long", len);
    van_own_header_encode(len, conn->own_frame);
    memset(conn->own_frame + size - VAN_ALIGN, 0, VAN_ALIGN);
    memcpy(conn->own_frame + VAN_HEADER_BYTES, body, len);
    conn->own_frame_len = size;
    conn->own_frame_last = last;
    conn->urgent = true;
    tcp_hook(conn);
    return PARAMO_OK;
}

static void push_out(struct tcp_conn *conn)
{
    if (conn->out_by == TCP_OUT_WAY) {
        push_over(conn);
        return;
    }
    struct iovec iov[1 + 2 * VAN_SEGS];
    int n;
    for (size_t room = TCP_ROUND_BYTES; tcp_send_pending(conn);) {
        if (!room) {
            block(conn); /* the socket still has room: the next round continues */
            return;
        }
        fill(conn);
        size_t total = tcp_gather(conn, iov, &n, room);
        if (!total)
            return; /* held */
        struct msghdr message = {.msg_iov = iov, .msg_iovlen = (size_t)n};
        ssize_t sent = sendmsg(conn->source.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            if (errno == EINTR)
                continue;
            if (errno == EAGAIN || errno == EWOULDBLOCK) {
                block(conn);
            } else if (errno == ENOMEM || errno == ENOBUFS) {
                tcp_break_later(conn, err_errno(PARAMO_E_MEMORY, errno, "send to %s", conn->base.peer));
            } else {
                /* The peer's last frames, which may have the reason, are still unread. The poller reports the
                 * socket as readable, and the receiving side ends the connection. */
                conn->send_failed = true;
            }
            return;
        }
        advance(conn, (size_t)sent);
        room -= (size_t)sent;
        if ((size_t)sent < total) {
            block(conn);
            return;
        }
    }
    conn->urgent = false;
}

/* The timer stays armed after the gathered frames have left: arming it again for the next frames would wake the lane's
 * thread if another thread sends them. So it may fire early, or in vain. */
static void gather_over(struct lane_timer *timer)
{
    struct tcp_conn *conn = container_of(timer, struct tcp_conn, timer);
    struct lane *lane = conn->base.lane;
    if (!conn->gather_until)
        return;
    if (lane_now(lane) < conn->gather_until && lane_timer_arm(lane, timer, conn->gather_until) == PARAMO_OK)
        return;
    burst_missed(conn);
    conn->more = false;
    conn->urgent = true;
    tcp_hook(conn);
}

/* False: no memory for the timer. */
static bool gather_until(struct tcp_conn *conn)
{
    struct lane *lane = conn->base.lane;
    if (!conn->gather_until)
        conn->gather_until = lane_now(lane) + TCP_GATHER_NS;
    if (conn->timer.slot)
        return true;
    conn->timer.fire = gather_over;
    return lane_timer_arm(lane, &conn->timer, conn->gather_until) == PARAMO_OK;
}

static bool should_leave(const struct tcp_conn *conn)
{
    const bool due = conn->burst.due || conn->more;
    return conn->urgent || (!conn->unheard && !due) || conn->base.orphan ||
           conn->out.bytes >= (due ? TCP_BURST_BYTES : TCP_GATHER_BYTES) || conn->rest || conn->current ||
           conn->stage_at < conn->stage_len;
}

/* Sends before the round's end, so that lent bytes need no copy while the socket has room. */
static void send_ahead(struct tcp_conn *conn)
{
    if (conn->state != TCP_OPEN || conn->out_by == TCP_OUT_HELD || conn->blocked || conn->send_failed ||
        conn->broken_why || conn->lent >= TCP_LENT_BYTES || !stage_ready(conn))
        return;
    uint64_t before = conn->base.counters.bytes_sent;
    push_out(conn);
    conn->lent += conn->base.counters.bytes_sent - before;
}

/* How many bytes of the frame's last segment are not sent yet. */
static uint64_t still_needed(const struct tcp_conn *conn, const struct van_frame *frame)
{
    uint64_t len = frame->seg[frame->nseg - 1].len, at = conn->current_at;
    if (outq_where(frame) == OUTQ_LEFT)
        return 0;
    if (frame != conn->current)
        return len;
    for (unsigned i = 0; i + 1 < frame->nseg; i++) {
        uint64_t padded = van_padded(frame->seg[i].len);
        at -= at < padded ? at : padded;
    }
    return at < len ? len - at : 0;
}

paramo_err tcp_send_lent(struct van_conn *base, struct van_frame *frame, void *spare)
{
    struct tcp_conn *conn = tcp_of(base);
    struct van_seg *last = &frame->seg[frame->nseg - 1];
    paramo_err err = tcp_send(base, frame);
    if (!err)
        send_ahead(conn);
    size_t need = (size_t)(err ? last->len : still_needed(conn, frame)), gone = (size_t)last->len - need;
    assert(need <= last->len);
    memcpy((uint8_t *)spare + gone, (const uint8_t *)last->data + gone, need);
    last->data = spare;
    return err;
}

void tcp_send_round(struct tcp_conn *conn)
{
    conn->lent = 0;
    bool waits = false;
    burst_begins(conn);
    if (!conn->blocked && !conn->send_failed && tcp_send_pending(conn)) {
        if (!stage_ready(conn)) {
            tcp_break_later(conn, err_memory(TCP_STAGE_BYTES));
        } else if (should_leave(conn)) {
            conn->gather_until = 0;
            push_out(conn);
        } else {
            waits = gather_until(conn);
            if (!waits)
                push_out(conn); /* without a timer frames must not gather */
        }
    }
    /* The timer is armed before the burst begins: the lane's thread runs now, and need not be woken for it. */
    if (conn->burst.due && !conn->base.orphan) {
        waits = gather_until(conn);
        if (!waits)
            conn->burst.due = 0;
    }
    if (!waits)
        conn->gather_until = 0;
    for (struct qnode *node; (node = queue_pop(&conn->finished));) {
        struct van_frame *frame = container_of(node, struct van_frame, node);
        outq_mark(frame, OUTQ_NOWHERE);
        frame->done(frame, PARAMO_OK);
    }
}

/* Copies the rest of the current frame, so that its memory can be given back. */
static bool copy_rest(struct tcp_conn *conn)
{
    struct iovec iov[1 + 2 * VAN_SEGS];
    assert(!conn->rest && conn->current);
    int n;
    size_t staged = conn->stage_len - conn->stage_at;
    size_t total = tcp_gather(conn, iov, &n, SIZE_MAX);
    size_t left = total - staged;
    uint8_t *rest = malloc(left ? left : 1);
    if (!rest)
        return false;
    size_t at = 0;
    for (int i = staged ? 1 : 0; i < n; i++) {
        memcpy(rest + at, iov[i].iov_base, iov[i].iov_len);
        at += iov[i].iov_len;
    }
    assert(at == left);
    conn->rest = rest;
    conn->rest_at = 0;
    conn->rest_len = left;
    return true;
}

static void finished_remove(struct tcp_conn *conn, struct van_frame *frame)
{
    struct queue kept = {0};
    for (struct qnode *node; (node = queue_pop(&conn->finished));)
        if (node != &frame->node)
            queue_push(&kept, node);
    conn->finished = kept;
}

void tcp_withdraw(struct van_conn *base, struct van_frame *frame)
{
    struct tcp_conn *conn = tcp_of(base);
    switch (outq_where(frame)) {
    case OUTQ_NOWHERE:
        return;
    case OUTQ_LIST:
    case OUTQ_HEAP:
        outq_remove(&conn->out, frame);
        outq_complete(&conn->out, frame);
        break;
    case OUTQ_LEAVING:
        assert(conn->current == frame);
        if (!copy_rest(conn))
            tcp_break_later(conn,
                            err_set(PARAMO_E_MEMORY, "out of memory to copy a frame that was withdrawn"));
        conn->current = NULL;
        outq_complete(&conn->out, frame);
        break;
    case OUTQ_LEFT:
        finished_remove(conn, frame);
        break;
    }
    outq_mark(frame, OUTQ_NOWHERE);
    tcp_hook(conn); /* a class may have room again */
    frame->done(frame, PARAMO_E_CANCELLED);
}

void tcp_send_abort(struct tcp_conn *conn, paramo_err status)
{
    free(conn->rest);
    conn->rest = NULL;
    conn->stage_at = conn->stage_len = 0;
    struct van_frame *frame;
    for (struct qnode *node; (node = queue_pop(&conn->finished));) {
        frame = container_of(node, struct van_frame, node);
        outq_mark(frame, OUTQ_NOWHERE);
        frame->done(frame, PARAMO_OK);
    }
    if ((frame = conn->current)) {
        conn->current = NULL;
        outq_complete(&conn->out, frame);
        outq_mark(frame, OUTQ_NOWHERE);
        frame->done(frame, status);
    }
    outq_cancel(&conn->out, status);
}
