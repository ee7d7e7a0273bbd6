/*
 * This machine's own addresses: which of them reaches a host, which one an interface has, and whether a name
 * means this machine only. The functions may block as long as the system's resolver: call them before a node
 * joins, never on a lane. They send nothing. Tests: test/van/test_local.c.
 */
#ifndef VAN_LOCAL_H
#define VAN_LOCAL_H

#include "van/addr.h"

/* The address by which packets for host leave this machine, as text without a port. ADDRESS. */
MUST_USE paramo_err local_towards(const char *host, char text[ADDR_HOST_MAX]);
/* The first address of a network interface, IPv4 before IPv6. ADDRESS if there is none. */
MUST_USE paramo_err local_interface(const char *name, char text[ADDR_HOST_MAX]);
/* True if host has addresses and all are loopback addresses. */
bool local_loopback(const char *host);

#endif
