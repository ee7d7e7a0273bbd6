/*
 * Receiving half of a tcp connection: reads the stream, checks headers and delivers frames. Trusts no byte. Never
 * knows what a frame means. Private to src/van/tcp and src/van/ucx. Tests: test/van/test_tcp.c, fuzz/fuzz_stream.c.
 */
#ifndef VAN_TCP_TCP_RECV_H
#define VAN_TCP_TCP_RECV_H

#include "van/tcp/tcp_conn.h"

/* Bytes that came by the way; false if the connection ended over them. lasting: from them on, so many lie in
 * one piece that stays as long as tcp_recv_reads_there, and will be given in this order; 0: they are gone. */
bool tcp_recv_bytes(struct tcp_conn *conn, const uint8_t *bytes, size_t len, size_t lasting);
bool tcp_recv_reads_there(const struct tcp_conn *conn);
void tcp_recv_round(struct tcp_conn *conn);
/* Delivers what is in rbuf already. */
void tcp_recv_parse(struct tcp_conn *conn);
void tcp_recv_abort(struct tcp_conn *conn);
void tcp_displace(struct van_conn *base, const void *begin, size_t len);

#endif
