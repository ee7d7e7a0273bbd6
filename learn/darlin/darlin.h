/*
 * --solver darlin: a customer's whole part in a job that minimizes
 *
 *     sum over rows of weight (log(1 + e^m) - y m)  +  l1 sum over keys of |w|         y is 0 or 1
 *
 * which is 1 / C times the objective of `liblinear-train -s 6` with C = 1 / l1. plan.h says which steps there are, and
 * solver.h what a worker does in a pass. This file joins them: all workers run the same plans, and the leader
 * (learn/train/lead.h) adds up, decides, and saves. Plans and sums are values at the scheduler, so when a leader dies,
 * another one continues. Clocks begin at 0 and advance alike in all workers; a worker that joins later skips the
 * running plan.
 *
 * It never knows the arithmetic of a step. Tests: test/learn/test_darlin.c, test/e2e/darlin.sh.
 */
#ifndef LEARN_DARLIN_DARLIN_H
#define LEARN_DARLIN_DARLIN_H

#include "learn/train/job.h"

/* Runs the job to its end, for a customer that has its worker and its tables. If this process leads, fills in the
 * result and saves the model. INTERRUPTED as train_run. */
PARAMO_MUST_USE paramo_err darlin_run(struct customer *c);
/* The job was interrupted: the leader saves the weights as they are, unless the first pass is not over. */
PARAMO_MUST_USE paramo_err darlin_save_interrupted(struct job *job);

#endif
