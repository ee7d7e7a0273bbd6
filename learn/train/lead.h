/*
 * Which worker leads a training job, and the leader's messages to the others.
 *
 * The leader holds part 0 of the pool "train/lead". The scheduler leases a part for its holder's life: when
 * the holder dies, or is silent and declared dead, the part goes to the next worker that asks, and the old
 * holder's requests are refused from then on (paramo/paramo.h, data assignment). So at most one worker
 * decides, saves and writes messages at any time. A former leader that was stopped and resumes can change
 * nothing at the scheduler or the servers (modelio.h has the same for files).
 *
 * The messages ("words") are small values at the scheduler. NOW is the newest one. There is also one for the end of
 * each round, and the other workers wait for it. A word contains all that the next leader needs to continue. Writing a
 * round's word ends the round, in one step. Until then a new leader repeats the end of the round: no worker pushes
 * then, so sums, validation and model are the same.
 *
 * A job in one process is always led by customer 0. It never knows how a model is learned. Tests:
 * test/learn/test_leading.c, test/e2e/leader*.sh.
 */
#ifndef LEARN_TRAIN_LEAD_H
#define LEARN_TRAIN_LEAD_H

#include "learn/train/job.h"

enum lead_goes { ENDED, GOES_ON, INTERRUPTED /* a job that begins with a checkpoint continues */ };

#define LEAD_NONE UINT32_MAX

/* A word, decoded. */
struct words {
    uint32_t round;                 /* the one that is learned */
    uint32_t workers;               /* those that the job began with; 0: no leader has put a word yet */
    uint64_t rows;                  /* learned in rounds that are over, with those of earlier runs */
    int go_on;                      /* enum lead_goes */
    uint32_t leader;                /* node id; 0: unknown; LEAD_NONE */
    uint64_t run_rows, dealt_again; /* rows and dealt_again of struct train_result */
    uint32_t best_epoch;            /* from 1; 0: none */
    double best_loss;
    uint32_t bad_epochs;      /* since the best one */
    struct train_epoch epoch; /* the last that is over; rows 0: not known */
    uint32_t gave_up;         /* leaders that could not continue, and left */
    double label_scale;       /* 0: not known */
};

/* A word is WORDS doubles, so adding zeros creates one. Words in checkpoints of older programs have fewer: at least the
 * first WORDS_OLD. */
enum { WORDS_OLD = 4, WORDS = 36 };
void lead_encode(const struct words *words, double out[WORDS]);
/* n: WORDS_OLD .. WORDS. */
void lead_decode(const double *in, size_t n, struct words *words);

/* Opens the pool. */
PARAMO_MUST_USE paramo_err lead_open(struct job *job);
/* Takes the lead if no worker leads (job->leads). Worker 0, and a worker with a dead worker's rank, try in each call.
 * The others try when the leader that they know has died, or after some time in the job. So worker 0 leads if nothing
 * fails. */
PARAMO_MUST_USE paramo_err lead_try(struct job *job);
/* NOW, or zeros if there is none yet. For the next leader. */
PARAMO_MUST_USE paramo_err lead_place(struct job *job, struct words *words);
/* NOW, or TIMEOUT if there is none. */
PARAMO_MUST_USE paramo_err lead_now(struct job *job, struct words *words);
/* The word of a round, or TIMEOUT after timeout_ms. */
PARAMO_MUST_USE paramo_err lead_word(struct job *job, uint32_t round, uint32_t timeout_ms,
                                     struct words *words);
/* The word of a job whose tables are ready, as above. */
PARAMO_MUST_USE paramo_err lead_ready(struct job *job, uint32_t timeout_ms, struct words *words);
/* Words that only the leader puts: it leads; the tables are ready and words->round begins; a round is over, or (not
 * GOES_ON) the whole job; the job is interrupted in words->round. */
PARAMO_MUST_USE paramo_err lead_put_now(struct job *job, const struct words *words);
PARAMO_MUST_USE paramo_err lead_put_ready(struct job *job, const struct words *words);
PARAMO_MUST_USE paramo_err lead_put_word(struct job *job, const struct words *words);
PARAMO_MUST_USE paramo_err lead_put_interrupted(struct job *job, const struct words *words);
/* The mark that the model of an interrupted job is saved, or need not be saved. The leader puts it, the others wait for
 * it (or TIMEOUT), and a job that begins with a checkpoint of that time removes it. */
PARAMO_MUST_USE paramo_err lead_put_saved(struct job *job);
PARAMO_MUST_USE paramo_err lead_saved(struct job *job, uint32_t timeout_ms);
PARAMO_MUST_USE paramo_err lead_forget_saved(struct job *job);
/* Is this process, which leads, still in the job? If not, FENCED or the cause. */
PARAMO_MUST_USE paramo_err lead_still(struct job *job);
/* This process leads, cannot continue, and is about to leave the job. Sets the leader of NOW to LEAD_NONE. A worker
 * that reads this asks to lead, and leads when this process has left. NOT_FOUND: the job has not begun to learn. */
PARAMO_MUST_USE paramo_err lead_put_none(struct job *job);

#endif
