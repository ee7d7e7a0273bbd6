/*
 * How far the learners of a job may be apart: asynchronous (asp), bulk-synchronous (bsp), or stale-synchronous with a
 * bound (ssp:S). A batch is an iteration of the learner's clock (paramo_clock). The pull of the learner's batch c
 * waits until all learners that count have reached clock c - S. A learner counts while it has a batch: not at the end
 * of a round, and not while other learners have the last parts. Workers that learn each batch together (train
 * --deterministic) count from their first batch to the end of the job. docs/CONSISTENCY.md.
 *
 * It never knows of batches' contents. Tests: test/learn/test_pace.c, test/e2e/consistency.sh.
 */
#ifndef LEARN_TRAIN_PACE_H
#define LEARN_TRAIN_PACE_H

#include "paramo/paramo.h"

#include <stdatomic.h>

enum {
    PACE_FREE = 0, /* asp */
    PACE_BOUND_MAX = 1 << 20,
    PACE_STALENESS = 17, /* sums for 0 to 15 clocks, and for more */
    PACE_TABLES = 8,     /* the model's tables; more are not counted */
    /* sums of the time that others waited for a worker; the last one is for all workers that have none */
    PACE_WORKERS = 64
};

/* The sums over a job's learners, as doubles. */
enum pace_sum {
    PACE_WAITS,
    PACE_SECONDS,
    PACE_STALE, /* batches, by the number of clocks that the learner was ahead of the slowest */
    PACE_AWAITED = PACE_STALE + PACE_STALENESS, /* seconds, by the worker that was waited for */
    PACE_AGES = PACE_AWAITED + PACE_WORKERS, /* pulls of each table by their age (paramo_table_clock_ages) */
    PACE_SUMS = PACE_AGES + PACE_TABLES * PARAMO_CLOCK_AGES
};
#define PACE_SUMS_KEY "train/pace"

struct pace {
    paramo_node *node;
    paramo_worker *worker;
    uint32_t bound; /* 1 more than the clocks that it may be ahead; PACE_FREE: any number */
    /* called every ten seconds of a wait */
    void (*slow)(void *arg, unsigned seconds, const char *why);
    void *arg;
    /* --deterministic: the number of learners that share each batch; 0: batches are not shared */
    uint32_t together;
    int embedded;               /* workers are the customers of one node */
    int counts;                 /* it has joined the clock */
    uint64_t next;              /* the clock of the batch that is pulled next */
    paramo_table *const *table; /* the model's */
    size_t tables;
    uint64_t aged[PACE_TABLES][PARAMO_CLOCK_AGES]; /* pulls by age that are in sum already */
    double sum[PACE_SUMS];
};

/* "asp", "bsp", "ssp:S". Returns 0, or -1 if it is none of them. */
int pace_parse(const char *text, uint32_t *bound);
/* Must some of the `unfinished` batches, which are pulled, be learned before the next one is pulled? */
int pace_holds(const struct pace *pace, uint64_t unfinished);
/* The next batch is ready: waits until it may be pulled. *stop ends the wait (INTERRUPTED). TIMEOUT after ten
 * minutes: the message names the workers that are behind. */
PARAMO_MUST_USE paramo_err pace_pull(struct pace *pace, const atomic_int *stop);
/* The batch's pushes are issued: ends the iteration. */
PARAMO_MUST_USE paramo_err pace_pushed(struct pace *pace);
/* No batch is ready, and all pushes are answered: leaves the clock, so that other learners do not wait. */
PARAMO_MUST_USE paramo_err pace_idle(struct pace *pace);
/* This learner has learned all its batches of the round, and has added its sums. Learners that share batches wait for
 * each other. leads: also checks that all of them are there. The others stay until the leader has announced how the
 * job continues. */
PARAMO_MUST_USE paramo_err pace_round_over(struct pace *pace, const atomic_int *stop, int leads);
/* Brings sum up to date. */
void pace_collect(struct pace *pace);
/* Adds the sums so far to the job's. */
PARAMO_MUST_USE paramo_err pace_report(struct pace *pace);

#endif
