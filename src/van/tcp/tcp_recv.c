#include "van/tcp/tcp_recv.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "van/pool.h"
#include "van/tcp/tcp_end.h"

static bool receiving(const struct tcp_conn *conn)
{
    return tcp_alive(conn) && !conn->base.orphan;
}

static void heard(struct tcp_conn *conn)
{
    conn->unheard = false;
    if (conn->out.frames)
        tcp_hook(conn);
}

static void break_with_peer(struct tcp_conn *conn, paramo_err err)
{
    tcp_break(conn, err_prefix(err, "peer %s", conn->base.peer));
}

/* Delivers a frame that is whole in rbuf. */
static void deliver_whole(struct tcp_conn *conn, const struct van_header *h, uint8_t *bytes)
{
    struct van_seg seg[VAN_SEGS];
    void *dst[VAN_SEGS] = {NULL};
    unsigned borrowed = 0;
    paramo_err err = PARAMO_OK;
    heard(conn);
    if (h->own) {
        /* A van without ways, or without this one, does not answer. */
        if (tcp_ways(conn))
            err = tcp_ways(conn)->own(conn, bytes, (size_t)h->len[0]);
        if (err && receiving(conn))
            break_with_peer(conn, err);
        return;
    }
    if (van_drops(conn->base.van, h->class))
        return;
    if (h->padded > TCP_PLACE_MIN)
        err = van_ask_place(&conn->base, h->head, h->len, h->nseg, dst);
    if (err || !receiving(conn)) {
        if (err)
            break_with_peer(conn, err);
        return;
    }
    for (unsigned i = 0; i < h->nseg; i++) {
        seg[i] = (struct van_seg){.data = bytes, .len = h->len[i]};
        if (dst[i] == VAN_POOL) {
            borrowed |= 1u << i;
        } else if (dst[i] == VAN_SINK) {
            seg[i].data = NULL;
        } else {
            memcpy(dst[i], bytes, (size_t)h->len[i]);
            seg[i].data = dst[i];
        }
        bytes += van_padded(h->len[i]);
    }
    err = van_deliver(&conn->base, h->head, seg, h->nseg, NULL, borrowed);
    if (err && receiving(conn))
        break_with_peer(conn, err);
}

static void deliver_incoming(struct tcp_conn *conn)
{
    struct tcp_incoming *in = &conn->in;
    struct van_seg seg[VAN_SEGS];
    assert(in->active);
    assert(in->seg == in->header.nseg);
    for (unsigned i = 0; i < in->header.nseg; i++)
        seg[i] = (struct van_seg){.data = in->dst[i], .len = in->header.len[i]};
    struct van_hold *hold = in->hold;
    unsigned borrowed = in->borrowed;
    in->hold = NULL;
    in->active = false;
    heard(conn);
    paramo_err err = PARAMO_OK;
    if (!in->dropped)
        err = van_deliver(&conn->base, in->header.head, seg, in->header.nseg, hold, borrowed);
    van_release(hold);
    if (err && receiving(conn))
        break_with_peer(conn, err);
}

/* Advances by n bytes and returns those beyond the frame. */
static size_t incoming_advance(struct tcp_incoming *in, size_t n)
{
    while (in->seg < in->header.nseg) {
        assert(in->at <= van_padded(in->header.len[in->seg]));
        uint64_t left = van_padded(in->header.len[in->seg]) - in->at;
        if (n < left) {
            in->at += n;
            return 0;
        }
        n -= (size_t)left;
        in->seg++;
        in->at = 0;
    }
    return n;
}

/* Copies received bytes and returns how many belong to the frame. */
static size_t incoming_copy(struct tcp_incoming *in, const uint8_t *bytes, size_t have)
{
    size_t used = 0;
    while (used < have && in->seg < in->header.nseg) {
        uint64_t len = in->header.len[in->seg];
        uint64_t left = (in->at < len ? len : van_padded(len)) - in->at;
        size_t take = have - used < left ? have - used : (size_t)left;
        uint8_t *to = in->at < len && in->dst[in->seg] ? (uint8_t *)in->dst[in->seg] + in->at : NULL;
        if (to && to != bytes + used)
            memcpy(to, bytes + used, take);
        used += take;
        (void)incoming_advance(in, take);
    }
    assert(used <= have);
    assert(in->seg <= in->header.nseg);
    if (in->lasting && used)
        in->lasting = bytes + used;
    return used;
}

