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

/* Filters, each by itself (filter/filter.h). */
#define CAPABILITY_KEYCACHE (UINT64_C(1) << 0)
#define CAPABILITY_LZ4      (UINT64_C(1) << 1)
#define CAPABILITY_ZSTD     (UINT64_C(1) << 2)
#define CAPABILITY_FIXED    (UINT64_C(1) << 3)
#define CAPABILITY_BF16     (UINT64_C(1) << 4)
#define CAPABILITY_FP16     (UINT64_C(1) << 5)
/* REDUCE. */
#define CAPABILITY_REDUCE (UINT64_C(1) << 16)
/* TRANSFORM, and SCAN of keys only. */
#define CAPABILITY_TRANSFORM (UINT64_C(1) << 17)
/* Flag RANGE: ranges of keys in PUSH, PULL, PUSHPULL. */
#define CAPABILITY_RANGE (UINT64_C(1) << 18)
/* Answers with the minimum of the clocks contain the number of workers that count. */
#define CAPABILITY_CLOCK_WORKERS (UINT64_C(1) << 19)
/* Functions of the application in REDUCE and TRANSFORM. */
#define CAPABILITY_FUNCTIONS (UINT64_C(1) << 20)
/* Flag COLUMNS in requests of several rows, and of any table in PULL. */
#define CAPABILITY_COLUMNS (UINT64_C(1) << 21)
/* Readers: HELLO of purpose DATA from node 0 (hello.h). */
#define CAPABILITY_READERS (UINT64_C(1) << 22)
/* CHAIN combines the pushes of a clock to an aggregated table (chain.h). */
#define CAPABILITY_AGGREGATE (UINT64_C(1) << 23)
/* What this build can. An application may add some of CAPABILITY_USER_FILTERS. */
#define CAPABILITIES                                                                                         \
    (UINT64_C(0x3f) | CAPABILITY_REDUCE | CAPABILITY_TRANSFORM | CAPABILITY_RANGE |                          \
     CAPABILITY_CLOCK_WORKERS | CAPABILITY_FUNCTIONS | CAPABILITY_COLUMNS | CAPABILITY_READERS |             \
     CAPABILITY_AGGREGATE)

/* Filters of the application: one bit for each, which the hash of its name decides. */
#define CAPABILITY_USER_FILTERS UINT64_C(0x00ffffff00000000)
static inline uint64_t capability_of_user_filter(uint64_t hash)
{
    return UINT64_C(1) << (32 + hash % 24);
}

/* Any filter. */
#define CAPABILITY_FILTERS (UINT64_C(0x3f) | CAPABILITY_USER_FILTERS)

/* Can both ends of an established connection do it? */
static inline bool capability_of(const struct van_conn *conn, uint64_t bit)
{
    return (conn->capabilities & bit) == bit;
}

#endif
