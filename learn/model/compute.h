/*
 * A model's margins and gradients over one batch, for each output of its objective, with the memory that it takes.
 *
 * With one output the model works on the rows as they are. With several, a row has the values of each output in turn:
 * they are gathered for one output at a time, and its gradients spread again. So a model never sees more than one.
 *
 * Memory grows with the largest batch and is used again for the next one. Owned by one thread. It never knows servers
 * or files. Tests: test/learn/test_model.c, test_train.c, test_score.c.
 */
#ifndef LEARN_MODEL_COMPUTE_H
#define LEARN_MODEL_COMPUTE_H

#include "learn/model/model.h"

/* Rows that a batch needs of each table: params of those after the model's tables are NULL. Zero it before first
 * use. */
struct params {
    size_t cap; /* keys of features */
    float *table[MODEL_MAX_TABLES];
};
/* Gets room for at least `keys` keys of features, and for all rows of the other tables; the content before is lost.
 * MEMORY leaves it empty. */
PARAMO_MUST_USE paramo_err params_fit(struct params *p, const struct model_info *info, size_t keys);
void params_free(struct params *p);

/* Of the rows of a batch. Margins and residuals lie output by output, `rows` each, the rows of the batch. Zero it
 * before first use. */
struct workspace {
    size_t rows, keys;
    float *margin, *residual;
    float *model;                /* model_ops.scratch, for each output */
    struct params plane, spread; /* of one output; unused if there is one only */
};
/* Gets room for at least such a batch; the content before is lost. MEMORY leaves it empty. */
PARAMO_MUST_USE paramo_err workspace_fit(struct workspace *s, const struct model_info *info, size_t rows,
                                         size_t keys);
void workspace_free(struct workspace *s);

/* Masks param, and fills s->margin: output c of row r is at margin[c * batch->rows + r]. */
void compute_margins(const struct model_info *info, const struct batch *batch, float *const *param,
                     struct workspace *s);
/* The gradients of the summed loss into grad, with s as compute_margins left it for the same batch and s->residual. */
void compute_gradient(const struct model_info *info, const struct batch *batch, float *const *param,
                      struct workspace *s, float *const *grad);

#endif