/* Decides where the segments go and copies the bytes received so far. False: the connection has ended. */
static bool incoming_begin(struct tcp_conn *conn, const struct van_header *h, const uint8_t *bytes,
                           size_t have, size_t lasting)
{
    struct tcp_incoming *in = &conn->in;
    void *dst[VAN_SEGS];
    assert(!in->active);
    assert(h->nseg <= VAN_SEGS);
    *in = (struct tcp_incoming){.active = true, .header = *h, .dropped = van_drops(conn->base.van, h->class)};
    if (!in->dropped) {
        paramo_err err = van_ask_place(&conn->base, h->head, h->len, h->nseg, dst);
        uint64_t pooled = 0;
        for (unsigned i = 0; i < h->nseg; i++)
            if (dst[i] == VAN_POOL)
                pooled += van_padded(h->len[i]);
        if (pooled && h->padded <= lasting)
            in->lasting = bytes;
        if (!err && pooled && !in->lasting && receiving(conn))
            err = pool_get(conn->base.van->pool, pooled, &in->hold);
        if (err)
            break_with_peer(conn, err);
        if (!receiving(conn)) {
            tcp_incoming_end(conn);
            return false;
        }
        uint8_t *at = in->hold ? hold_data(in->hold) : conn->rbuf;
        const uint8_t *there = bytes;
        for (unsigned i = 0; i < h->nseg; i++) {
            if (dst[i] == VAN_POOL && in->lasting) {
                in->dst[i] = (uint8_t *)(uintptr_t)there;
                in->borrowed |= 1u << i;
            } else if (dst[i] == VAN_POOL) {
                in->dst[i] = at; /* an empty segment may have no pool: any address will do */
                at += van_padded(h->len[i]);
            } else {
                in->dst[i] = dst[i] == VAN_SINK ? NULL : dst[i];
            }
            there += van_padded(h->len[i]);
        }
    }
    (void)incoming_copy(in, bytes, have);
    return true;
}

/* Where the next bytes go: the rest of the frame, then the bytes after it to the beginning of rbuf. */
static size_t incoming_iov(struct tcp_conn *conn, struct iovec iov[2 * VAN_SEGS + 1], int *n, size_t room)
{
    const struct tcp_incoming *in = &conn->in;
    size_t total = 0;
    uint64_t at = in->at;
    *n = 0;
    for (unsigned i = in->seg; i < in->header.nseg; i++, at = 0) {
        uint64_t len = in->header.len[i];
        if (at < len) {
            uint64_t left = len - at;
            bool sink = !in->dst[i];
            uint64_t most = sink ? TCP_RBUF_BYTES - TCP_SINK_AT : left;
            most = most < left ? most : left;
            size_t take = most < room - total ? (size_t)most : room - total;
            uint8_t *to = sink ? conn->rbuf + TCP_SINK_AT : (uint8_t *)in->dst[i] + at;
            iov[(*n)++] = (struct iovec){.iov_base = to, .iov_len = take};
            total += take;
            if (take < left)
                return total;
            at = len;
        }
        size_t padding = (size_t)(van_padded(len) - at);
        if (padding) {
            if (room - total < padding)
                return total;
            iov[(*n)++] = (struct iovec){.iov_base = conn->rbuf + TCP_SINK_AT, .iov_len = padding};
            total += padding;
        }
    }
    iov[(*n)++] = (struct iovec){.iov_base = conn->rbuf, .iov_len = TCP_TRAIL_BYTES};
    return total + TCP_TRAIL_BYTES;
}

/* Delivers the whole frames in these bytes and returns how many bytes they had. lasting: as in
 * tcp_recv_bytes. */
