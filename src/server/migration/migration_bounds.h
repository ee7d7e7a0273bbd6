/*
 * What both sides of a migration share: bounds, times, and the record of migrations that are over.
 * Must never know: either side. Tests: test/worker/test_migration_sim.c.
 */
#ifndef SERVER_MIGRATION_MIGRATION_BOUNDS_H
#define SERVER_MIGRATION_MIGRATION_BOUNDS_H

#include <stdint.h>

/* Arbitrary. */
enum {
    MIGRATION_WINDOW_BYTES = 8 << 20, /* bytes of rows that are not acknowledged */
    MIGRATION_BLOCK_BYTES = 1 << 20,
    MIGRATION_TURN_ROWS = 8192, /* examined in one turn; then requests have theirs */
    MIGRATION_TURN_MS = 1,
    MIGRATION_PAUSE_MS = 1000, /* for all members to be equal; otherwise the source aborts */
    MIGRATION_STALL_MS = 5000  /* without a sign of the other side */
};

/* Migrations up to this id are over: their orders may still come. */
static inline void migration_set_over(uint64_t *over, uint64_t id)
{
    *over = id > *over ? id : *over;
}

#endif
