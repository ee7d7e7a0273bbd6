#include "van/tcp/tcp.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "van/tcp/tcp_end.h"
#include "van/tcp/tcp_recv.h"
#include "van/tcp/tcp_send.h"

static void on_ready(struct lane_source *source, uint32_t events);
static void hook_run(struct lane_task *task);

void tcp_socket_options(int fd)
{
    int one = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* an error only costs speed */
}

paramo_err tcp_conn_create(struct van *van, struct lane *lane, struct tcp_conn **out)
{
    struct tcp_conn *conn = calloc(1, sizeof *conn);
    if (!conn)
        return err_memory(sizeof *conn);
    van_conn_init(&conn->base, van, lane);
    conn->source.fd = -1;
    conn->source.dead = true; /* not on the poller */
    conn->source.ready = on_ready;
    conn->hook.run = hook_run;
    two_ways_init(&conn->burst.cut.ways);
    *out = conn;
    return PARAMO_OK;
}

/* ---- closing ------------------------------------------------------------------------------------------- */

static void orphan_deadline(struct lane_timer *timer)
{
    struct tcp_conn *conn = container_of(timer, struct tcp_conn, timer);
    if (!van_flush_wait(&conn->base, timer))
        tcp_discard(conn, PARAMO_E_TIMEOUT);
}

void tcp_close(struct van_conn *base, bool flush)
{
    struct tcp_conn *conn = tcp_of(base);
    assert(!conn->move_to && !base->orphan);
    assert(conn->state != TCP_GONE); /* it is closed once */
    bool can_flush = conn->state == TCP_OPEN || (conn->state < TCP_OPEN && tcp_send_pending(conn));
    if (!flush || !can_flush || conn->broken_why) {
        tcp_discard(conn, PARAMO_E_CLOSED);
        return;
    }
    conn->timer.fire = orphan_deadline;
    if (!van_flush_wait(base, &conn->timer)) {
        tcp_discard(conn, PARAMO_E_CLOSED);
        return;
    }
    base->user_ops = NULL;
    tcp_end_receiving(conn);
    van_orphan_add(base);
    tcp_hook(conn);
}

void tcp_abandon(struct van_conn *base)
{
    tcp_discard(tcp_of(base), PARAMO_E_CLOSED);
}

/* ---- rounds -------------------------------------------------------------------------------------------- */

static void hook_run(struct lane_task *task)
{
    struct tcp_conn *conn = container_of(task, struct tcp_conn, hook);
    assert(conn->hooked);
    conn->hooked = false;
    if (conn->move_to || conn->state >= TCP_BROKEN)
        return;
    if (conn->broken_why) {
        tcp_break(conn, err_set(conn->broken_why, "%s", conn->broken_text));
        return;
    }
    if (conn->state == TCP_OPEN)
        tcp_send_round(conn);
    if (conn->state >= TCP_BROKEN || conn->move_to)
        return;
    if (conn->way && conn->state == TCP_OPEN && !conn->base.orphan)
        tcp_ways(conn)->used(conn);
    if (conn->base.orphan && conn->state == TCP_OPEN && !tcp_send_pending(conn)) {
        if (conn->out_by == TCP_OUT_WAY)
            tcp_ways(conn)->finish(conn);
        else
            (void)shutdown(conn->source.fd, SHUT_WR);
        tcp_conn_move(conn, TCP_DRAINED);
    }
    bool writable = outq_writable(&conn->out, &conn->base.limits);
    if (writable && conn->base.user_ops && conn->base.user_ops->writable)
        conn->base.user_ops->writable(conn->base.user, &conn->base);
}

paramo_err tcp_conn_open(struct tcp_conn *conn)
{
    assert(conn->source.fd >= 0);
    assert(conn->source.dead);
    conn->source.events = EPOLLIN;
    paramo_err err = lane_source_add(conn->base.lane, &conn->source);
    if (err)
        conn->source.dead = true;
    else
        tcp_conn_move(conn, TCP_OPEN);
    return err;
}

/* ---- connecting ---------------------------------------------------------------------------------------- */

static bool connected_to_itself(int fd)
{
    struct addr a = {.len = sizeof a.sa}, b = {.len = sizeof b.sa};
    return getsockname(fd, (struct sockaddr *)&a.sa, &a.len) == 0 &&
           getpeername(fd, (struct sockaddr *)&b.sa, &b.len) == 0 && a.len == b.len &&
           !memcmp(&a.sa, &b.sa, a.len);
}

/* Tries the addresses from address_next on. cause: why the address before failed. */
static void connect_next(struct tcp_conn *conn, int cause)
{
    char text[ADDR_TEXT_MAX] = "";
    assert(conn->source.fd < 0 && conn->addresses.count > 0);
    assert(conn->address_next <= conn->addresses.count);
    conn->refused |= conn->address_next > 0 && cause == ECONNREFUSED;
    while (conn->address_next < conn->addresses.count) {
        const struct addr *addr = &conn->addresses.addr[conn->address_next++];
        int fd = socket(addr->sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0) {
            cause = errno;
            continue;
        }
        tcp_socket_options(fd);
        if (connect(fd, (const struct sockaddr *)&addr->sa, addr->len) && errno != EINPROGRESS) {
            cause = errno;
            conn->refused |= cause == ECONNREFUSED;
            (void)close(fd);
            continue;
        }
        conn->source.fd = fd;
        conn->source.events = EPOLLOUT;
        tcp_conn_move(conn, TCP_CONNECTING);
        if (lane_source_add(conn->base.lane, &conn->source)) {
            conn->source.dead = true;
            tcp_break_later(conn, PARAMO_E_SYSTEM);
        }
        return;
    }
    addr_format(&conn->addresses.addr[conn->addresses.count - 1], text);
    bool named = strcmp(text, conn->base.peer) != 0;
    tcp_break_later(conn, err_errno(conn->refused ? PARAMO_E_CONNECTION_REFUSED : PARAMO_E_CONNECT, cause,
                                    "connect %s%s%s%s", conn->base.peer, named ? " (" : "", named ? text : "",
                                    named ? ")" : ""));
}

