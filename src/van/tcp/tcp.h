/*
 * Life cycle of the tcp van and its connections: create, connect, break, move, close. tcp_send.h and
 * tcp_recv.h are the two directions, tcp_listen.h the listeners, tcp_conn.h the state. Never knows what a
 * frame means or who the peer is. Private to src/van/tcp and src/van/ucx. Tests: test/van/test_tcp.c.
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
/* The socket is accepted or connected. */
MUST_USE paramo_err tcp_conn_open(struct tcp_conn *conn);
/* In a round: ends the connection and tells the user. The message is err_text(). */
void tcp_break(struct tcp_conn *conn, paramo_err why);
/* Anywhere: calls tcp_break at the end of this round. */
void tcp_break_later(struct tcp_conn *conn, paramo_err why);
void tcp_hook(struct tcp_conn *conn);
void tcp_socket_options(int fd);
/* Frees a connection that never had a user, or is an orphan. */
void tcp_discard(struct tcp_conn *conn, paramo_err status);

#endif
