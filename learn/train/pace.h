/*
 * How far the learners of a job may be apart: asynchronous (asp), bulk-synchronous (bsp), or stale-synchronous with a
 * bound (ssp:S). A batch is an iteration of the learner's clock (paramo_clock). The pull of the learner's batch c
 * waits until all learners that count have reached clock c - S, and so does the learner itself. A learner counts while
 * it has a batch: not at the end of a round, and not while others hold the last parts. Workers that learn each
 * batch together (train --deterministic) count from the first batch of all to the end of the job.
 * docs/CONSISTENCY.md.
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
    PACE_STALENESS = 17, /* from 0 to 15 clocks, and more */
    PACE_TABLES = 8,     /* the model's tables; more are not counted */
    /* workers with a sum of their own for the time that others waited for them; the last sum is for all others */
    PACE_WORKERS = 64
};

/* What is summed over a job's learners, as doubles. */
enum pace_sum {
    PACE_WAITS,
    PACE_SECONDS,
    PACE_STALE, /* batches by how many clocks the learner was ahead of the last */
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
    /* how many learners share each batch, from the first to the last; 0: they do not share any */
    uint32_t together;
    int embedded;               /* workers are the customers of one node */
    int counts;                 /* it has a clock */
    uint64_t next;              /* the clock of the batch that is pulled next */
    paramo_table *const *table; /* the model's */
    size_t tables;
    uint64_t aged[PACE_TABLES][PARAMO_CLOCK_AGES]; /* pulls by age that are in sum already */
    double sum[PACE_SUMS];
};

/* "asp", "bsp", "ssp:S". Returns 0, or -1 if it is none of them. */
int pace_parse(const char *text, uint32_t *bound);
/* Must batches that are pulled be learned before the next is pulled? unfinished: how many of these there are. */
int pace_holds(const struct pace *pace, uint64_t unfinished);
/* Waits until the next batch, which is ready, may be pulled. *stop ends the wait (INTERRUPTED). TIMEOUT after ten
 * minutes: the message names the workers that are behind. */
PARAMO_MUST_USE paramo_err pace_pull(struct pace *pace, const atomic_int *stop);
/* The batch's pushes are issued. */
PARAMO_MUST_USE paramo_err pace_pushed(struct pace *pace);
/* No batch is ready, and all pushes are answered. */
PARAMO_MUST_USE paramo_err pace_idle(struct pace *pace);
/* All batches of the round are learned by this learner, and its sums are added. Those that learn together wait for
 * each other. leads: the others stay until this one has announced how the job continues, so it notices if one is
 * missing. */
PARAMO_MUST_USE paramo_err pace_round_over(struct pace *pace, const atomic_int *stop, int leads);
/* Brings sum up to date. */
void pace_collect(struct pace *pace);
/* Adds the sums so far to the job's. */
PARAMO_MUST_USE paramo_err pace_report(struct pace *pace);

#endif
