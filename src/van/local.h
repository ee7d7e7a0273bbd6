/*
 * This machine's own addresses: which of them reaches a host, which an interface has, and whether a name
 * means this machine alone. May block for as long as the system's resolver does: before a node joins, never
 * on a lane. Sends nothing. Tests: test/van/test_local.c.
 */
#ifndef VAN_LOCAL_H
#define VAN_LOCAL_H

#include "van/addr.h"

/* The address by which packets for host leave this machine, as text without a port. ADDRESS. */
MUST_USE paramo_err local_towards(const char *host, char text[ADDR_HOST_MAX]);
/* The first address of a network interface, IPv4 before IPv6. ADDRESS if there is none. */
MUST_USE paramo_err local_interface(const char *name, char text[ADDR_HOST_MAX]);
/* Whatever host stands for is a loopback address (and it stands for something). */
bool local_loopback(const char *host);

#endif
