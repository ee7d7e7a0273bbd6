/*
 * Migrations: bring the chains from their present state to the target state, one run of partitions at a
 * time. At no moment has a partition two owners, or a member that lacks rows. A pure state machine over
 * ring_chains: the scheduler's state without its messages. It never knows nodes, frames or time. Its owner
 * executes what it orders (struct migrations_ops) and reports the result.
 *
 *            begin() to both             the target has           the source defers
 *            shards, both agreed         all rows, and gets       requests, and all
 *                                        each new change          have its last change
 *     PLANNED ------------> COPYING ------------> FULL ------------> PAUSED
 *        |                     |                   |   pause()          | commit(), then end(true)
 *        |                     |                   |                    +--> COMMITTED
 *        +---------------------+-------------------+--------------------+--> ABORTED: end(false)
 *          a side died or gave up, or the migration is no longer wanted
 *
 * A chain has full members only: the commit adds the target to the chain, and nothing does so before. The
 * same commit removes members that are then too many, and puts the others into the target order, so no member
 * lacks what another has. A member that has all rows and is to become the owner begins as FULL. Where tables
 * have fewer replicas than the job, a member has the rows of its level (ring/chains.h); a member that moves
 * towards the owner gets the missing rows by a migration, too. Levels that a death has emptied are filled
 * first by new members, then by members of later levels.
 *
 * At most MIGRATIONS_MAX migrations run at a time, and each shard is the source of one and the target of one.
 * The partitions of a migration, by default at most MIGRATION_PARTITIONS_MAX, are in no other. Partitions that lack
 * copies, or have two in one process, come first; so do copies in a process that has none.
 *
 * Tests: test/cluster/test_migrations.c.
 */
#ifndef CLUSTER_SCHEDULER_MIGRATIONS_H
#define CLUSTER_SCHEDULER_MIGRATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "ring/chains.h"

enum {
    MIGRATIONS_MAX = 64,
    MIGRATION_PARTITIONS_MAX = 256 /* what one failure costs; arbitrary */
};

enum migration_state {
    MIGRATION_NONE,
    MIGRATION_PLANNED,
    MIGRATION_COPYING,
    MIGRATION_FULL,
    MIGRATION_PAUSED
};

struct migration {
    enum migration_state state; /* NONE: the place is free */
    uint64_t id;                /* from 1, rising, never used again */
    uint16_t first, partitions;
    uint16_t from, to;  /* shards: the owner of the partitions while it lasts; the one that gets them */
    uint8_t level, had; /* to gets the tables with replicas >= level and < had; had is its present
                                  level in the chains, RING_LEVELS if it is in none */
    bool handover;      /* it gets no tables: it began as FULL, with pause() */
    bool takes_over;    /* since pause(): some of the partitions get another owner by the commit */
    bool from_ready, to_ready; /* PLANNED: which side has agreed */
};

struct migrations_shard {
    uint32_t server; /* shards of one process have one number: a second copy there adds little */
    bool gone;       /* nothing can be copied from it */
};

/* All of them may be called from inside any function below, and may not call back into it. */
struct migrations_ops {
    void (*begin)(void *arg, const struct migration *migration); /* both sides: prepare */
    /* from: requests wait, members get the last change */
    void (*pause)(void *arg, const struct migration *migration);
    /* The chains have changed: the next view has them. migration: the one that changed them; NULL: none did. */
    void (*commit)(void *arg, const struct migration *migration);
    void (*end)(void *arg, const struct migration *migration, bool committed); /* both sides, if they live */
};

struct migrations {
    struct ring_chains *chains; /* the present ones: the owner's; changed by commits */
    struct ring_chains target;  /* the target state */
    struct ring_ends ends;      /* of the tables that exist */
    bool wanted;                /* there is a target */
    bool held;                  /* none begins before migrations_resume */
    unsigned most;              /* partitions of one migration: MIGRATION_PARTITIONS_MAX, or what the owner
                                   sets after migrations_init */
    const struct migrations_shard *shard;
    size_t shards;
    uint64_t next_id;
    struct migration migration[MIGRATIONS_MAX];
    const struct migrations_ops *ops;
    void *arg;
};

/* chains stays the caller's. A caller that changes it between calls (ring_promote) calls migrations_set_shards
 * afterwards. */
void migrations_init(struct migrations *m, struct ring_chains *chains, const struct migrations_ops *ops,
                     void *arg);

/* The new target state. Migrations that do not lead there are aborted, others begin. */
void migrations_set_target(struct migrations *m, const struct ring_chains *target);
/* All shards. Migrations of those that are gone are aborted; the chains have dropped these already.
 * migrations_set_target must follow. shard stays the caller's, as it is, until the next call. */
void migrations_set_shards(struct migrations *m, const struct migrations_shard *shard, size_t n);
/* A table with this number of replicas exists. Called before the view that has it. */
void migrations_table(struct migrations *m, unsigned replicas);
/* Begins the migrations that can begin. After migrations_hold none begins until this is called. */
void migrations_resume(struct migrations *m);
/* No migration begins until migrations_resume: one has failed, and would fail again at once. */
void migrations_hold(struct migrations *m);

/* Reports of a migration. A report of one that is over, or in another state, is ignored: it may be late. */
void migrations_agreed(struct migrations *m, uint64_t id, uint16_t shard);
void migrations_full(struct migrations *m, uint64_t id);
void migrations_paused(struct migrations *m, uint64_t id);
void migrations_failed(struct migrations *m, uint64_t id);

/* NULL: it is over, or never began. What it has committed is in the chains. */
const struct migration *migrations_find(const struct migrations *m, uint64_t id);
/* The chains have reached the target state. */
bool migrations_converged(const struct migrations *m);
/* The shard is in a chain, or in a migration. */
bool migrations_needs(const struct migrations *m, uint16_t shard);

#endif