static size_t parse(struct tcp_conn *conn, uint8_t *at, size_t have, size_t lasting)
{
    size_t used = 0;
    while (receiving(conn)) {
        if (conn->in.active) {
            if (conn->in.seg < conn->in.header.nseg)
                used += incoming_copy(&conn->in, at + used, have - used);
            if (conn->in.seg < conn->in.header.nseg)
                return used;
            deliver_incoming(conn);
            continue;
        }
        size_t left = have - used;
        struct van_header h;
        paramo_err err = van_header_begins(at + used, left);
        if (!err && left < VAN_HEADER_BYTES)
            return used;
        if (!err)
            err = van_header_decode(at + used, conn->base.limits.frame_bytes, &h);
        if (!err && h.own && (h.padded > TCP_OWN_MAX || h.nseg != 1))
            err = err_set(PARAMO_E_PROTOCOL,
                          "a frame of the van itself has %u segments, not one, or too many bytes", h.nseg);
        if (err) {
            break_with_peer(conn, err);
            return used;
        }
        left -= VAN_HEADER_BYTES;
        if (left >= h.padded) {
            uint8_t *bytes = at + used + VAN_HEADER_BYTES;
            conn->expect_large = false;
            used += VAN_HEADER_BYTES + (size_t)h.padded;
            deliver_whole(conn, &h, bytes);
        } else if (h.padded <= TCP_WHOLE_MAX - VAN_HEADER_BYTES) {
            return used;
        } else {
            conn->expect_large = true;
            used += VAN_HEADER_BYTES + left;
            size_t begun = used - left;
            if (!incoming_begin(conn, &h, at + begun, left, lasting > begun ? lasting - begun : 0))
                return used;
        }
    }
    return used;
}

void tcp_recv_parse(struct tcp_conn *conn)
{
    assert(conn->rbuf_at <= conn->rbuf_len && conn->rbuf_len <= TCP_RBUF_BYTES);
    size_t used = parse(conn, conn->rbuf + conn->rbuf_at, conn->rbuf_len - conn->rbuf_at, 0);
    if (conn->rbuf_len) /* 0: the connection has ended */
        conn->rbuf_at += used;
    assert(conn->rbuf_at <= conn->rbuf_len);
    if (conn->rbuf_at == conn->rbuf_len)
        conn->rbuf_at = conn->rbuf_len = 0;
}

static bool rbuf_ready(struct tcp_conn *conn)
{
    if (conn->rbuf || (conn->rbuf = aligned_alloc(64, TCP_RBUF_BYTES)))
        return true;
    tcp_break(conn, err_memory(TCP_RBUF_BYTES));
    return false;
}

bool tcp_recv_in_place(const struct tcp_conn *conn)
{
    return conn->in.active && conn->in.lasting;
}

bool tcp_recv_bytes(struct tcp_conn *conn, const uint8_t *bytes, size_t len, size_t lasting)
{
    if (conn->base.orphan || !receiving(conn) || !rbuf_ready(conn))
        return false;
    if (!conn->in_by_way) {
        break_with_peer(conn, err_set(PARAMO_E_PROTOCOL, "bytes came by a way that is not open"));
        return false;
    }
    if (tcp_recv_in_place(conn) && conn->in.lasting != bytes) {
        break_with_peer(conn, err_set(PARAMO_E_PROTOCOL, "a frame continues on another way"));
        return false;
    }
    conn->base.counters.bytes_received += len;
    /* Frames are read in place if they are aligned as van.h promises. */
    bool in_place = (uintptr_t)bytes % VAN_ALIGN == 0;
    while (len && receiving(conn)) {
        size_t used;
        if (conn->in.active && conn->in.seg < conn->in.header.nseg) {
            used = incoming_copy(&conn->in, bytes, len);
            (void)parse(conn, conn->rbuf, 0, 0);
        } else if (in_place && conn->rbuf_len == 0 &&
                   (used = parse(conn, (uint8_t *)(uintptr_t)bytes, len, lasting)) > 0) {
            ;
        } else {
            if (conn->rbuf_at) {
                memmove(conn->rbuf, conn->rbuf + conn->rbuf_at, conn->rbuf_len - conn->rbuf_at);
                conn->rbuf_len -= conn->rbuf_at;
                conn->rbuf_at = 0;
            }
            size_t room = TCP_RBUF_BYTES - conn->rbuf_len;
            used = len < room ? len : room;
            memcpy(conn->rbuf + conn->rbuf_len, bytes, used);
            conn->rbuf_len += used;
            tcp_recv_parse(conn);
        }
        bytes += used;
        len -= used;
        lasting -= used < lasting ? used : lasting;
    }
    return receiving(conn);
}

