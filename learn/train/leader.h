/*
  * Work that only the leader of a training job does. It takes the place of the leader, and after each round it sums up,
 * validates, saves the model, prints the line, and decides whether to continue. Tests: test/learn/test_train.c.
 */
#ifndef LEARN_TRAIN_LEADER_H
#define LEARN_TRAIN_LEADER_H

#include "learn/train/lead.h"

/* A job that begins with a checkpoint (*restored) continues where the checkpoint was taken, by the leader's word of
 * that time. So does a job whose first leader has died before everything was ready. *go_on: of lead_goes. */
PARAMO_MUST_USE paramo_err leader_begin(struct job *job, int *restored, int *go_on);
/* A worker that does not lead has received this word: keeps what the next leader needs to know of an epoch that is
 * over. */
PARAMO_MUST_USE paramo_err leader_hear(struct job *job, const struct words *words);
/* This process leads now, in place of one that has died; *words: where the job is. */
PARAMO_MUST_USE paramo_err leader_take_over(struct job *job, struct words *words);
/* Prints a line of progress: this process leads, and another one did before. */
void leader_announce(struct job *job);
/* The words to put when `round` begins, or is interrupted. */
void leader_words(const struct job *job, uint32_t round, int go_on, struct words *words);
/* After a round: measures the model, saves it if a save is due, decides whether to continue, and tells the others. If
 * this leader dies at any step, the next leader does all of it. */
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
