/*
 * One worker of a DARLIN job: the parts of the data that it holds, by column, and its side of a pass over the blocks
 * (Algorithm 3 of Li et al., "Scaling Distributed Machine Learning with the Parameter Server", OSDI 2014).
 *
 * Two tables on the servers, of doubles: darlin_w has the weight and reach of each key, darlin_g the sums over all
 * workers of its gradient and curvature bound (coordinate.h). If the sign bit of a reach is set, passes leave the key
 * out until the next full one. One worker owns block b and makes its steps: no other writes these rows of darlin_w.
 *
 * With delay tau, slot s of a pass over B blocks (s = 0 .. B + tau) is, for each worker:
 *
 *     1. update s - tau - 1 is complete (clock): pull that block's weights, and change the rows' margins
 *     2. gradient and bounds of block order[s]: push them                                    tick
 *     3. as the owner of block order[s - lag]: all workers have pushed it (clock): pull the sums, make the step, push
 *        weights, and subtract the sums                                                      tick       lag = tau / 2
 *
 * So a gradient lacks min(s, tau) steps, the same in every run, and no worker is more than tau - lag slots ahead.
 * With one worker, two runs give the same bits; with tau = 0 these are the bits of sequential block coordinate descent.
 * Clocks are those of paramo_clock: when a worker dies, the others wait until its death is known. The pass then ends
 * without its rows and steps, and the next plans repair that (plan.h).
 *
 * One thread. It never knows of the leader, models or files. Tests: test/learn/test_darlin.c.
 */
#ifndef LEARN_DARLIN_SOLVER_H
#define LEARN_DARLIN_SOLVER_H

#include "learn/darlin/plan.h"
#include "learn/darlin/window.h"
#include "learn/data/reader.h"

#include "paramo/paramo.h"

#include <stdatomic.h>

#define SOLVER_POOL    "train/darlin"
#define SOLVER_WEIGHTS "darlin_w"
#define SOLVER_SUMS    "darlin_g"

struct solver;

struct solver_options {
    paramo_node *node;
    paramo_worker *worker;
    struct reader *reader;
    struct darlin_options darlin;
    double l1;
    uint64_t seed;
    uint32_t customer; /* customer id, for the pool */
    uint32_t place;    /* its rank, or in one process its customer id; below PLAN_MEMBERS */
    const atomic_int *stop;
    /* called every ten seconds of a wait */
    void (*slow)(void *arg, unsigned seconds, const char *why);
    void *arg;
};

/* Creates the tables if they do not exist. */
PARAMO_MUST_USE paramo_err solver_new(const struct solver_options *options, struct solver **solver);
/* After paramo_worker_close, or when no request is in flight. */
void solver_free(struct solver *solver);
paramo_table *solver_weights(const struct solver *solver);
paramo_table *solver_sums(const struct solver *solver);

/* Takes parts that no worker holds, until no part is free. wait_ms: how long it waits for the first one. */
PARAMO_MUST_USE paramo_err solver_take(struct solver *solver, uint32_t wait_ms);
/* Registers the keys of new parts, and reads the weights of all its keys. counts: adds the number of entries of each
 * key to the table of sums. */
PARAMO_MUST_USE paramo_err solver_refresh(struct solver *solver, int counts);
/* Finds the keys of the blocks that it owns. first[plan->blocks]: the least key of each block. */
PARAMO_MUST_USE paramo_err solver_own(struct solver *solver, const struct plan *plan, const uint64_t *first);
/* One pass. INTERRUPTED: stop is set. */
PARAMO_MUST_USE paramo_err solver_pass(struct solver *solver, const struct plan *plan);
/* Ticks of the clock in a pass. */
uint64_t solver_ticks(const struct plan *plan, const struct darlin_options *options);
/* Its part of the sums. */
void solver_sum(struct solver *solver, double sums[PLAN_SUMS]);
/* Waits until all workers have reached `clock`. */
PARAMO_MUST_USE paramo_err solver_wait(struct solver *solver, uint64_t clock);
/* The parts that it holds: call with i = 0, 1, ... Returns 0 after the last. */
int solver_part(const struct solver *solver, size_t i, paramo_work_unit *unit);

#endif
