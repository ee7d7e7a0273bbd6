/*
 * What only the leader of a training job does: loading a model to go on from, and after each round sums,
 * validation, saving, the line on the screen, and whether to go on. Tests: test/learn/test_train.c.
 */
#ifndef LEARN_LEADER_H
#define LEARN_LEADER_H

#include "learn/job.h"

/* Puts model_in into the tables. */
LEARN_MUST_USE paramo_err leader_load(struct customer *c);
/* After a round: measures it, saves if it is time to, and says whether to go on. Without early stopping the
 * model is saved once, at the end; with it, after each epoch that is better than all before, so that the best
 * one stays. */
LEARN_MUST_USE paramo_err leader_finish_round(struct customer *c, uint32_t round, int *go_on);
/* The job was interrupted. Nothing is saved if nothing was learned, so that an older model stays; nor, with
 * early stopping, once the best epoch's model is: what came since was never validated. */
LEARN_MUST_USE paramo_err leader_save_interrupted(struct job *job);
/* What nobody asks for when the word of its end is out: before, a job that begins with a checkpoint of this
 * moment would want it. */
LEARN_MUST_USE paramo_err leader_forget_round(struct job *job, uint32_t round);
/* The job had ended when the checkpoint that it began with was taken: its model, if that is the last one. */
LEARN_MUST_USE paramo_err leader_save_ended(struct customer *c);
/* Workers that have died, into the result. */
void leader_count_dead(struct job *job);
/* Shows progress now and then: learner_options.tick. */
paramo_err leader_tick(void *customer, const struct watch_sums *sums, const paramo_part *at);

#endif
