/*
 * A training job, as one process sees it: joins the cluster (or is all of it), runs its learners, and, if it is the
 * leader, validates after each epoch, decides whether to continue, and saves the model.
 *
 *     every customer:  round of learning | wait for the leader's word          | next round ...
 *     the leader:      round of learning | sums, validation, saving, the word  |
 *
 * The leader is customer 0 of the worker of rank 0 or, when that worker dies, of another one (lead.h). A round ends
 * when every part has been reported done to the scheduler. So no barrier is needed, and the other workers learn the
 * parts of a dead one. Without DMLC_ROLE in the environment the process is the whole cluster (embedded), with `workers`
 * customers, each on its own thread. train_options.h has its options, train_result.h its result. It never knows how a
 * batch is learned. Tests: test/learn/test_train.c, test/e2e/train.sh, leader*.sh.
 */
#ifndef LEARN_TRAIN_TRAIN_H
#define LEARN_TRAIN_TRAIN_H

#include "learn/train/train_options.h"
#include "learn/train/train_result.h"

/* Runs the job to its end. INTERRUPTED: train_interrupt was called; the result is valid and says whether the
 * model was saved. A scheduler or server process returns when the job is over. */
PARAMO_MUST_USE paramo_err train_run(const struct train_options *options, struct train_result *result);
/* Ends the running job after the current batches; async-signal-safe. Returns 1; 0: no learning has begun yet, so there
 * is nothing to end cleanly; 2: this process is a scheduler or server, which leaves; 3: a preparation (train_prepares)
 * runs, and ends soon. */
int train_interrupt(void);
/* 1: a preparation of a training begins, and asks train_interrupted whether to end. 0: it is over. */
void train_prepares(int prepares);
/* Was train_interrupt called? Any thread. */
int train_interrupted(void);

#endif
