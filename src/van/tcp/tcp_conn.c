#include "van/tcp/tcp_conn.h"

#include <assert.h>

#include "base/sm.h"

static const struct sm machine = {
    "tcp connection",
    {[TCP_RESOLVING] = {"resolving",
                        SM_TO(TCP_CONNECTING) | SM_TO(TCP_OPEN) | SM_TO(TCP_BROKEN) | SM_TO(TCP_GONE)},
     [TCP_CONNECTING] = {"connecting",
                         SM_TO(TCP_CONNECTING) | SM_TO(TCP_OPEN) | SM_TO(TCP_BROKEN) | SM_TO(TCP_GONE)},
     [TCP_OPEN] = {"open", SM_TO(TCP_DRAINED) | SM_TO(TCP_BROKEN) | SM_TO(TCP_GONE)},
     [TCP_DRAINED] = {"drained", SM_TO(TCP_BROKEN) | SM_TO(TCP_GONE)},
     [TCP_BROKEN] = {"broken", SM_TO(TCP_GONE)},
     [TCP_GONE] = {"gone", 0}}};

void tcp_conn_move(struct tcp_conn *conn, enum tcp_state to)
{
    sm_check(&machine, conn->state, to);
    conn->state = to;
}

void tcp_hook(struct tcp_conn *conn)
{
    if (conn->hooked || conn->move_to || conn->state == TCP_GONE)
        return;
    conn->hooked = true;
    lane_at_end(conn->base.lane, &conn->hook);
}

void tcp_break_later(struct tcp_conn *conn, paramo_err why)
{
    assert(why);
    if (conn->broken_why)
        return;
    conn->broken_why = why;
    err_text_copy(conn->broken_text);
    tcp_hook(conn);
}

void tcp_incoming_end(struct tcp_conn *conn)
{
    van_release(conn->in.hold);
    conn->in.hold = NULL;
    conn->in.active = false;
}
