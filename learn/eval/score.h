/*
 * Scores rows with a model: reads data in order, fetches the parameters of each batch's keys, and hands out margins.
 * predict, eval and serve use it with a model from disk; the validation during training uses it with parameters pulled
 * from the servers.
 *
 * A key that the model does not have counts as zeros in every table. It never knows where parameters
 * come from. Tests: test/learn/test_score.c.
 */
#ifndef LEARN_EVAL_SCORE_H
#define LEARN_EVAL_SCORE_H

#include "learn/data/batch.h"
#include "learn/data/reader.h"
#include "learn/eval/metrics.h"
#include "learn/store/modelio.h"

/* Writes the parameters of the batch's keys in each table of the model to param[t] (learn/model/model.h) and, if scale
 * is not NULL, their rows of the table of scales. */
typedef paramo_err (*score_fetch_fn)(void *arg, const struct batch *batch, float *const *param, float *scale);
/* Scored rows, in the order of the data: their margins, laid out as for objective_residuals and calibrated if the model
 * is; their labels; their weights, or NULL. */
struct scored_rows {
    size_t n, stride;
    const float *margin, *label, *weight;
};
typedef paramo_err (*score_rows_fn)(void *arg, const struct scored_rows *rows);

struct score_source {
    const struct model_info *model;
    score_fetch_fn fetch;
    void *arg;
    int scaled; /* there is a table of scales, of model->scale */
};

/* Memory to score blocks with one model, in one thread. Its sizes follow from the model, so another model needs another
 * scorer. */
struct scorer;
PARAMO_MUST_USE paramo_err scorer_new(struct scorer **scorer);
void scorer_free(struct scorer *scorer); /* NULL is allowed */
/* Scores the rows of one block. */
PARAMO_MUST_USE paramo_err scorer_block(struct scorer *scorer, const struct score_source *source,
                                        const struct block *block, score_rows_fn rows, void *arg);
/* Reads reader from where it stands to its end. */
PARAMO_MUST_USE paramo_err score_reader(const struct score_source *source, struct reader *reader,
                                        score_rows_fn rows, void *arg);
/* score_rows_fn that adds to a struct metrics. */
paramo_err score_metrics(void *metrics, const struct scored_rows *rows);
/* A model; how many keys were looked up, each once a batch, and how many of them the model has, both without the
 * bias. */
struct score_lookup {
    const struct model *model;
    uint64_t asked, known;
};
/* score_fetch_fn for a struct score_lookup; and the source for it. */
paramo_err score_fetch_model(void *lookup, const struct batch *batch, float *const *param, float *scale);
struct score_source score_model(struct score_lookup *lookup);

#endif
