/*
 * Receiving half of a tcp connection: reads the stream, checks headers and delivers frames. Trusts no byte.
 * Never knows what a frame means. Private to src/van/tcp and src/van/ucx. Tests: test/van/test_tcp.c,
 * fuzz/fuzz_stream.c.
 */
#ifndef VAN_TCP_TCP_RECV_H
#define VAN_TCP_TCP_RECV_H

#include "van/tcp/tcp_conn.h"

/* Takes bytes that came by the way. False: the connection has ended. lasting: the number of bytes, from these
 * on, that are contiguous, stay valid while tcp_recv_in_place, and are passed in this order. 0: the bytes do not
 * stay. */
bool tcp_recv_bytes(struct tcp_conn *conn, const uint8_t *bytes, size_t len, size_t lasting);
/* A large frame is being received whose bytes stay where tcp_recv_bytes got them. */
bool tcp_recv_in_place(const struct tcp_conn *conn);
void tcp_recv_round(struct tcp_conn *conn);
/* Delivers the frames that are in rbuf already. */
void tcp_recv_parse(struct tcp_conn *conn);
void tcp_displace(struct van_conn *base, const void *begin, size_t len);

#endif
