/*
 * A training that stops after some epochs and can continue: its job is paused in between, with its tables and
 * optimizers, on a thread of its own. So a trial that learns 3 epochs and then 4 more is a training of 7 epochs, bit
 * for bit if such a training has the same bits in each run (one worker, or --deterministic).
 *
 *     trial_run(3): waits | trial_run(7): waits
 *     job:          3 epochs, paused  | 4 epochs, paused ... ended by trial_free
 *
 * A learning-rate schedule spans the epochs that the job may learn at most, not those of one trial_run. Paused jobs may
 * share their rows with a running one. It never knows what is searched. Tests: test/learn/test_tune.c.
 */
#ifndef LEARN_TUNE_TRIAL_H
#define LEARN_TUNE_TRIAL_H

#include "learn/train/train.h"
#include "learn/tune/search.h"

struct trial;

/* Makes the job, which has not begun; it learns at most options->epochs epochs. What options point to must outlive the
 * trial. One process only. MEMORY; SYSTEM: its thread cannot be started. */
PARAMO_MUST_USE paramo_err trial_new(const struct train_options *options, struct trial **trial);
/* Learns until the job has learned `epochs` epochs in all, or has ended by itself, and waits for that. outcome is that
 * of all its epochs, except `seconds`, which are those of this call. *guess: the loss of the same guess for each row;
 * unchanged if it is not known. Not while another trial of the same rows runs. An error of the job is returned; a job
 * that diverged is an outcome, not an error. */
PARAMO_MUST_USE paramo_err trial_run(struct trial *trial, uint64_t epochs, struct tune_outcome *outcome,
                                     double *guess);
/* Adds the sums of the last epoch over the held-out rows to sums[MSUMS] (metric_sums.h). */
void trial_held_out(struct trial *trial, double *sums);
/* Ends the job and frees it. NULL is allowed. */
void trial_free(struct trial *trial);

#endif
