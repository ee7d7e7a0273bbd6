/*
 * Migrations of partitions: turns the state machine of migrations.h into orders to the shards, after a death
 * and when a server joins, is drained or leaves.
 * Must never know: how shards copy rows (src/server/migration/).
 * Tests: test/cluster/test_sched_migrations.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_MIGRATIONS_H
#define CLUSTER_SCHEDULER_SCHED_MIGRATIONS_H

#include "base/cursor.h"
#include "cluster/scheduler/migrations.h"
#include "env/lane.h"
#include "wire/head.h"

struct scheduler;

struct migration_end {
    struct migration migration;
    bool committed;
    bool untold[2]; /* not sent yet: to from, to to */
};

/* The part that migrations call (sched_drain.c). */
struct sched_migrations_ops {
    /* Chains, servers or weights have changed: drained servers that hold nothing may leave. False: there was no
     * memory to tell all of them. */
    bool (*release_drained)(struct scheduler *s);
};

struct sched_migrations {
    struct scheduler *sched; /* whose part it is */
    struct migrations machine;
    struct migrations_shard *shards;
    struct lane_timer timer;       /* one has failed: others begin later */
    struct lane_timer check_timer; /* a drained server may have nothing left, or rebalancing is complete */
    const struct sched_migrations_ops *ops;
    bool converged;               /* sched_migrations_converged, and it was logged */
    bool short_of_servers;        /* nothing migrates, but there are too few servers: it was logged */
    bool unsent;                  /* an order could not be sent */
    bool undrained;               /* a drained server has nothing left, and could not be told */
    bool suspended;               /* a checkpoint is taken or loaded: none begins */
    bool unplanned;               /* a plan is due, and there was no memory for it */
    struct migration_note *notes; /* orders that are not answered */
    /* Migrations that are over, whose END could not be given to a side yet. Until then no other begins, so
     * that with those in progress there are at most MIGRATIONS_MAX. */
    struct migration_end ends[MIGRATIONS_MAX];
    unsigned ends_count;
    struct lane_timer ends_timer;
};

void sched_migrations_set_ops(struct scheduler *s, const struct sched_migrations_ops *to);
/* The ring is built. Commits change its chains. */
MUST_USE paramo_err sched_migrations_init(struct scheduler *s);
/* A server has joined or is gone, or a weight has changed: plans again and migrates towards the plan. */
void sched_migrations_retarget(struct scheduler *s);
/* Called by the scheduler's clock: does what could not be done before because memory was lacking. */
void sched_migrations_retry(struct scheduler *s);
/* While a checkpoint is taken or loaded nothing migrates: migrations in progress end, and begin again later. The
 * same holds while lost rows are restored: resume does nothing then. */
void sched_migrations_suspend(struct scheduler *s);
void sched_migrations_resume(struct scheduler *s);
/* Rows may have been lost: then no migration begins until they are restored. Only the owner restores them. If it passed
 * them on before that, it would stay a member of the chain without them. */
void sched_migrations_wait_for_lost(struct scheduler *s);
/* A migration has begun. */
bool sched_migrations_in_progress(const struct scheduler *s);
/* The next view is of this term. Servers take it for that of another scheduler, which knows of no migration, and
 * drop theirs. So migrations in progress are not committed: they begin again. */
void sched_migrations_restart(struct scheduler *s, uint64_t term);
/* Makes room for more shards. */
MUST_USE paramo_err sched_migrations_reserve(struct scheduler *s, uint16_t shards);
/* A table of this many replicas is in the next view. */
void sched_migrations_table(struct scheduler *s, unsigned replicas);
/* Every partition has all its copies, where the plan wants them, on servers that are registered with this
 * scheduler; and nothing is being restored. So any server may go whose partitions have copies. */
bool sched_migrations_converged(const struct scheduler *s);
/* MIGRATIONS_MAX places. */
const struct migration *sched_migrations_all(const struct scheduler *s);
/* The shard is in a chain, or in a migration. */
bool sched_migrations_need(const struct scheduler *s, uint16_t shard);
/* For ring_promote: the last level that tables use. */
const struct ring_ends *sched_migrations_ends(const struct scheduler *s);
/* The job is complete, and rebalancing counts as complete: only what a later change needs is logged. */
void sched_migrations_set_converged(struct scheduler *s);
/* A view has been announced. */
void sched_migrations_announced(struct scheduler *s);
/* A drained server may have nothing left, or rebalancing may be complete. */
void sched_migrations_check(struct scheduler *s);
void sched_migrations_fini(struct scheduler *s);

#endif
