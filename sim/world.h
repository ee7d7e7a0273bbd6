/*
 * The inside of the simulator: a whole cluster in one thread. A machine is one process on a host of its own,
 * with its own clock, pauses and van. src/node's member slot builds it from the product's own scheduler,
 * members, acceptors, shards and clients. The script of its worker plays the application.
 *
 *     play.c          one schedule from beginning to end: faults, steps, the calm period after them
 *     machine.c       processes: start, crash, restart
 *     script.c        the workers' application: its calls to the scheduler, and when it makes them
 *     ops.c           its requests, and the server's handler
 *     ledger.c        the model of sums: what was pushed, acknowledged, cleared; what a pull may return
 *     cells.c         the model of overwritten rows: which values a read may return
 *     reals.c         the model of values that filters round: as which sums they may be read
 *     deals.c         the model of the pool: which worker has which work unit
 *     functions.c     functions of ranges, and what their results may be
 *     clocks.c        the clocks of customers: who ends iterations and waits, and the model of what has ended
 *     sides.c         nodes that are cut off from the rest together
 *     island.c        members of a chain and a client, cut off while others write what it reads
 *     memory.c        allocations of a process that fail
 *     assertion.c     assertions of the product that fail
 *     migrate_fault.c partitions without rows that get another owner
 *     client_tasks.c  what the application does on a thread of its own: it saves and loads tables
 *     ckpts.c         checkpoints of the job: saves, loads, and that the files are whole
 *     bounds.c        what a checkpoint must hold and may hold, and the model after it is loaded
 *     losses.c        rows whose last copy has died, and that return to a checkpoint
 *     cover.c         (cover_sched.c) transitions of the product's state machines, and the faults before them
 *     judge.c         invariants after each event
 *     look.c          the check of all tables, now and then
 *
 * When memory runs out the simulator aborts: a result would mean nothing. Tests: test/sim/test_play.c.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "sim/cells.h"
#include "sim/cover.h"
#include "sim/deals.h"
#include "sim/env/sim.h"
#include "sim/env/simetcd.h"
#include "sim/env/simfs.h"
#include "sim/fault.h"
#include "sim/island.h"
#include "sim/judge.h"
#include "sim/ledger.h"
#include "sim/losses.h"
#include "sim/machine.h"
#include "sim/play.h"
#include "sim/reals.h"
#include "sim/van/simvan.h"

/* Faults that wait for a packet of a link, oldest first: indices into the schedule, linked by world.pending.
 */
struct line {
    size_t first, last; /* SIZE_MAX: none */
};

struct road {
    struct simnet_link *link;
    uint64_t packets, seed;
    struct line drop, repeat, late;
    uint64_t cut_until, lag_until, lag_ns, slow_until;
    size_t cut_by, lag_by, slow_by; /* which faults */
};

struct pending {
    size_t next;
    uint64_t left; /* packets, or ns */
};

struct world {
    const struct schedule *schedule;
    struct sim *sim;
    struct sim_turns turns;
    struct simnet *net;
    struct machine machines[SCHEDULE_NODES_MAX];
    uint32_t count;
    struct machine *workers;       /* the first */
    struct simetcd *etcd;          /* schedule.meta */
    uint32_t etcd_term;            /* the scheduler that began to lead last */
    bool term_told[SIM_TERMS];     /* a scheduler has started with this store */
    uint64_t term_view[SIM_TERMS]; /* the newest of its views that any node has seen */
    struct road links[SCHEDULE_NODES_MAX][SCHEDULE_NODES_MAX];
    struct simnet_node *nodes[SCHEDULE_NODES_MAX];
    struct dice dice; /* the application's */
    struct dice clocks_dice;
    bool clocks;             /* its customers use clocks */
    uint64_t clocks_minimum; /* the highest that any of them has heard of */
    uint64_t events;
    uint64_t instant, instant_events; /* the time of the last event, and how many there were at that time */
    uint64_t answers;                 /* frames that have arrived */
    uint64_t step;                    /* the place in the list of faults (play.c) */
    size_t next_fault;
    size_t waiting; /* faults that wait for a packet */
    size_t struck;
    size_t amid[SIM_AMIDS]; /* faults that wait for a migration's pause */
    unsigned amid_count;
    uint32_t amid_source; /* step of the last fault that struck */
    struct island island;
    bool *hit; /* for each fault */
    struct pending *pending;
    bool calm, complete, scheduler_lost, over;
    bool gathered;        /* the workers of this job have met at their first barrier */
    bool scheduler_stood; /* a process was stopped, or a clock jumped */
    bool jumped;          /* a node's clock has jumped */
    uint64_t calm_since;
    uint32_t jobs, disks; /* jobs that have begun, and the room for them */
    paramo_err over_status;
    uint64_t over_view; /* the newest view of the scheduler that said so */
    bool over_unsaved;  /* that scheduler could not save the end */
    bool over_crashed;  /* its machine crashed as it emptied its store */
    bool emptying;      /* a scheduler has announced the end, and empties its store before it reports so */
    paramo_err emptying_status;
    /* The same of the job before this one, which the store may still hold. */
    uint64_t past_view;
    paramo_err past_status;

