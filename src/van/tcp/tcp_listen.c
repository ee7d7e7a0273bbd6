#include "van/tcp/tcp_listen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"
#include "van/tcp/tcp.h"
#include "van/tcp/tcp_end.h"

enum { ACCEPT_ROUND = 64 /* connections per round */, BACKLOG = 1024 }; /* both arbitrary */
#define ACCEPT_PAUSE_NS (100 * ENV_MS)

struct tcp_listener {
    struct van_listener base;
    struct lane *lane;
    struct lane_source source;
    struct lane_timer pause;
    struct lane_task end;
    void (*accept)(void *arg, struct van_conn *conn);
    void *arg;
    bool closed;
};

static void accept_resume(struct lane_timer *timer)
{
    struct tcp_listener *l = container_of(timer, struct tcp_listener, pause);
    if (lane_source_change(l->lane, &l->source, EPOLLIN))
        log_error("listener %s stops: %s", l->base.address, err_text());
}

/* Out of descriptors or memory: connections wait in the kernel's queue, and the poller must not report them all
 * the time. */
static void accept_pause(struct tcp_listener *l, int cause)
{
    log_error("listener %s cannot accept connections and tries again in 100 ms: %s", l->base.address,
              strerror(cause));
    if (lane_timer_arm(l->lane, &l->pause, lane_now(l->lane) + ACCEPT_PAUSE_NS))
        return; /* no timer: polling all the time is better than accepting nothing */
    if (lane_source_change(l->lane, &l->source, 0))
        lane_timer_cancel(l->lane, &l->pause);
}

static void accept_one(struct tcp_listener *l, int fd, const struct addr *addr)
{
    struct tcp_conn *conn;
    if (tcp_conn_create(l->base.van, l->lane, &conn)) {
        log_error("listener %s: a new connection is closed: %s", l->base.address, err_text());
        (void)close(fd);
        return;
    }
    tcp_socket_options(fd);
    conn->source.fd = fd;
    addr_format(addr, conn->base.peer);
    if (tcp_conn_open(conn)) {
        log_error("listener %s: the connection of %s is closed: %s", l->base.address, conn->base.peer,
                  err_text());
        tcp_discard(conn, PARAMO_E_SYSTEM);
        return;
    }
    l->accept(l->arg, &conn->base);
}

static void on_ready(struct lane_source *source, uint32_t events)
{
    struct tcp_listener *l = container_of(source, struct tcp_listener, source);
    (void)events;
    for (unsigned i = 0; i < ACCEPT_ROUND && !l->closed; i++) {
        struct addr addr = {.len = sizeof addr.sa};
        int fd = accept4(source->fd, (struct sockaddr *)&addr.sa, &addr.len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            accept_one(l, fd, &addr);
            continue;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return;
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            accept_pause(l, errno);
            return;
        }
        /* Other errors concern one connection that is gone already. */
    }
}

static paramo_err listen_socket(const struct addr *addr, const char *address, int *out)
{
    int one = 1;
    int fd = socket(addr->sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_errno(PARAMO_E_SYSTEM, errno, "listen %s: socket", address);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (const struct sockaddr *)&addr->sa, addr->len) || listen(fd, BACKLOG)) {
        int cause = errno;
        (void)close(fd);
        return err_errno(cause == EADDRINUSE ? PARAMO_E_ADDRESS_IN_USE : PARAMO_E_ADDRESS, cause, "listen %s",
                         address);
    }
    *out = fd;
    return PARAMO_OK;
}

paramo_err tcp_listen(struct van *van, struct lane *lane, const char *address,
                      void (*accept)(void *arg, struct van_conn *conn), void *arg,
                      struct van_listener **listener)
{
    char host[ADDR_HOST_MAX];
    uint16_t port;
    struct addr_list list = {.count = 1};
    paramo_err err = addr_split(address, host, &port);
    if (!err && !addr_literal(host, port, &list.addr[0]))
        err = addr_resolve(host, port, &list); /* blocks, but once, at the start */
    if (err)
        return err;
    struct tcp_listener *l = calloc(1, sizeof *l);
    if (!l)
        return err_memory(sizeof *l);
    err = PARAMO_E_ADDRESS;
    for (unsigned i = 0; err && i < list.count; i++)
        err = listen_socket(&list.addr[i], address, &l->source.fd);
    if (err)
        goto err_free;
    struct addr bound = {.len = sizeof bound.sa};
    if (getsockname(l->source.fd, (struct sockaddr *)&bound.sa, &bound.len)) {
        err = err_errno(PARAMO_E_SYSTEM, errno, "listen %s: find the port", address);
        goto err_close;
    }
    addr_format(&bound, l->base.address);
    l->base.van = van;
    l->lane = lane;
    l->accept = accept;
    l->arg = arg;
    l->pause.fire = accept_resume;
    l->source.ready = on_ready;
    l->source.events = EPOLLIN;
    err = lane_source_add(lane, &l->source);
    if (err)
        goto err_close;
    *listener = &l->base;
    return PARAMO_OK;

err_close:
    (void)close(l->source.fd);
err_free:
    free(l);
    return err;
}

static void listener_free(struct lane_task *task)
{
    free(container_of(task, struct tcp_listener, end));
}

void tcp_listener_close(struct van_listener *listener)
{
    struct tcp_listener *l = (struct tcp_listener *)listener;
    if (l->closed)
        return;
    l->closed = true;
    lane_timer_cancel(l->lane, &l->pause);
    lane_source_remove(l->lane, &l->source);
    (void)close(l->source.fd);
    l->end.run = listener_free;
    lane_at_end(l->lane, &l->end);
}
