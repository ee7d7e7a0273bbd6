/*
 * Orders of a migration of partitions from one shard to another (cluster/scheduler/migrations.h), with the
 * fields of struct migration_order; none has a result. Shards are named by server and index, which no later
 * view changes.
 *
 *   MIGRATION_SOURCE  to the source: the target will ask for the rows. Answered when it may ask.
 *   MIGRATION_TARGET  to the target: fetch the rows. Answered when it has all rows, and every later change
 *                     reaches it before the change is answered.
 *   MIGRATION_PAUSE   to the source: changes of these partitions wait; if the target will own them, so do
 *                     all requests. Answered when the target and all replicas have every earlier change.
 *   MIGRATION_END     to both: if committed, the view of the order's head or a later one says so; otherwise
 *                     continue as before. A paused source waits for this without a limit. If not committed, the
 *                     target drops what it has.
 *
 * An order of a migration that a shard does not know (it was restarted, for example) is answered with
 * NOT_FOUND, but an END with OK. It never knows rows. Tests: test/wire/test_calls.c.
 */
#ifndef WIRE_MIGRATION_ORDER_H
#define WIRE_MIGRATION_ORDER_H

#include <stdbool.h>

#include "base/cursor.h"

enum { MIGRATION_NO_LEVEL = 4 }; /* RING_LEVELS: of a shard that is in no chain */

struct migration_shard {
    uint32_t node;
    uint16_t index;
};

struct migration_order {
    uint64_t id; /* of the migration; not 0 */
    uint16_t first, partitions;
    struct migration_shard from, to;
    /* The target gets the tables with replicas >= level and < had. had is its present level in the chains, or
     * MIGRATION_NO_LEVEL if no chain has it. */
    uint8_t level, had;
    uint32_t kib_per_s; /* SOURCE: the most per second; 0: no limit */
    bool takes_over;    /* PAUSE: the target will be the owner */
    /* The target is a member of the chain with all rows: PAUSE is the first order, and nothing is sent. */
    bool handover;
    bool committed; /* END */
};

void migration_order_encode(const struct migration_order *m, struct writer *w);
MUST_USE paramo_err migration_order_decode(struct reader *r, struct migration_order *m);

#endif