static void connect_done(struct tcp_conn *conn)
{
    int cause = 0;
    assert(conn->source.fd >= 0);
    assert(conn->addresses.count > 0);
    socklen_t len = sizeof cause;
    if (getsockopt(conn->source.fd, SOL_SOCKET, SO_ERROR, &cause, &len))
        cause = errno;
    /* On loopback a socket with an ephemeral port may connect to itself. */
    if (!cause && connected_to_itself(conn->source.fd))
        cause = ECONNREFUSED;
    if (cause) {
        tcp_end_socket(conn);
        /* The source is added to the poller again only for another address; its events of this round are
         * dropped. */
        connect_next(conn, cause);
        return;
    }
    if (lane_source_change(conn->base.lane, &conn->source, EPOLLIN)) {
        tcp_break(conn, PARAMO_E_SYSTEM);
        return;
    }
    tcp_conn_move(conn, TCP_OPEN);
    tcp_hook(conn);
}

static void on_ready(struct lane_source *source, uint32_t events)
{
    struct tcp_conn *conn = container_of(source, struct tcp_conn, source);
    if (conn->state == TCP_CONNECTING) {
        connect_done(conn);
        return;
    }
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        tcp_recv_round(conn);
    if ((events & EPOLLOUT) && conn->state == TCP_OPEN && !conn->move_to) {
        if (conn->out_by != TCP_OUT_WAY)
            conn->blocked = false; /* while the way carries the frames, only it can be full */
        if (lane_source_change(conn->base.lane, source, EPOLLIN))
            tcp_break_later(conn, PARAMO_E_SYSTEM);
        tcp_hook(conn);
    }
}

static void resolved(void *arg, const struct addr_list *list, paramo_err why, const char *text)
{
    struct tcp_conn *conn = arg;
    assert(conn->question);
    assert(conn->source.fd < 0);
    conn->question = NULL;
    if (why) {
        tcp_break_later(conn, err_set(why, "connect %s: %s", conn->base.peer, text));
        return;
    }
    conn->addresses = *list;
    connect_next(conn, ECONNREFUSED);
}

paramo_err tcp_connect(struct van *van, struct lane *lane, const char *address,
                       const struct van_user *user_ops, void *user, struct van_conn **out)
{
    char host[ADDR_HOST_MAX];
    uint16_t port;
    struct tcp_conn *conn = NULL;
    paramo_err err = addr_split(address, host, &port);
    if (err)
        return err;
    if (port == 0 || strcmp(host, "*") == 0)
        return err_set(PARAMO_E_ADDRESS, "\"%s\" is not a valid address to connect to", address);
    err = tcp_conn_create(van, lane, &conn);
    if (err)
        return err;
    (void)snprintf(conn->base.peer, sizeof conn->base.peer, "%s", address);
    van_set_user(&conn->base, user_ops, user);
    if (addr_literal(host, port, &conn->addresses.addr[0])) {
        conn->addresses.count = 1;
        connect_next(conn, ECONNREFUSED);
    } else {
        err = resolve_start(lane, host, port, resolved, conn, &conn->question);
        if (err) {
            free(conn);
            return err;
        }
    }
    *out = &conn->base;
    return PARAMO_OK;
}

/* ---- moving -------------------------------------------------------------------------------------------- */

static void move_arrive(struct lane_task *task)
{
    struct tcp_conn *conn = container_of(task, struct tcp_conn, arrive);
    assert(conn->move_to == conn->base.lane);
    assert(conn->arrived);
    conn->move_to = NULL;
    conn->arrived(conn->arrived_arg, &conn->base);
    if (conn->state != TCP_OPEN || conn->move_to)
        return;
    conn->source.events = conn->blocked ? EPOLLIN | EPOLLOUT : EPOLLIN;
    if (lane_source_add(conn->base.lane, &conn->source)) {
        conn->source.dead = true;
        tcp_break(conn, PARAMO_E_SYSTEM);
        return;
    }
    tcp_hook(conn);
    if (!conn->base.orphan)
        tcp_recv_parse(conn);
}

static void move_leave(struct lane_task *task)
{
    struct tcp_conn *conn = container_of(task, struct tcp_conn, end);
    assert(conn->move_to);
    assert(conn->state == TCP_OPEN);
    conn->base.lane = conn->move_to;
    conn->arrive.run = move_arrive;
    lane_post(conn->move_to, &conn->arrive);
}

void tcp_move(struct van_conn *base, struct lane *lane, void (*arrived)(void *arg, struct van_conn *conn),
              void *arg)
{
    struct tcp_conn *conn = tcp_of(base);
    assert(conn->state == TCP_OPEN && !base->orphan && !conn->move_to && !conn->out.frames &&
           !conn->current && conn->out_by == TCP_OUT_SOCKET && !conn->own_frame_len);
    conn->move_to = lane;
    conn->arrived = arrived;
    conn->arrived_arg = arg;
    lane_timer_cancel(base->lane, &conn->timer);
    lane_source_remove(base->lane, &conn->source);
    /* At the end of the round the hook has run, if it was set, and the poller has dropped the source. */
    conn->end.run = move_leave;
    lane_at_end(base->lane, &conn->end);
}
