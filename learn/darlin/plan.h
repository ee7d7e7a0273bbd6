/*
 * The plans of a DARLIN job: what all workers do next, and how the leader decides it.
 *
 *     LOAD --> PASS --> PASS --> ... --> PASS --> END --> DONE
 *        ^--AGAIN--^      ^--AGAIN--^
 *
 * LOAD: take parts of the data, and register their keys. PASS: step through all blocks of keys. Both end with sums
 * that the workers add up: rows, loss, penalty. If they do not cover all rows and keys, a worker has died. AGAIN: the
 * other workers take its parts and blocks, and add up again. END: the weights are final; the rows that are held out are
 * scored. DONE: the model is saved.
 *
 * A filtered pass leaves out keys whose weight is 0 and whose gradient is inside the penalty by a margin (the KKT
 * filter of Li et al., "Scaling Distributed Machine Learning with the Parameter Server", OSDI 2014, section 5.1). When
 * the filtered passes have converged, a full pass visits all keys. The job ends only after a full pass, if the relative
 * decrease of the objective is below epsilon, and either the sum of the violations is below a share of the first pass's
 * (JMLR 13, 2012, as in coordinate.h), or the decrease is below a tenth of epsilon: a job that continues a model begins
 * with small violations.
 *
 * Pure: it never knows of servers or clocks. Tests: test/learn/test_plan.c.
 */
#ifndef LEARN_DARLIN_PLAN_H
#define LEARN_DARLIN_PLAN_H

#include "learn/darlin/darlin_options.h"

#include <stddef.h>
#include <stdint.h>

#define PLAN_MEMBERS 1024 /* workers of one job; arbitrary */
/* Numbers of which the greatest is taken; more workers than this share them, and their numbers add up. */
#define PLAN_MAXIMA 64
#define PLAN_WAYS   8 /* step lengths along the direction of a pass (plan_way); the first is 0 */

enum plan_kind { PLAN_LOAD, PLAN_PASS, PLAN_AGAIN, PLAN_END, PLAN_DONE };

struct plan {
    uint32_t number; /* from 0, one more for each plan */
    enum plan_kind kind;
    uint32_t leader;   /* node id */
    uint32_t dead;     /* workers that were known to be dead */
    uint32_t blocks;   /* of keys, with that of the bias; 0: not known yet */
    uint64_t clock;    /* of all workers, when the plan begins */
    uint32_t passes;   /* that are over */
    int full;          /* of PASS: no key is left out */
    int fresh;         /* the owners of blocks have changed: weights are read again */
    int converged;     /* of END */
    double tolerance;  /* relative decrease below which a full pass follows; it shrinks to epsilon */
    double margin;     /* of the KKT filter */
    double damping;    /* of the steps: at least 1 */
    double rows, keys; /* of the whole job */
    double objective;  /* at the end of the last pass */
    double violation;  /* of the first pass */
    double way;   /* of PASS: before it, weights move further, by `way` times their change in the last pass */
    double guess; /* the margin of the best guess for all rows */
    uint32_t owners; /* workers that own blocks: block b is that of owner[b % owners] */
    uint16_t owner[PLAN_MEMBERS];
};

/* The sums over all workers, as doubles. */
enum plan_sum {
    PLAN_ROWS,
    PLAN_ENTRIES,
    PLAN_LOSS,                           /* for each way */
    PLAN_WEIGHT = PLAN_LOSS + PLAN_WAYS, /* of the rows */
    PLAN_POSITIVES,
    PLAN_TALLY,                              /* objective_ops.tally */
    PLAN_KEYS,                               /* that have an owner */
    PLAN_PENALTY,                            /* sum of l1 |w|, for each way */
    PLAN_NONZERO = PLAN_PENALTY + PLAN_WAYS, /* weights that are not 0 */
    PLAN_ACTIVE,                             /* keys that the pass visited */
    PLAN_VIOLATION,                          /* sum, and the number of keys that violated their condition */
    PLAN_VIOLATED,
    PLAN_SENT, /* bytes */
    PLAN_RECEIVED,
    PLAN_MOST,                              /* the greatest violation of each worker: PLAN_MAXIMA numbers */
    PLAN_DELAY = PLAN_MOST + PLAN_MAXIMA,   /* the most steps that a gradient lacked, likewise */
    PLAN_MEMBER = PLAN_DELAY + PLAN_MAXIMA, /* 1 for each worker that takes part */
    PLAN_SUMS = PLAN_MEMBER + PLAN_MEMBERS
};

/* The greatest of the PLAN_MAXIMA numbers from `first` on, PLAN_MOST or PLAN_DELAY. */
double plan_most(const double sums[PLAN_SUMS], enum plan_sum first);

/* A plan as it is kept at the scheduler. Doubles are exact for integers up to 2^53. */
enum { PLAN_DOUBLES = 20 + PLAN_MEMBERS };
void plan_encode(const struct plan *plan, double out[PLAN_DOUBLES]);
/* 0: these are no plan. */
int plan_decode(const double in[PLAN_DOUBLES], struct plan *plan);

/* The next plan, from the sums of this one. dead: workers that are known to be dead now. Not for END and DONE. The
 * caller sets leader, clock, blocks and keys. */
void plan_decide(const struct plan *plan, const double sums[PLAN_SUMS], uint32_t dead,
                 const struct darlin_options *options, double l1, struct plan *next);

/* Way number i: 0, then 1/2, 1, 2, 4 ... */
double plan_way(int i);

/* The order in which a pass visits the blocks: order[blocks]. It follows from the arguments alone. */
void plan_order(const struct plan *plan, const struct darlin_options *options, uint64_t seed,
                uint32_t *order);

#endif
