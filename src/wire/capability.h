/*
 * Capability bits: what both ends of a connection can do beyond the version of the protocol that they speak.
 * HELLO offers the bits of its sender, and WELCOME answers with those that both have (hello.h). A feature is
 * used on a connection only if capability_of() says so; the same build may have connections with it and
 * without it.
 *
 * To add one: a bit here, in CAPABILITIES too; a line in docs/PROTOCOL.md, section 4; and the code that asks
 * capability_of() before it sends anything that an older peer cannot read. The simulator draws the bits of
 * each process, so the feature is on for some connections and off for others.
 *
 * It never knows what a feature does. Tests: test/cluster/test_acceptor.c, test/wire/test_hello.c.
 */
#ifndef WIRE_CAPABILITY_H
#define WIRE_CAPABILITY_H

#include "van/van.h"

/* For tests: no feature ever has this bit. */
#define CAPABILITY_TEST (UINT64_C(1) << 63)

/* What this build can: none is defined yet. */
#define CAPABILITIES UINT64_C(0)

/* Can both ends of an established connection do it? */
static inline bool capability_of(const struct van_conn *conn, uint64_t bit)
{
    return (conn->capabilities & bit) == bit;
}

#endif
