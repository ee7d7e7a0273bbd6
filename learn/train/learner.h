/*
 * One customer's training loop: pull, score, learn, push, batch after batch, over one round of the pool at a
 * time.
 *
 * Pulls run ahead: the pull of batch t + ahead is issued before the push of batch t, so a batch is scored
 * with parameters that lack the last `ahead` batches. This distance is counted in batches, never in time, and
 * one customer's requests to a shard apply in the order of issue. So a single worker trains the same model in
 * every run. Gradients are summed (not averaged) over the batch's rows. Each batch is scored before it is
 * learned: progressive validation (Blum, Kalai, Langford, COLT 1999).
 *
 * With a held-out part (learn/data/holdout.h) each epoch has two rounds of the pool: in the first the other rows are
 * learned, in the second the held-out rows are scored with the model as it is then. Every worker scores those of the
 * parts that it has read. No worker learns in the second: a round begins when the one before is over for all.
 *
 * If only a share s of the negative rows is learned, the odds of a 1 among the learned rows are 1 / s times as high. So
 * ln(1 / s) is added to the margins of rows that are learned. The model's margins stay those of all rows, and scoring
 * needs no correction (King and Zeng, "Logistic Regression in Rare Events Data", Political Analysis 9, 2001).
 *
 * A schedule multiplies the gradient of a batch by the rate at its place: the round, and the share of the data's parts
 * that lie before the batch. If the number of parts is not known (compressed files, pipes), the rate is that of the
 * middle of the round.
 *
 * A part is reported done when its last push has been answered; its sums are added to the job's (kv
 * "train/learned/<round>") just before. A part that a dead worker did not report is learned and counted by another
 * worker. If the worker died between the two steps, the part's rows count twice in the sums. It never knows of files or
 * validation. Tests: test/learn/test_train.c.
 */
#ifndef LEARN_TRAIN_LEARNER_H
#define LEARN_TRAIN_LEARNER_H

#include "learn/data/loader.h"
#include "learn/eval/metric_sums.h"
#include "learn/eval/score.h"
#include "learn/train/admission.h"
#include "learn/train/expiry.h"
#include "learn/train/filter_sums.h"
#include "learn/train/pace.h"
#include "learn/train/rate_schedule.h"
#include "learn/train/scaling.h"
#include "learn/train/sightings.h"
#include "learn/train/watch.h"

#include <stdatomic.h>

/* The sums over a round's parts, in this order, as doubles. After them: the sums of the objective's tally, from which
 * its best guess follows. */
enum learner_sum {
    SUM_ROWS,
    SUM_POSITIVES, /* rows with a label above 0.5 */
    SUM_WEIGHT,
    SUM_LABEL, /* weighted, as the next two */
    SUM_SQUARE,
    SUM_LOSS,
    SUM_PARTS,
    SUM_SENT,
    SUM_RECEIVED,
    SUM_CONSTANTS
};
#define SUMS_MAX (SUM_CONSTANTS + OBJECTIVE_CLASSES_MAX)

struct learner; /* of one thread */

struct learner_options {
    paramo_node *node;
    paramo_worker *worker;
    const struct model_info *model;
    paramo_table *const *table; /* of the model, in its order */
    struct scaling *scaling;
    struct sightings *sightings;
    struct expiry *expiry;
    uint32_t customer; /* customer id */
    const char *pool;
    struct reader *reader;
    size_t batch_rows, first_rows;   /* rows of a batch, at most and in the first part (loader_batch_rows) */
    double negatives;                /* share of the rows with label 0 that is learned; 0: all */
    struct admission_rule admission; /* of new features */
    uint32_t workers;                /* of the job, when it began */
    struct rate_schedule schedule;   /* of the gradients */
    uint64_t epochs;                 /* of the job, at most */
    size_t shuffle; /* rows of a window, from the second round on (learn/data/loader.h); 0: never */
    int growing;    /* a round has train_passes() passes over a part's rows, shuffled */
    unsigned ahead;
    uint32_t bound;                   /* of struct pace */
    struct filter_reported *filtered; /* NULL: what filters do is not summed */
    unsigned threads;                 /* loader threads */
    const atomic_int *stop;
    int calibrate;          /* held-out rows are summed for a calibration, too */
    int held_out;           /* the reader holds rows out: the pool has two rounds for each epoch */
    uint32_t share, shares; /* of struct loader_options */
    int alone;              /* one process is the whole cluster: no part can be dealt again */
    /* After each batch: this learner's sums of the round so far, and the part that it is at. Its error ends
     * the round. */
    paramo_err (*tick)(void *arg, const struct watch_sums *sums, const paramo_work_unit *at);
    int (*leads)(void *arg);                                    /* does this worker lead the job? */
    void (*slow)(void *arg, unsigned seconds, const char *why); /* of struct pace */
    void *arg;
};

PARAMO_MUST_USE paramo_err learner_new(const struct learner_options *options, struct learner **learner);
/* Frees the memory of its requests, too. None is in flight between calls of learner_round and learner_fetch. */
void learner_free(struct learner *learner);
/* Learns until the round is over for all workers. INTERRUPTED: stop was set; all pushes are answered, and parts
 * that are not whole are not reported. On return, also with an error, no request of the learner is in flight. */
PARAMO_MUST_USE paramo_err learner_round(struct learner *learner, uint32_t round);
/* Scores the held-out rows after that round. INTERRUPTED as above. */
PARAMO_MUST_USE paramo_err learner_measure(struct learner *learner, uint32_t round);
/* Adds to sums those of its pace.h that are not in the job's sums yet: of parts that are not done. */
void learner_pace(struct learner *learner, double sums[PACE_SUMS]);
/* Is it in learner_measure? */
int learner_measures(const struct learner *learner);
/* The pool's round in which the rows of a round are learned. */
uint32_t learner_pool_round(uint32_t round, int held_out);
/* Rows learned so far in this round, including those of parts that are not done. */
uint64_t learner_rows(const struct learner *learner);
/* Bytes pushed and pulled so far in this round. */
void learner_bytes(const struct learner *learner, double *sent, double *received);
/* Name of the round's sums in the scheduler's store, and how many there are. */
void learner_sums_key(char *out, size_t cap, uint32_t round);
size_t learner_sums(const struct model_info *model);
/* Of the first round: turns and changes of struct watch_order. */
#define LEARNER_TURNS_KEY "train/order"
/* MSUMS of the rows that are held out. */
void learner_held_out_key(char *out, size_t cap, uint32_t round);
/* CALIBRATION_SUMS of the same rows. */
void learner_calibration_key(char *out, size_t cap, uint32_t round);
/* Writes to guess[outputs] the margins of the best guess for all rows of a round, by its sums. negatives: the share of
 * the negative rows that is in the sums; 0: all. */
void learner_guess(const struct model_info *model, const double *sums, double negatives, float *guess);
/* Parameters pulled from the servers, for validation: score_fetch_fn, arg is the learner. On return no
 * request has param or scale. */
paramo_err learner_fetch(void *learner, const struct batch *batch, float *const *param, float *scale);

#endif
