/*
 * host and port as one string and back: "10.0.0.5:8000", "[::1]:8000", "name:1". It never resolves names.
 * Tests: test/cluster/test_view.c.
 */
#ifndef CLUSTER_SESSION_ADDRESS_H
#define CLUSTER_SESSION_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { ADDRESS_MAX = 280 };

void address_join(const char *host, uint16_t port, char address[ADDRESS_MAX]);
/* The next address of a comma-separated list; *list moves after it. False at the end of the list, or if an
 * address is empty or too long (then *list is not at its end). */
bool address_next(const char **list, char address[ADDRESS_MAX]);
/* By its spelling: localhost, 127..., ::1. */
bool address_is_loopback(const char *host);
/* ADDRESS if there is no port, the port is not from 0 to 65535, or the host does not fit. */
MUST_USE paramo_err address_split(const char *address, char *host, size_t host_capacity, uint16_t *port);

#endif
