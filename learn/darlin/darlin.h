/*
 * --solver darlin: a customer's whole part in a job that minimizes
 *
 *     sum over rows of weight (log(1 + e^m) - y m)  +  l1 sum over keys of |w|         y is 0 or 1
 *
 * which is 1 / C times the objective of `liblinear-train -s 6` with C = 1 / l1. plan.h says which steps there are,
 * solver.h what a worker does in a pass. This file joins them: all workers run the same plans, and the leader
 * (learn/train/lead.h) adds up, decides, and saves. Plans and sums are values at the scheduler, so another leader
 * continues where one dies. Clocks begin at 0 and advance alike in all workers; one that joins later idles to the end
 * of the running plan.
 *
 * Tests: test/learn/test_darlin.c, test/e2e/darlin.sh.
 */
#ifndef LEARN_DARLIN_DARLIN_H
#define LEARN_DARLIN_DARLIN_H

#include "learn/train/job.h"

/* From the time when the customer has its worker and its tables, to the end of the job. If this process leads, the
 * result is filled in and the model saved. INTERRUPTED as train_run. */
PARAMO_MUST_USE paramo_err darlin_run(struct customer *c);
/* The job was interrupted: the leader saves the weights as they are. Nothing is saved before the first pass is over. */
PARAMO_MUST_USE paramo_err darlin_save_interrupted(struct job *job);

#endif
