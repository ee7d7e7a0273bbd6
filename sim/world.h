/*
 * The inside of the simulator: a whole cluster in one thread. A machine is one process on a host of its own,
 * with its own clock, pauses and van. src/node's member slot builds it from the product's own scheduler,
 * members, acceptors, shards and clients. The script of its worker plays the application.
 *
 * Includes point down this list. What a module below has to tell one above goes through a table (struct app_ops).
 *
 *     play.c          one schedule from beginning to end: faults, steps, the calm period after them
 *     row_checks.c    the check of all tables, now and then
 *     script.c        the workers' application: its calls to the scheduler, and when it makes them
 *     client_tasks.c  what the application does on a thread of its own: it saves and loads tables
 *     user_tasks.c    user tasks: which node calls what, in which order, and what the functions do
 *     ops.c           its requests, and the server's handler
 *     invariants.c    what must hold after each event
 *     functions.c     functions of ranges, and what their results may be
 *     island.c        members of a chain and a client, cut off while others write what it reads
 *     machine.c       processes: start, crash, restart
 *     observing.c     the observers that readers have their views from
 *     ckpts.c         checkpoints of the job: saves, loads, and that the files are whole
 *     held.c          the model of what filters hold back at the workers
 *     ledger.c        the model of sums: what was pushed, acknowledged, cleared; what a pull may return
 *     copies.c        the rows as the shards have them
 *     losses.c        rows whose last copy has died, and that return to a checkpoint
 *     sums.c          the model of a table that aggregates: of which clock a push is, and what a read sees
 *     bounds.c        what a checkpoint must hold and may hold, and the model after it is loaded
 *     filters.c       the chains of filters that customers draw
 *     clocks.c        the clocks of customers: which end iterations and wait, and the model of what has ended
 *     task_judge.c    the model of user tasks: what has run where, and how calls may end
 *     deals.c         the model of the pool: which worker has which work unit
 *     memory.c        allocations of a process that fail
 *     hits.c          which faults have struck
 *     cover.c         (cover_sched.c, cover_impl.c) transitions of the product's state machines, and the faults before
 *     task_calls.c    the calls of user tasks, and what has run of each
 *     capabilities.c  the builds of processes: which capabilities they have
 *     reals.c         the model of values that filters round: as which sums they may be read
 *     call_ends.c     how calls to the scheduler may end
 *     judge.c         the verdict, and what follows from the views: which rows may be lost
 *     cells.c         the model of overwritten rows: which values a read may return
 *     ckpts_state.c   what is known of the job's checkpoints
 *     overdue.c       owners whose lease lasts too long, because of a bad clock
 *     sides.c         nodes that are cut off from the rest together
 *     migrate_fault.c partitions that get another owner under load
 *     world.h         the world; history.h, machine_state.h: the requests and rows, and the machines, in it
 *     fault.c         schedules
 *     disk.c, fiber.c the disk of a machine, and the application's thread on it
 *     assertion.c     assertions of the product that fail
 *
 * When memory runs out the simulator aborts: a result would mean nothing. Tests: test/sim/test_play.c.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdlib.h>

#include "sim/coverage.h"
#include "sim/env/sim.h"
#include "sim/env/simetcd.h"
#include "sim/env/simfs.h"
#include "sim/fault.h"
#include "sim/history.h"
#include "sim/machine_state.h"
#include "sim/play_counts.h"
#include "sim/van/simvan.h"

struct ckpts;
struct user_tasks;

/* The application on the machines, as the modules below it call it. play.c fills this table in. */
struct app_ops {
    /* A worker's process is up. */
    void (*start)(struct machine *m);
    /* It is about to die: the results of its calls and requests no longer count. */
    void (*stop)(struct machine *m);
    void (*joined)(struct machine *m);
    /* A request has ended, or a customer is open again. */
    void (*wake)(struct machine *m);
    /* A process has the view that its reader begins with; it has lost it. False: the reader is busy, and stays open. */
    void (*reader_opens)(struct machine *m);
    bool (*reader_closes)(struct machine *m);
    /* It issues requests, perhaps during a call to the scheduler. */
    bool (*works)(const struct machine *m);
    /* It has left. */
    bool (*over)(const struct machine *m);
    /* The process is dead and its customer closed: the client task ends here. */
    void (*task_dies)(struct machine *m);
    /* User tasks: before a server or worker joins, when it has, and when its process ends. */
    void (*tasks_start)(struct machine *m);
    void (*tasks_join)(struct machine *m);
    void (*tasks_end)(struct machine *m);
    /* Of each server; arg: its machine. */
    paramo_handler handler;
};

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

