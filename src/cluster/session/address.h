/*
 * host and port as one string and back: "10.0.0.5:8000", "[::1]:8000", "name:1". Resolves nothing.
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
/* The next of a list with commas between, which moves on; false at its end, or if one is empty or too long
 * (then *list is not at its end). */
bool address_next(const char **list, char address[ADDRESS_MAX]);
/* By its looks: localhost, 127..., ::1. */
bool address_is_loopback(const char *host);
/* ADDRESS if it has no port, or none from 0 to 65535, or the host does not fit. */
MUST_USE paramo_err address_split(const char *address, char *host, size_t host_capacity, uint16_t *port);

#endif
