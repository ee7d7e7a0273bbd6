/*
 * The folds of a cross-validation: each is a job in this process, and they learn their epochs in step. A job is
 * measured on the rows of its own fold, and learns the other rows. The losses of an epoch are summed over all rows.
 *
 *     folds_run(2): fold 0, fold 1, fold 2 learn epoch 1; then epoch 2; they are paused   |  folds_run(5): epoch 3 ...
 *
 * Epochs have more and more passes (train_passes). It never knows why rows are cross-validated, or what is searched.
 * Tests: test/learn/test_crossval.c, test/e2e/tune.sh.
 */
#ifndef LEARN_TUNE_FOLDS_H
#define LEARN_TUNE_FOLDS_H

#include "learn/train/train.h"
#include "learn/tune/search.h"

/* Bytes of text: each small file is one part, because rows are shuffled within a part. */
#define FOLDS_PART_BYTES (64u << 20)

struct folds;

/* Makes n jobs, up to HOLDOUT_FOLDS_MAX, which have not begun, for at most `epochs` epochs. What options point to must
 * outlive them. They save no model. MEMORY; SYSTEM: a thread cannot be started. */
PARAMO_MUST_USE paramo_err folds_new(const struct train_options *options, unsigned n, uint32_t epochs,
                                     struct folds **folds);
/* Learns until all folds have learned `epochs` epochs in all, or have ended: after the most epochs, after some epochs
 * without a lower loss, or when a fold has diverged. outcome: the lowest loss of all epochs so far, infinite if there
 * is none; its `seconds` are those of this call. An error of a job ends the call. INTERRUPTED: train_interrupt. One
 * thread at a time. */
PARAMO_MUST_USE paramo_err folds_run(struct folds *folds, uint64_t epochs, struct tune_outcome *outcome);
/* The metrics after each epoch so far, over the rows of all folds; valid until folds_free. */
const struct metrics_result *folds_epochs(const struct folds *folds);
/* Ends the jobs. NULL is allowed. */
void folds_free(struct folds *folds);

#endif
