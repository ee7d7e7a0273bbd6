/*
 * Life cycle of a tcp connection: create, connect, move, close. tcp_send.h and tcp_recv.h are the two directions,
 * tcp_end.h is the end, tcp_listen.h the listeners, tcp_conn.h the state, tcp_van.c the van. Never knows what a frame
 * means, or which node the peer is. Private to src/van/tcp and src/van/ucx. Tests: test/van/test_tcp.c.
 */
#ifndef VAN_TCP_TCP_H
#define VAN_TCP_TCP_H

#include "van/tcp/tcp_conn.h"

paramo_err tcp_connect(struct van *van, struct lane *lane, const char *address,
                       const struct van_user *user_ops, void *user, struct van_conn **out);
void tcp_close(struct van_conn *base, bool flush);
void tcp_abandon(struct van_conn *base);
void tcp_move(struct van_conn *base, struct lane *lane, void (*arrived)(void *arg, struct van_conn *conn),
              void *arg);
MUST_USE paramo_err tcp_conn_create(struct van *van, struct lane *lane, struct tcp_conn **conn);
/* Begins to receive on an accepted socket. After an error the connection is not open. */
MUST_USE paramo_err tcp_conn_open(struct tcp_conn *conn);
void tcp_socket_options(int fd);

#endif
