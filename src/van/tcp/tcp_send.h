/*
 * Sending half of a tcp connection: queueing, gathering and writing frames. Never knows what a frame means.
 * Private to src/van/tcp and src/van/ucx. Tests: test/van/test_tcp.c.
 */
#ifndef VAN_TCP_TCP_SEND_H
#define VAN_TCP_TCP_SEND_H

#include "van/tcp/tcp_conn.h"

paramo_err tcp_send(struct van_conn *base, struct van_frame *frame);
paramo_err tcp_send_lent(struct van_conn *base, struct van_frame *frame, void *spare);
void tcp_withdraw(struct van_conn *base, struct van_frame *frame);
void tcp_flush(struct van_conn *base);
void tcp_expect(struct van_conn *base);
/* Sends what is due now and calls done. */
void tcp_send_round(struct tcp_conn *conn);
bool tcp_send_pending(const struct tcp_conn *conn);
/* Calls done of every frame. */
void tcp_send_abort(struct tcp_conn *conn, paramo_err status);

/* Sends an own frame on the socket, before all frames that have not begun. It takes the place of an own frame
 * that has not begun. last: nothing follows it on the socket. */
MUST_USE paramo_err tcp_send_own(struct tcp_conn *conn, const void *body, size_t len, bool last);
/* The last frame has left on the socket, and frames wait for the way. */
bool tcp_send_held(const struct tcp_conn *conn);
/* The way has room (again). taken: the bytes that it has taken. */
void tcp_way_open(struct tcp_conn *conn, size_t taken);
/* The bytes to send next, at most room. They stay the same until they are taken, but a withdrawn frame is
 * copied elsewhere. */
size_t tcp_gather(struct tcp_conn *conn, struct iovec iov[1 + 2 * VAN_SEGS], int *n, size_t room);

#endif