struct island {
    size_t waiting[SIM_ISLANDS]; /* faults that wait for a view that fits */
    unsigned count;
    uint64_t until;            /* it lasts until then; 0: there was none */
    bool still;                /* no other fault strikes while it lasts, for ISLAND_STILL events at most */
    uint64_t began;            /* the count of events then */
    uint32_t nodes;            /* its own, as bits */
    uint32_t reader;           /* the node of its client */
    bool only_reads;           /* a source holds changes back: the client issues none */
    uint64_t keys[SIM_TABLES]; /* what is read and written, as bits */
    /* In the middle of a migration: it waits until then for the commit; 0: it does not. */
    uint64_t commit_until;
    unsigned awaits; /* which of the faults */
    uint32_t source; /* the machine, and its shard */
    unsigned index;
    uint64_t shards; /* of the island's servers, as bits */
};

/* Each part names the modules that change it. */
struct world {
    const struct schedule *schedule;
    const struct app_ops *app;
    struct sim *sim;
    struct sim_turns turns;
    struct simnet *net;
    struct machine machines[SCHEDULE_NODES_MAX];
    uint32_t count;
    struct machine *workers; /* the first */
    struct simetcd *etcd;    /* schedule.meta */
    char broken[512];        /* judge.c: the first violation */
    uint64_t moment; /* the place in the order of beginnings and ends; each model takes the next one */
    uint32_t counts[PLAY_COUNTS_COUNT]; /* by the module that does what is counted */

    /* play.c: events and faults (hits.c: which have struck) */
    struct road links[SCHEDULE_NODES_MAX][SCHEDULE_NODES_MAX];
    struct simnet_node *nodes[SCHEDULE_NODES_MAX];
    uint64_t events;
    uint64_t instant, instant_events; /* the time of the last event, and how many there were at that time */
    uint64_t step;                    /* the place in the list of faults */
    size_t next_fault;
    size_t waiting; /* faults that wait for a packet */
    struct pending *pending;
    size_t struck;
    bool *hit; /* for each fault */
    /* memory.c: the moment when the server in this place last lacked memory */
    uint64_t memory_at[SIM_SERVERS];
    bool calm;              /* the faults are over, ... */
    uint64_t calm_since;    /* ... since then, or since the last checkpoint was loaded (ckpts.c) */
    bool scheduler_lost;    /* it is not started again */
    uint64_t jumped_at;     /* the moment when a node's clock jumped last */
    uint32_t jobs, disks;   /* jobs that have begun, and new disks of workers */
    uint32_t serial_before; /* serial, when this job began */

    /* sides.c, island.c */
    size_t amid[SIM_AMIDS]; /* faults that wait for a migration's pause */
    unsigned amid_count;
    uint32_t amid_source; /* the node that the last fault of these kinds has struck */
    struct island island;

    /* cover.c */
    struct coverage coverage;

    /* machine.c: the job */
    bool complete, over;
    uint64_t worker_changed[SIM_PLACES]; /* the moment when this place last became empty or was taken */
    bool term_told[SIM_TERMS];           /* a scheduler has started with this store */
    paramo_err over_status;
    uint64_t over_view; /* the newest view of the scheduler that said so */
    bool over_crashed;  /* its machine crashed as it emptied its store */
    bool emptying;      /* a scheduler empties its store at the end of its job, before it reports so */
    paramo_err emptying_status;
    bool end_durable; /* by a scheduler that has died: others find the end in its store */
    /* The view and the status at the end of the job before this one, which the store may still hold. */
    uint64_t past_view;
    paramo_err past_status;
    uint64_t lacked[SIM_SERVERS]; /* capabilities that a server of this job in that place has not had */
    uint32_t migrations;          /* changes of servers or weights (migrate_fault.c) */

    /* ckpts.c, bounds.c */
    struct ckpts *ckpts; /* NULL: the schedule has none */
    bool renew;          /* all processes are to die */
    bool loading; /* a checkpoint is being loaded, or was loaded only in part: rows may hold anything */
    /* the job begins with a checkpoint, and no worker has joined: servers may have no rows yet */
    bool restoring;
    uint64_t loaded_at; /* the moment of the last load */
    struct load_begun load_begun;

