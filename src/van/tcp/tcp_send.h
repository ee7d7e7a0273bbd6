/*
 * Sending half of a tcp connection: queueing, gathering and writing frames. Never knows what a frame means. Private to
 * src/van/tcp and src/van/ucx. Tests: test/van/test_tcp.c.
 */
#ifndef VAN_TCP_TCP_SEND_H
#define VAN_TCP_TCP_SEND_H

#include "van/tcp/tcp_conn.h"

paramo_err tcp_send(struct van_conn *base, struct van_frame *frame);
paramo_err tcp_send_lent(struct van_conn *base, struct van_frame *frame, void *spare);
void tcp_withdraw(struct van_conn *base, struct van_frame *frame);
void tcp_flush(struct van_conn *base);
/* Sends what should leave now; done callbacks. */
void tcp_send_round(struct tcp_conn *conn);
bool tcp_send_pending(const struct tcp_conn *conn);
/* Gives every frame back. */
void tcp_send_abort(struct tcp_conn *conn, paramo_err status);

/* Says an own frame on the socket, before all frames that have not begun; one at a time. last: nothing
 * follows it there. */
MUST_USE paramo_err tcp_send_own(struct tcp_conn *conn, const void *body, size_t len, bool last);
/* The way takes bytes (again), after it has taken this many. */
void tcp_way_open(struct tcp_conn *conn, size_t taken);
/* What is to leave next, at most room bytes; the same until it is taken, but a frame that is withdrawn is
 * copied elsewhere. */
size_t tcp_gather(struct tcp_conn *conn, struct iovec iov[1 + 2 * VAN_SEGS], int *n, size_t room);

#endif
