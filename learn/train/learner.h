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
 * A part is reported done when its last push has been answered; its sums are added to the job's (kv
 * "sums/<round>") just before. So a part that a dead worker did not report is learned and counted once by
 * another worker. It never knows of files, validation or how many workers there are. Tests:
 * test/learn/test_train.c.
 */
#ifndef LEARN_TRAIN_LEARNER_H
#define LEARN_TRAIN_LEARNER_H

#include "learn/data/loader.h"
#include "learn/eval/score.h"
#include "learn/train/watch.h"

#include <stdatomic.h>

/* What is summed over a round's parts, in this order, as doubles. */
enum learner_sum { SUM_ROWS, SUM_POSITIVES, SUM_LOSS, SUM_PARTS, SUM_SENT, SUM_RECEIVED, SUM_N };

struct learner; /* of one thread */

struct learner_options {
    paramo_node *node;
    paramo_worker *worker;
    const struct model_info *model;
    paramo_table *const *table; /* of the model, in its order */
    uint32_t who;               /* customer id */
    const char *pool;
    struct reader *reader;
    size_t batch_rows;
    unsigned ahead;
    unsigned threads; /* loader threads */
    const atomic_int *stop;
    int alone; /* one process is the whole cluster: no part can be dealt again */
    /* After each batch: this learner's sums of the round so far, and the part that it is at. Its error ends
     * the round. */
    paramo_err (*tick)(void *arg, const struct watch_sums *sums, const paramo_work_unit *at);
    void *arg;
};

PARAMO_MUST_USE paramo_err learner_new(const struct learner_options *options, struct learner **learner);
/* Frees the memory of its requests, too. None is in flight between calls of learner_round and learner_fetch. */
void learner_free(struct learner *learner);
/* Learns until the round is over for all workers. INTERRUPTED: stop was set; all pushes are answered, and parts
 * that are not whole are not reported. On return, also with an error, no request of the learner is in flight. */
PARAMO_MUST_USE paramo_err learner_round(struct learner *learner, uint32_t round);
/* Rows learned so far in this round, with those of parts that are not done. */
uint64_t learner_rows(const struct learner *learner);
/* Bytes pushed and pulled so far in this round. */
void learner_bytes(const struct learner *learner, double *sent, double *received);
/* Name of the round's sums in the scheduler's store. */
void learner_sums_key(char *out, size_t cap, uint32_t round);
/* Parameters pulled from the servers, for validation: score_fetch_fn, arg is the learner. On return no
 * request has param. */
paramo_err learner_fetch(void *learner, const struct batch *batch, float *const *param);

#endif
