/*
 * Work that only the leader of a training job does: it begins the job, or takes over from a dead leader. After each
 * round it adds up the sums, validates, saves the model, prints the line of progress, and decides whether to continue.
 * It never knows how a batch is learned. Tests: test/learn/test_train.c.
 */
#ifndef LEARN_TRAIN_LEADER_H
#define LEARN_TRAIN_LEADER_H

#include "learn/train/lead.h"

/* Begins the job. If it begins with a checkpoint (*restored), it continues where the checkpoint was taken, by the
 * leader's word of that time. So does a job whose first leader died before everything was ready. *go_on: enum
 * lead_goes. */
PARAMO_MUST_USE paramo_err leader_begin(struct job *job, int *restored, int *go_on);
/* A worker that does not lead has received this word. Keeps the figures of the epoch that is over: this worker may be
 * the next leader. */
PARAMO_MUST_USE paramo_err leader_hear(struct job *job, const struct words *words);
/* This process leads now, in place of one that has died. *words: the newest word. */
PARAMO_MUST_USE paramo_err leader_take_over(struct job *job, struct words *words);
/* Prints a line of progress: this process leads, and another one did before. */
void leader_announce(struct job *job);
/* The word to put when `round` begins, or is interrupted. */
void leader_words(const struct job *job, uint32_t round, int go_on, struct words *words);
/* After a round: measures the model, saves it if a save is due, decides whether to continue, and tells the others. If
 * this leader dies at any step, the next leader does all of it. */
PARAMO_MUST_USE paramo_err leader_end_round(struct customer *c, uint32_t round, int *go_on);
/* The job was interrupted: saves the model. An older model stays if no row was learned. The best epoch's model stays,
 * too, if it was saved, because the rows after it were never measured. */
PARAMO_MUST_USE paramo_err leader_save_interrupted(struct job *job);
/* Deletes the values of a round, after its end is announced: until then, a job that begins with a checkpoint of this
 * moment needs them. */
PARAMO_MUST_USE paramo_err leader_forget_round(struct job *job, uint32_t round);
/* Puts the model's settings where readers of the running job find them (shared_model.h). */
PARAMO_MUST_USE paramo_err leader_share(struct customer *c);
/* Saves the model to --model-out, if that is given. */
PARAMO_MUST_USE paramo_err leader_save(struct customer *c);
/* The job had ended when the checkpoint that it began with was taken. Saves its model, unless there is a best epoch,
 * whose model is saved already. */
PARAMO_MUST_USE paramo_err leader_save_ended(struct customer *c);
/* Counts the workers that have died, for the result. */
void leader_count_dead(struct job *job);
/* Shows progress now and then: learner_options.tick. */
paramo_err leader_tick(void *customer, const struct watch_sums *sums, const paramo_work_unit *at);

#endif
