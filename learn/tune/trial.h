/*
 * A training that stops after some epochs and can continue: its job stands still in between, with its tables and
 * optimizers, on a thread of its own. So a trial that learns 3 epochs and then 4 more is the training of 7, bit for
 * bit where that training itself has the same bits in each run (one worker, or --deterministic).
 *
 *     trial_run(3): waits | trial_run(7): waits
 *     job:          3 epochs, stands still  | 4 epochs, stands still ... ended by trial_free
 *
 * A learning-rate schedule spans the epochs that the job may learn at most, not those of one trial_run. Jobs that stand
 * still may share their rows with one that runs. Tests: test/learn/test_tune.c.
 */
#ifndef LEARN_TUNE_TRIAL_H
#define LEARN_TUNE_TRIAL_H

#include "learn/train/train.h"
#include "learn/tune/search.h"

struct trial;

/* Makes the job, which has not begun; options->epochs are those that it may learn at most. What options point to must
 * outlive the trial. One process only. MEMORY, SYSTEM: its thread cannot be started. */
PARAMO_MUST_USE paramo_err trial_new(const struct train_options *options, struct trial **trial);
/* Learns until the job has had that many epochs, or has ended by itself, and waits for it. outcome is of all its
 * epochs, `seconds` of this call. *guess: loss of the same guess for each row, unchanged if it is not known. Not
 * while another trial of the same rows runs. The error of the job ends it; one that diverged is an outcome, and no
 * error. */
PARAMO_MUST_USE paramo_err trial_run(struct trial *trial, uint64_t epochs, struct tune_outcome *outcome,
                                     double *guess);
/* Adds what the last epoch measured on the held-out rows to sums[MSUMS] (metric_sums.h). */
void trial_held_out(struct trial *trial, double *sums);
/* Ends the job and frees it. NULL is allowed. */
void trial_free(struct trial *trial);

#endif
