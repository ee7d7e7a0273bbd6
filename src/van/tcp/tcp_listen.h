/*
 * Listeners of the tcp van: accept connections and give each to the user. Never knows which node connects.
 * Private to src/van/tcp. Tests: test/van/test_tcp.c.
 */
#ifndef VAN_TCP_TCP_LISTEN_H
#define VAN_TCP_TCP_LISTEN_H

#include "van/tcp/tcp_conn.h"

paramo_err tcp_listen(struct van *van, struct lane *lane, const char *address,
                      void (*accept)(void *arg, struct van_conn *conn), void *arg,
                      struct van_listener **listener);
void tcp_listener_close(struct van_listener *listener);

#endif
