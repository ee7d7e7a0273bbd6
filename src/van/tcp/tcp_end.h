/*
 * The end of a tcp connection: it breaks, or its user closes it. Its frames are completed and its socket is closed.
 * Never knows why it ends. Private to src/van/tcp and src/van/ucx. Tests: test/van/test_tcp.c.
 */
#ifndef VAN_TCP_TCP_END_H
#define VAN_TCP_TCP_END_H

#include "van/tcp/tcp_conn.h"

/* In a round: ends the connection and tells the user. The message is err_text(). */
void tcp_break(struct tcp_conn *conn, paramo_err why);
/* Frees the connection without a callback: its user has closed it, or it never had one. */
void tcp_discard(struct tcp_conn *conn, paramo_err status);
/* Drops what was received and not delivered. */
void tcp_end_receiving(struct tcp_conn *conn);
void tcp_end_socket(struct tcp_conn *conn);

#endif
