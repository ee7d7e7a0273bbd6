/*
  * Work that only the leader of a training job does. It takes the place of the leader, and after each round it sums up,
 * validates, saves the model, prints the line, and decides whether to continue. Tests: test/learn/test_train.c.
 */
#ifndef LEARN_TRAIN_LEADER_H
#define LEARN_TRAIN_LEADER_H

#include "learn/train/lead.h"

/* A job that begins with a checkpoint (*restored) goes on where that was taken, by the word of then; so does
 * one whose first leader has died before all was ready. *go_on: of lead_goes. */
PARAMO_MUST_USE paramo_err leader_begin(struct job *job, int *restored, int *go_on);
/* Another has heard this word: what the next leader should know of an epoch that is over. */
PARAMO_MUST_USE paramo_err leader_hear(struct job *job, const struct words *words);
/* This process leads now, in place of one that has died; *words: where the job is. */
PARAMO_MUST_USE paramo_err leader_take_over(struct job *job, struct words *words);
/* A line of progress: it does, and another did before. */
void leader_announce(struct job *job);
/* What is to be put when `round` begins, or is interrupted. */
void leader_words(const struct job *job, uint32_t round, int go_on, struct words *words);
/* After a round: measures it, saves if it is time to, says whether to go on, and tells the others. One that
 * died at any step of this leaves all of it to the next leader. */
PARAMO_MUST_USE paramo_err leader_end_round(struct customer *c, uint32_t round, int *go_on);
/* The job was interrupted. Nothing is saved if nothing was learned, so that an older model stays. Nothing
 * is saved either after the best epoch's model is saved, because later rows were never measured. */
PARAMO_MUST_USE paramo_err leader_save_interrupted(struct job *job);
/* Deletes the values of a round, after its end is announced. Before that, a job that begins with a checkpoint
 * of this moment would need them. */
PARAMO_MUST_USE paramo_err leader_forget_round(struct job *job, uint32_t round);
/* Puts the model's settings where readers of the job find them (shared_model.h). */
PARAMO_MUST_USE paramo_err leader_share(struct customer *c);
/* Saves the model to --model-out, if that is given. */
PARAMO_MUST_USE paramo_err leader_save(struct customer *c);
/* The job had ended when the checkpoint that it began with was taken: its model, if that is the last one. */
PARAMO_MUST_USE paramo_err leader_save_ended(struct customer *c);
/* Workers that have died, into the result. */
void leader_count_dead(struct job *job);
/* Shows progress now and then: learner_options.tick. */
paramo_err leader_tick(void *customer, const struct watch_sums *sums, const paramo_work_unit *at);

#endif
