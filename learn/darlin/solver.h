/*
 * One worker of a DARLIN job: the parts of the data that it holds, by column, and its side of a pass over the blocks
 * (Algorithm 3 of Li et al., "Scaling Distributed Machine Learning with the Parameter Server", OSDI 2014).
 *
 * Two tables on the servers, of doubles: darlin_w has weight and reach of each key, darlin_g the sums over all
 * workers of gradient and curvature bound (coordinate.h). A reach with its sign bit set says that passes leave the
 * key out until the next full one. Block b is owned by one worker, which makes its steps: no other writes these rows
 * of darlin_w.
 *
 * With delay tau, slot s of a pass over B blocks (s = 0 .. B + tau) is, for each worker:
 *
 *     1. update s - tau - 1 is complete (clock): pull that block's weights, and change the rows' margins
 *     2. gradient and bounds of block order[s]: push them                                    tick
 *     3. as the owner of block order[s - lag]: all workers have pushed it (clock): pull the sums, make the step, push
 *        weights, and take the sums away                                                     tick       lag = tau / 2
 *
 * So a gradient lacks min(s, tau) steps, in every run the same, and no worker is more than tau - lag slots ahead.
 * With one worker two runs give the same bits; with tau = 0 those of block coordinate descent in a row. Clocks are
 * those of paramo_clock: a worker that dies holds the others up until its death is known. Then a pass ends without
 * its rows and steps, and plan.h makes that good.
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
    uint32_t place;    /* among the workers, below PLAN_MEMBERS; in each process the same */
    const atomic_int *stop;
    /* called every ten seconds of a wait */
    void (*slow)(void *arg, unsigned seconds, const char *why);
    void *arg;
};

/* The tables are made if they do not exist. */
PARAMO_MUST_USE paramo_err solver_new(const struct solver_options *options, struct solver **solver);
/* After paramo_worker_close, or when no request is in flight. */
void solver_free(struct solver *solver);
paramo_table *solver_weights(const struct solver *solver);
paramo_table *solver_sums(const struct solver *solver);

/* Takes parts that no worker holds, until none is free. wait_ms: looks that long for a first one. */
PARAMO_MUST_USE paramo_err solver_take(struct solver *solver, uint32_t wait_ms);
/* Registers the keys of new parts, and reads the weights of all. counts: adds to the sums how many entries a key
 * has. */
PARAMO_MUST_USE paramo_err solver_refresh(struct solver *solver, int counts);
/* Finds the keys of the blocks that it owns. first[plan->blocks]: the least key of each block. */
PARAMO_MUST_USE paramo_err solver_own(struct solver *solver, const struct plan *plan, const uint64_t *first);
/* One pass. INTERRUPTED: stop is set. */
PARAMO_MUST_USE paramo_err solver_pass(struct solver *solver, const struct plan *plan);
/* Ticks of a pass. */
uint64_t solver_ticks(const struct plan *plan, const struct darlin_options *options);
/* Its part of the sums. */
void solver_sum(struct solver *solver, double sums[PLAN_SUMS]);
/* Waits until all workers have reached that clock. */
PARAMO_MUST_USE paramo_err solver_wait(struct solver *solver, uint64_t clock);
/* The parts that it holds: call with i = 0, 1, ... Returns 0 after the last. */
int solver_part(const struct solver *solver, size_t i, paramo_work_unit *unit);

#endif
