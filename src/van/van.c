#include "van/van.h"

#include <assert.h>
#include <string.h>

#include "van/pool.h"

unsigned van_flushing(struct van *van, const struct lane *lane)
{
    unsigned count = 0;
    pthread_mutex_lock(&van->orphan_lock);
    for (const struct van_conn *conn = van->orphans; conn; conn = conn->orphan_next)
        count += conn->lane == lane;
    pthread_mutex_unlock(&van->orphan_lock);
    return count;
}

void van_abandon(struct van *van, struct lane *lane)
{
    for (;;) {
        pthread_mutex_lock(&van->orphan_lock);
        struct van_conn *conn = van->orphans;
        while (conn && conn->lane != lane)
            conn = conn->orphan_next;
        pthread_mutex_unlock(&van->orphan_lock);
        if (!conn)
            return;
        van->ops->abandon(conn); /* only this lane ends it, so it still exists */
    }
}

void van_set_drop(struct van *van, unsigned percent)
{
    atomic_store_explicit(&van->drop_percent, percent > 100 ? 100 : percent, memory_order_relaxed);
}

paramo_err van_connect(struct van *van, struct lane *lane, const char *address,
                       const struct van_user *user_ops, void *user, struct van_conn **conn)
{
    return van->ops->connect(van, lane, address, user_ops, user, conn);
}

paramo_err van_listen(struct van *van, struct lane *lane, const char *address,
                      void (*accept)(void *arg, struct van_conn *conn), void *arg,
                      struct van_listener **listener)
{
    return van->ops->listen(van, lane, address, accept, arg, listener);
}

void van_listener_close(struct van_listener *listener)
{
    listener->van->ops->listener_close(listener);
}

const char *van_listener_address(const struct van_listener *listener)
{
    return listener->address;
}

void van_set_user(struct van_conn *conn, const struct van_user *user_ops, void *user)
{
    conn->user_ops = user_ops;
    conn->user = user;
}

void van_set_frame_limit(struct van_conn *conn, uint64_t bytes)
{
    conn->limits.frame_bytes = bytes;
}

paramo_err van_send(struct van_conn *conn, struct van_frame *frame)
{
    return conn->van->ops->send(conn, frame);
}

paramo_err van_send_lent(struct van_conn *conn, struct van_frame *frame, void *spare)
{
    assert(frame->nseg > 0);
    assert(frame->nseg <= VAN_SEGS);
    if (conn->van->ops->send_lent)
        return conn->van->ops->send_lent(conn, frame, spare);
    struct van_seg *last = &frame->seg[frame->nseg - 1];
    memcpy(spare, last->data, (size_t)last->len);
    last->data = spare;
    return van_send(conn, frame);
}

void van_expect(struct van_conn *conn)
{
    assert(lane_held(conn->lane));
    if (conn->van->ops->expect)
        conn->van->ops->expect(conn);
}

void van_flush(struct van_conn *conn)
{
    if (conn->van->ops->flush)
        conn->van->ops->flush(conn);
}

void van_withdraw(struct van_conn *conn, struct van_frame *frame)
{
    conn->van->ops->withdraw(conn, frame);
}

void van_displace(struct van_conn *conn, const void *begin, size_t len)
{
    if (conn->van->ops->displace)
        conn->van->ops->displace(conn, begin, len);
}

void van_close(struct van_conn *conn, bool flush)
{
    conn->van->ops->close(conn, flush);
}

void van_move(struct van_conn *conn, struct lane *lane, void (*arrived)(void *arg, struct van_conn *conn),
              void *arg)
{
    conn->van->ops->move(conn, lane, arrived, arg);
}

void van_conn_stays(struct van_conn *conn)
{
    if (conn->van->ops->conn_stays)
        conn->van->ops->conn_stays(conn);
}

void van_destroy(struct van *van)
{
    if (van)
        van->ops->destroy(van);
}

paramo_err van_keep(struct van_conn *conn, struct van_seg *seg, unsigned nseg, struct van_hold **hold)
{
    uint64_t bytes = 0;
    assert(nseg <= VAN_SEGS);
    for (unsigned i = 0; i < nseg; i++)
        if (conn->rx_borrowed >> i & 1)
            bytes += van_padded(seg[i].len);
    if (!conn->rx_borrowed) {
        if (conn->rx_hold)
            hold_ref(conn->rx_hold);
        *hold = conn->rx_hold;
        return PARAMO_OK;
    }
    paramo_err err = pool_get(conn->van->pool, bytes, hold);
    if (err)
        return err;
    uint8_t *at = hold_data(*hold);
    for (unsigned i = 0; i < nseg; i++) {
        if (!(conn->rx_borrowed >> i & 1))
            continue;
        if (seg[i].len)
            memcpy(at, seg[i].data, (size_t)seg[i].len);
        seg[i].data = at;
        at += van_padded(seg[i].len);
    }
    assert(at == (uint8_t *)hold_data(*hold) + bytes);
    return PARAMO_OK;
}

void van_release(struct van_hold *hold)
{
    if (hold)
        hold_unref(hold);
}