    /* ledger.c, reals.c, cells.c: the models of rows */
    struct ledger_table ledger[SIM_TABLES];
    uint32_t ring_shards;
    uint32_t deaths[SIM_SERVERS];                              /* of the server processes in each place */
    double reals_error[SIM_REAL_TABLES][SIM_KEYS][SIM_DIGITS]; /* how far each push is off at most */
    uint64_t sums_clock[SIM_KEYS][SIM_REAL_DIGITS];            /* of SIM_SUMS: the clock of each push */
    uint32_t sums_changing[SIM_KEYS];                          /* functions that may be changing the row */
    uint64_t sums_seen[SIM_KEYS]; /* digits that may be in the row before their clock has ended (sums.c) */
    struct cell cells[SIM_KEYS];  /* of SIM_CELLS */

    /* losses.c, overdue.c */
    uint64_t loss_first; /* lost_at of the view that began the present loss, or the last one */
    uint64_t loss_view;  /* lost_at of the newest view; not 0: lost rows are being restored */
    struct losses_untold untold;
    uint64_t loss_began;                  /* the moment when the last server was gone before that */
    uint64_t server_gone_at;              /* the moment when a server was last killed or declared dead */
    uint64_t given_up;                    /* the moment since which some lost rows do not return */
    uint64_t overdue_from, overdue_until; /* the first and the last moment of all overdue leases; 0: none */

    /* ops.c: requests */
    struct dice dice; /* the application's */
    struct op *free_ops;
    struct op *quarantine[SIM_QUARANTINE];
    unsigned quarantine_at;
    uint32_t serial; /* numbers requests, in all jobs */
    struct op *by_serial[SIM_SERIALS];
    uint32_t by_serial_count;

    struct user_tasks *tasks; /* user_tasks.c, task_judge.c; NULL: the schedule has none */

    /* script.c: calls to the scheduler; deals.c, clocks.c */
    bool gathered;                          /* the workers of this job have met at their first barrier */
    struct cell values[SCHEDULE_NODES_MAX]; /* small values at the scheduler, one of each worker */
    uint64_t values_put;
    struct at_barrier barrier[SIM_PLACES]; /* by place */
    uint64_t sums_sent, sums_acked;
    bool pool_leaks; /* a failed call may have got a work unit */
    struct deal deals[SIM_STREAMS][SIM_UNITS];
    struct dice clocks_dice;
    bool clocks;             /* its customers use clocks */
    uint64_t clocks_minimum; /* the highest that any of them has heard of */

    /* invariants.c: what the views say, and frames */
    uint64_t newest_view, view_hash, newest_view_at; /* the last: the moment when it came */
    uint32_t newest_tables;
    uint32_t etcd_term;               /* the scheduler that began to lead last */
    uint64_t term_view[SIM_TERMS];    /* of its views, the newest that any node has seen */
    uint64_t death_view[SIM_SERVERS]; /* the last view in which the server in this place had died */
    /* the moment of the last view in which a server had died, or another had come in its place */
    uint64_t lost_at;
    /* a server was alive that a view declared dead: it may not know, and acknowledge requests */
    uint64_t ghost_at;
    uint32_t dead;                /* judge.c: machines that a view has declared dead, by node, one bit each */
    bool deaths_seen;             /* a server was dead in a view */
    uint64_t holder[SIM_SERVERS]; /* incarnations of the servers, in the newest view */
    bool left[SIM_SERVERS];       /* the last server in this place had left without rows */
    bool recovered;               /* a server has returned without its rows */
    uint64_t copies_at[SIM_SERVERS]; /* incarnations of those that are alive in it; 0: none */
    uint32_t gone;                   /* deaths since each partition had all its copies in a view */
    struct ring_chains chains;       /* of the newest view, as is ... */
    uint64_t owner_gone[RING_PARTITIONS];
    uint32_t successions; /* views in which partitions got another owner */
    uint64_t answers;     /* that have arrived, except those to tasks */
    bool stirred;         /* an event since the last check may have changed rows (row_checks.c ends that) */

    /* row_checks.c, copies.c */
    uint32_t looks;                /* full checks that were due */
    uint32_t table_at[SIM_TABLES]; /* where views have it, as was found last */
};

/* The scheduler that leads, as far as the simulator can tell; NULL: none at present. */
struct scheduler *world_scheduler(const struct world *w);

#define sim_must(err) ((void)((err) ? (abort(), 0) : 0))

#endif
