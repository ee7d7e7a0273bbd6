/*
 * Internet addresses as text: "10.0.0.5:8000", "[::1]:8000", "host:8000", "*:8000" (to listen on all). This
 * module knows the address structures of sockets, but never connections. Tests: test/van/test_addr.c.
 */
#ifndef VAN_ADDR_H
#define VAN_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"

enum { ADDR_HOST_MAX = 256, ADDR_TEXT_MAX = 72, ADDR_LIST_MAX = 8 };

struct addr {
    struct sockaddr_storage sa;
    socklen_t len;
};

/* The addresses of a name, in the order to try. */
struct addr_list {
    struct addr addr[ADDR_LIST_MAX];
    unsigned count;
};

/* Splits "host:port". host has no brackets; "*" stays. ADDRESS with the reason. */
MUST_USE paramo_err addr_split(const char *text, char host[ADDR_HOST_MAX], uint16_t *port);
/* True if host is a literal address or "*"; then *addr is that address. */
bool addr_literal(const char *host, uint16_t port, struct addr *addr);
/* Asks the system's resolver, which may block for seconds. ADDRESS with the resolver's reason. */
MUST_USE paramo_err addr_resolve(const char *host, uint16_t port, struct addr_list *list);
void addr_format(const struct addr *addr, char text[ADDR_TEXT_MAX]);

#endif