static void read_failed(struct tcp_conn *conn, ssize_t got)
{
    if (got == 0) {
        bool middle = conn->in.active || conn->rbuf_len > conn->rbuf_at;
        tcp_break(conn, err_set(PARAMO_E_DISCONNECTED, "peer %s closed the connection%s", conn->base.peer,
                                middle ? " in the middle of a frame" : ""));
    } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
        tcp_break(conn, err_errno(PARAMO_E_DISCONNECTED, errno, "connection to %s", conn->base.peer));
    }
}

/* An orphan reads only to find the peer's end of stream. */
static void recv_orphan(struct tcp_conn *conn)
{
    for (unsigned i = 0; i < TCP_ROUND_BYTES / TCP_RBUF_BYTES; i++) {
        ssize_t got = recv(conn->source.fd, conn->rbuf, TCP_RBUF_BYTES, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return;
        if (got <= 0) {
            tcp_discard(conn, PARAMO_E_DISCONNECTED);
            return;
        }
    }
}

/* While frames come by the way, the socket has nothing but the end of stream. */
static void recv_beside(struct tcp_conn *conn)
{
    uint8_t byte;
    ssize_t got = recv(conn->source.fd, &byte, 1, MSG_DONTWAIT);
    if (got > 0)
        break_with_peer(conn,
                        err_set(PARAMO_E_PROTOCOL, "bytes came on the socket although another way is open"));
    else
        read_failed(conn, got);
}

void tcp_recv_round(struct tcp_conn *conn)
{
    if (!rbuf_ready(conn))
        return;
    if (conn->base.orphan) {
        recv_orphan(conn);
        return;
    }
    if (conn->in_by_way) {
        recv_beside(conn);
        return;
    }
    struct iovec iov[2 * VAN_SEGS + 1];
    for (size_t room = TCP_ROUND_BYTES; receiving(conn) && !conn->in_by_way && room >= VAN_ALIGN;) {
        size_t want;
        ssize_t got;
        if (conn->in.active) {
            int n;
            want = incoming_iov(conn, iov, &n, room);
            got = readv(conn->source.fd, iov, n);
        } else {
            size_t left = conn->rbuf_len - conn->rbuf_at;
            if (conn->rbuf_at) {
                memmove(conn->rbuf, conn->rbuf + conn->rbuf_at, left);
                conn->rbuf_at = 0;
                conn->rbuf_len = left;
            }
            want = conn->expect_large && left < VAN_HEADER_BYTES ? TCP_TRAIL_BYTES : TCP_RBUF_BYTES - left;
            got = recv(conn->source.fd, conn->rbuf + left, want, MSG_DONTWAIT);
        }
        if (got <= 0) {
            read_failed(conn, got);
            return;
        }
        conn->base.counters.bytes_received += (uint64_t)got;
        if (conn->in.active)
            conn->rbuf_len = incoming_advance(&conn->in, (size_t)got);
        else
            conn->rbuf_len += (size_t)got;
        tcp_recv_parse(conn);
        if ((size_t)got < want)
            return; /* the socket is empty */
        room -= (size_t)got < room ? (size_t)got : room;
    }
}

void tcp_displace(struct van_conn *base, const void *begin, size_t len)
{
    struct tcp_conn *conn = tcp_of(base);
    if (!conn->in.active)
        return;
    for (unsigned i = 0; i < conn->in.header.nseg; i++) {
        const uint8_t *dst = conn->in.dst[i];
        if (dst && (uintptr_t)dst - (uintptr_t)begin < len)
            conn->in.dst[i] = NULL;
    }
}
