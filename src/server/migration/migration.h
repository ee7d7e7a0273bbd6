/*
 * The migration of partitions from their owner, the source, to another shard, the target. source.h is the
 * owner's side, target.h the target's; migration.c takes the scheduler's orders (wire/migration_order.h) to
 * both. The scheduler orders each step, and its views say how a migration ended.
 *
 *     source:  SOURCE                                 PAUSE
 *       COPYING -------- all rows sent: FULL -------> PAUSING -- all members equal: PAUSED --> a view, or END
 *          |                                             |
 *          |  BEGIN, ROWS, and between them CHAIN with   |  RECORDS, LAST
 *          |  changes of these partitions                |
 *          v                                             v
 *     target:  TARGET
 *       FILLING ------------------ FULL ------------- LAST ----------------------------------> a view, or END
 *
 * - One stream, one order (replication/chain_stream.h). A row is sent as it is at that time; later changes of it
 *   come after it. A change that comes before its row does no harm: the row replaces it.
 * - From FULL on, an answer waits for the target as for a member of the chain.
 * - A pause makes all members and the target equal before the view changes their order. Otherwise what one
 *   member has and another lacks would be lost, or applied twice. Requests for these partitions wait. Reads
 *   are served, unless the target is the next owner.
 * - The source may abort until it has reported PAUSED (too slow, no memory). After that it waits for a view
 *   that has the target, for END, or for a view of another scheduler, which does not know the migration. No
 *   timer ends this wait.
 * - From PAUSED on, the target may be in the chain before the source learns it. So its lease counts for reads
 *   of these partitions as a next member's does. An aborted migration is over: a late PAUSE is refused by its
 *   id.
 * - A target that is a member already and lacks nothing becomes the owner without a copy: only the pause is
 *   left. A member that comes nearer to the owner gets the rows of tables that its level did not have. At the
 *   commit the owner's records replace its own, because they cover all tables. Before the commit, updates
 *   that these records count may still be on their way through the chain.
 *
 * A shard is the source of at most one migration and the target of at most one. It must never know why
 * partitions move (cluster/scheduler/migrations.h). One lane owns all of it. Tests:
 * test/worker/test_migration_sim.c, test_migration_faults.c, test_migration_leases.c.
 */
#ifndef SERVER_MIGRATION_MIGRATION_H
#define SERVER_MIGRATION_MIGRATION_H

#include "server/replication/chain_impl.h"
#include "wire/migration_order.h"

/* A new view: it may tell how a migration ended. */
void migration_view_changed(struct chain *c);
void migration_close(struct chain *c);
/* A checkpoint will be loaded: aborts migrations. AGAIN: one has paused, and may be committed. */
MUST_USE paramo_err migration_suspend(struct shard *s);

#endif
