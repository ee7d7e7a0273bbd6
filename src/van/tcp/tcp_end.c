#include "van/tcp/tcp_end.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "van/tcp/tcp_send.h"

void tcp_end_socket(struct tcp_conn *conn)
{
    if (conn->source.fd < 0)
        return;
    lane_source_remove(conn->base.lane, &conn->source);
    (void)close(conn->source.fd);
    conn->source.fd = -1;
}

void tcp_end_receiving(struct tcp_conn *conn)
{
    tcp_incoming_end(conn);
    conn->rbuf_at = conn->rbuf_len = 0;
}

static void conn_free(struct lane_task *task)
{
    struct tcp_conn *conn = container_of(task, struct tcp_conn, end);
    free(conn->stage);
    free(conn->own_frame);
    free(conn->rbuf);
    free(conn);
}

/* Closes the socket and ends all transfers; calls done of the frames. */
static void conn_stop(struct tcp_conn *conn, paramo_err status)
{
    tcp_end_socket(conn);
    lane_timer_cancel(conn->base.lane, &conn->timer);
    if (conn->question) {
        resolve_drop(conn->question);
        conn->question = NULL;
    }
    if (tcp_ways(conn))
        tcp_ways(conn)->end(conn);
    tcp_end_receiving(conn);
    tcp_send_abort(conn, status);
    assert(!conn->out.frames && !conn->current);
    assert(!conn->question);
}

void tcp_discard(struct tcp_conn *conn, paramo_err status)
{
    if (conn->state == TCP_GONE)
        return;
    assert(!conn->move_to);
    tcp_conn_move(conn, TCP_GONE);
    van_orphan_remove(&conn->base);
    conn_stop(conn, status);
    conn->end.run = conn_free;
    lane_at_end(conn->base.lane, &conn->end);
}

void tcp_break(struct tcp_conn *conn, paramo_err why)
{
    char text[ERR_TEXT_MAX];
    if (conn->state >= TCP_BROKEN)
        return;
    if (conn->base.orphan) {
        tcp_discard(conn, why);
        return;
    }
    assert(why);
    assert(!conn->move_to);
    err_text_copy(text);
    tcp_conn_move(conn, TCP_BROKEN);
    conn_stop(conn, why);
    if (conn->state == TCP_BROKEN && conn->base.user_ops)
        conn->base.user_ops->closed(conn->base.user, &conn->base, why, text);
}
