/*
 * Orders of a move of partitions from one shard to another (cluster/scheduler/migrations.h), with the fields
 * of struct migration_order; none has a result. Shards are named by server and index, which no later view
 * changes.
 *
 *   MIGRATION_SOURCE  to the owner: the target will ask for the rows. Answered when it may.
 *   MIGRATION_TARGET  to the target: fetch the rows. Answered when all are there, and what is done to them
 * meanwhile reaches this shard before the sender hears of it. MIGRATION_PAUSE to the owner: changes of these
 * partitions wait, and whatever asks for them if the target is to be the owner. Answered when the target, and
 * all who have copies, have all that came before. MIGRATION_END   to both: committed, the view of the order's
 * head or a later one says so; else go on as before. An owner that has paused waits for this, however long;
 * the target forgets what it has, if not committed.
 *
 * A move of which a shard does not know (it was started anew, say) is answered with NOT_FOUND, but an END
 * with OK. Tests: test/wire/test_calls.c.
 */
#ifndef WIRE_MIGRATION_ORDER_H
#define WIRE_MIGRATION_ORDER_H

#include <stdbool.h>

#include "base/cursor.h"

enum { MIGRATION_NO_LEVEL = 4 };

struct migration_shard {
    uint32_t node;
    uint16_t index;
};

struct migration_order {
    uint64_t id; /* of the move; not 0 */
    uint16_t first, partitions;
    struct migration_shard from, to;
    /* The target gets the tables of so many replicas or more, but fewer than had: its level in the chains, or
     * MIGRATION_NO_LEVEL if no chain has it. */
    uint8_t level, had;
    uint32_t kib_per_s; /* GIVE: at most so much a second; 0: as fast as it can */
    bool takes_over;    /* PAUSE: the target is to be the owner */
    bool handover;  /* the target is a member and lacks nothing: PAUSE is the first order, and nothing is sent
                     */
    bool committed; /* END */
};

void migration_order_encode(const struct migration_order *m, struct writer *w);
MUST_USE paramo_err migration_order_decode(struct reader *r, struct migration_order *m);

#endif
