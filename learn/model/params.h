/*
 * Memory for the computation of batches: the parameters of a batch's keys in each table of a model, gradients laid
 * out the same, and what a model needs for the rows of a batch. It grows with the largest batch and is used again
 * for the next one. Owned by one thread. It never knows servers or files. Tests: test/learn/test_train.c,
 * test_score.c.
 */
#ifndef LEARN_MODEL_PARAMS_H
#define LEARN_MODEL_PARAMS_H

#include "learn/model/model.h"

/* Values of a batch's keys in each table; those after the model's tables are NULL. Zero it before first use. */
struct params {
    size_t cap; /* keys */
    float *table[MODEL_MAX_TABLES];
};
/* Holds `keys` keys at least; what it held is not kept. MEMORY leaves it empty. */
PARAMO_MUST_USE paramo_err params_fit(struct params *p, const struct model_info *info, size_t keys);
void params_free(struct params *p);

/* Of the rows of a batch. Zero it before first use. */
struct row_scratch {
    size_t cap; /* rows */
    float *margin, *residual;
    float *model; /* model_ops.scratch */
};
/* Holds `rows` rows at least; what it held is not kept. MEMORY leaves it empty. */
PARAMO_MUST_USE paramo_err row_scratch_fit(struct row_scratch *s, const struct model_info *info, size_t rows);
void row_scratch_free(struct row_scratch *s);

#endif