    struct ckpts *ckpts; /* NULL: the schedule has none */
    bool renew;          /* all processes are to die */
    /* a checkpoint is being loaded, or was loaded only in part: rows may hold anything */
    bool loading;
    /* the job begins with a checkpoint, and no worker has joined: servers may have no rows yet */
    bool restoring;
    uint64_t loaded_at; /* the moment of the last load */

    struct ledger_table ledger[SIM_TABLES];
    uint64_t moment;
    double reals_error[SIM_KEYS][SIM_DIGITS]; /* of SIM_REALS: how far each push is off at most (reals.h) */
    struct cell cells[SIM_KEYS];              /* of SIM_CELLS */
    struct cell values[SCHEDULE_NODES_MAX];   /* small values at the scheduler, one of each worker */
    uint64_t values_put;
    struct deal deals[SIM_STREAMS][SIM_UNITS];
    uint64_t death_view[SIM_SERVERS]; /* the last view in which the server of this place had died */
    uint64_t lost_at;    /* the last view in which a server had died, or another had come in its place */
    uint64_t loss_first; /* the first fault of the present burst */
    uint64_t loss_view;  /* lost_at of the newest view: lost rows are being restored */
    struct losses_untold untold;
    uint64_t given_up; /* the moment since which some lost rows do not return */
    /* a server was alive that a view declared dead: it may not know, and acknowledge requests */
    uint64_t ghost_at;
    uint32_t dead;                        /* machines that a view has declared dead, by node, one bit each */
    uint64_t overdue_from, overdue_until; /* the first and the last moment of all overdue leases; 0: none */
    bool deaths_seen;                     /* a server was dead in a view */
    bool pool_leaks;                      /* a failed call may have got a work unit */
    uint32_t migrations;
    uint32_t counts[PLAY_COUNTS_COUNT];
    struct coverage coverage;
    uint32_t deaths[SIM_SERVERS]; /* starts of server processes */
    uint32_t ring_shards;
    struct op *free_ops, *ops; /* all open ones */
    struct op *quarantine[SIM_QUARANTINE];
    unsigned quarantine_at;
    uint32_t serial;        /* numbers requests, in all jobs */
    uint32_t serial_before; /* the same, when this job began */
    struct op *by_serial[SIM_SERIALS];
    uint32_t by_serial_count;
    struct at_barrier barrier[SIM_PLACES]; /* by place */
    uint64_t sums_sent, sums_acked;
    uint64_t newest_view, view_hash;
    uint32_t looks; /* full checks that were due */
    bool stirred;   /* an event since the last check may have changed rows */
    uint32_t newest_tables;
    uint32_t table_at[SIM_TABLES];   /* where views have it, as was found last */
    uint64_t holder[SIM_SERVERS];    /* incarnations of the servers, in the newest view */
    bool left[SIM_SERVERS];          /* the last server of this place had left without rows */
    bool recovered;                  /* a server has returned without its rows */
    uint64_t copies_at[SIM_SERVERS]; /* of the servers that are alive in it; 0: none */
    uint32_t gone;                   /* deaths since each partition had all its copies in a view */
    struct ring_chains chains;       /* of the newest view, as is ... */
    uint64_t owner_gone[RING_PARTITIONS];
    uint32_t successions; /* views in which partitions got another owner */

    uint64_t lacked; /* capabilities that a process has not had */

    char broken[512];
};

#define sim_must(err) ((void)((err) ? (abort(), 0) : 0))

#endif
