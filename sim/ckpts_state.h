/*
 * What is known of the job's checkpoints: those whose manifests have existed, saves in progress, loads that failed.
 * ckpts.c writes it. It must never read a file. Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_CKPTS_STATE_H
#define SIM_CKPTS_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/member/member_calls.h"
#include "sim/history.h"

struct world;
struct machine;
struct bounds;

/* A checkpoint whose manifest has existed. */
struct ckpt_seen {
    struct ckpt_seen *next;
    uint64_t number;
    bool there, promised; /* there: it still exists; promised: it was reported to a caller */
    bool loadable;        /* it was there when the last load was asked for, or has come since */
    bool has_all;         /* it has all tables that checkpoints have */
    /* A load may have made rows what they are in it, for reads that began before this moment; UINT64_MAX: a load that
     * may do so has not ended; 0: none may have. */
    uint64_t until;
    struct bounds *bounds;
};

struct ckpts {
    struct simfs *files;
    char dir[16];
    struct dice dice;
    uint64_t steps;                     /* of the files, when they were checked */
    struct ckpt_seen *seen;             /* newest first */
    struct bounds *begun[2];            /* of each scheduler; NULL: it runs none */
    uint64_t begun_at[2];               /* the moments when these began */
    uint64_t begun_id[2];               /* of which checkpoint; 0: none */
    uint64_t asked_moment;              /* of the last call, ... */
    uint32_t asked_term;                /* ... the highest term of a scheduler then, ... */
    uint32_t asked_deaths[SIM_SERVERS]; /* ... the servers that had died, ... */
    /* ... and of each scheduler its term, the number of servers that it had replaced, ... */
    uint32_t asked_leads[2], asked_replaced[2];
    /* a server's death came to a scheduler since the call; that scheduler may have died since */
    bool death_came;
    /* ... and the servers that it had declared dead (incarnations by place) */
    uint64_t asked_dead[2][SIM_SERVERS];
    uint64_t orders_full_at; /* the moment when a server last had as many unfinished orders as it may have */
    uint64_t power_at;       /* the moment when the power of the folder's machine failed last */
    uint64_t lied_at;        /* the moment when the disk lost what a sync had called durable */
    uint64_t struck;         /* faults of the files (simfs_struck) */
    uint64_t failed_at;      /* the moment when an operation failed last; 0: none has */
    uint64_t restored;       /* this job began with that one; 0: with empty tables */
    uint32_t tries[2];       /* of its load that have failed, by each scheduler */
    bool replaced;           /* a load has begun to replace rows since one last succeeded */
    uint64_t load_lost_at;   /* the moment when a shard last had lost rows after that */
    /* the moment of a load of a checkpoint without the table, whose rows may have been lost by then; 0: none */
    uint64_t left_lost[SIM_TABLES];
    struct machine *asks; /* the worker that waits for an answer, ... */
    uint64_t asked_at;    /* ... since this time of its clock */
    bool load;
    /* the last that had to exist when a load of the last one was tried, since a load succeeded */
    uint64_t load_least;
    uint64_t load_number, least; /* the number that was asked for; the last that must exist */
    struct member_call call;
    struct load_attempt attempt;
    uint32_t load_term;  /* the term of the newest view at the request */
    uint64_t returns;    /* the checkpoint to which lost rows return, until a view says that they have */
    uint64_t returns_at; /* the view of the loss for which the scheduler has chosen it */
    /* the moment when a load succeeded although another scheduler led by then than at the request */
    uint64_t restarted_at;
    struct machine *again; /* the worker whose load failed last; it tries again if it is alive */
    uint64_t again_process;
    uint64_t again_at;
    bool calm_saved, calm_loaded;
};

/* The checkpoint of that number; NULL: none has been seen. */
struct ckpt_seen *ckpts_seen(const struct ckpts *c, uint64_t number);
/* The last one that exists; promised: of those that were reported to a caller. NULL: there is none. */
struct ckpt_seen *ckpts_last(const struct ckpts *c, bool promised);
/* The moment from which on earlier values of cells are still needed. */
uint64_t ckpts_oldest(const struct world *w);
/* Some rows of the table may be lost since that moment, because a checkpoint was loaded only in part. */
bool ckpts_may_have_lost(const struct world *w, enum sim_table table, uint64_t from);
/* The same, and the load that succeeded since then was of a checkpoint without the table. */
bool ckpts_left_lost(const struct world *w, enum sim_table table, uint64_t from);
/* Is there a checkpoint to which lost rows may return? */
bool ckpts_there(const struct world *w);
/* A view says that the rows are restored. */
void ckpts_returned(struct world *w);
/* Will the restore succeed: is a server left to do it, and is the folder intact? */
bool ckpts_can_return(const struct world *w);
/* The job has begun with a checkpoint. */
bool ckpts_restored(const struct world *w);

#endif
