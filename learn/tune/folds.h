/*
 * The folds of a cross-validation: as many jobs in this process, which learn their epochs in step. Each is measured
 * on the rows of its own fold, and learns the others'. The losses of an epoch are summed over all rows.
 *
 *     folds_run(2): fold 0, fold 1, fold 2 learn epoch 1; then epoch 2; they stand still  |  folds_run(5): epoch 3 ...
 *
 * Epochs have more and more passes (train_passes). It never knows why rows are cross-validated, or what is searched.
 * Tests: test/learn/test_crossval.c, test/e2e/tune.sh.
 */
#ifndef LEARN_TUNE_FOLDS_H
#define LEARN_TUNE_FOLDS_H

#include "learn/train/train.h"
#include "learn/tune/search.h"

#define FOLDS_PART_BYTES (64u << 20) /* of text: rows of a part are shuffled, so each file is one */

struct folds;

/* Makes the jobs, which have not begun: n of them, up to HOLDOUT_FOLDS_MAX, for at most that many epochs. What
 * options point to must outlive them. Nothing is saved. MEMORY, SYSTEM: a thread cannot be started. */
PARAMO_MUST_USE paramo_err folds_new(const struct train_options *options, unsigned n, uint32_t epochs,
                                     struct folds **folds);
/* Learns until all folds have had that many epochs, or have ended: after the most epochs, some epochs without a lower
 * loss, or when one has diverged. outcome: the lowest loss of all epochs so far, infinite if there is none; `seconds`
 * of this call. An error of a job ends it. INTERRUPTED: train_interrupt. One thread at a time. */
PARAMO_MUST_USE paramo_err folds_run(struct folds *folds, uint64_t epochs, struct tune_outcome *outcome);
/* What was measured after each epoch that was learned, over the rows of all folds; valid until folds_free. */
const struct metrics_result *folds_epochs(const struct folds *folds);
/* Ends the jobs. NULL is allowed. */
void folds_free(struct folds *folds);

#endif
