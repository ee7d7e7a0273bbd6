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
struct sched_call;
struct sched_peer;

struct migration_end {
    struct migration migration;
    bool committed;
    bool untold[2]; /* from, to */
};

struct sched_migrations {
    struct scheduler *sched; /* whose part it is */
    struct migrations machine;
    struct migrations_shard *shards;
    struct lane_timer timer;       /* one has failed: others begin later */
    struct lane_timer drain_timer; /* a drained server may have nothing left */
    bool converged;                /* sched_migrations_converged, and it was logged */
    bool short_of_servers;         /* nothing migrates, but there are too few servers: it was logged */
    bool unsent;                   /* an order could not be given */
    bool undrained;                /* a drained server has nothing left, and could not be told */
    bool unplanned;                /* a plan is due, and there was no memory for it */
    struct migration_note *notes;  /* orders that are not answered */
    /* Migrations that are over, whose END could not be given to a side yet. Until then no other begins, so
     * that with those in progress there are at most MIGRATIONS_MAX. */
    struct migration_end ends[MIGRATIONS_MAX];
    unsigned ends_count;
    struct lane_timer ends_timer;
};

/* Commits change chains, which stay the ring's. */
MUST_USE paramo_err sched_migrations_init(struct scheduler *s, struct ring_chains *chains);
/* Servers joined or are gone, or a weight has changed: plans again and migrates towards the plan. */
void sched_migrations_retarget(struct scheduler *s);
/* Called by the scheduler's clock: does what could not be done before because memory was lacking. */
void sched_migrations_retry(struct scheduler *s);
/* While a checkpoint is taken or loaded nothing migrates: migrations in progress end, and begin again later. */
void sched_migrations_suspend(struct scheduler *s);
void sched_migrations_resume(struct scheduler *s);
/* Servers will take the next view, of this term, for another scheduler's, which knows of no migration. None
 * may be committed that they have dropped by then. They begin again. */
void sched_migrations_restart(struct scheduler *s, uint64_t term);
MUST_USE paramo_err sched_migrations_reserve(struct scheduler *s, size_t shards);
/* A table of this many replicas is in the next view. */
void sched_migrations_table(struct scheduler *s, unsigned replicas);
/* CALL_DRAIN of a server: its partitions go to others, then it is told to leave. */
void sched_migrations_drain_call(struct sched_call *call, struct reader *body);
/* The same of an admin client. */
MUST_USE paramo_err sched_migrations_drain_query(struct sched_peer *peer, const struct wire_call *call,
                                                 struct reader *body);
/* Everything up to this save is durable: admin clients that waited for it are answered. */
void sched_migrations_drain_saved(struct scheduler *s, uint64_t save);
/* Every partition has all its copies, where the plan wants them, on servers that are registered with this
 * scheduler; and nothing is being restored. So any server may go whose partitions have copies. */
bool sched_migrations_converged(const struct scheduler *s);
/* MIGRATIONS_MAX places. */
const struct migration *sched_migrations_all(const struct scheduler *s);
/* For ring_promote: the last level that tables use. */
const struct ring_ends *sched_migrations_ends(const struct scheduler *s);
/* The job is complete, and nothing has changed yet. */
void sched_migrations_settled(struct scheduler *s);
/* A view has been announced. */
void sched_migrations_announced(struct scheduler *s);
/* A drained server may have nothing left, or rebalancing may be complete. */
void sched_migrations_check(struct scheduler *s);
void sched_migrations_fini(struct scheduler *s);

#endif
