/*
 * A model's margins and gradients over one batch, for each output of its objective, with the memory that it takes.
 *
 * With one output the model works on the rows as they are. With several, a row has the values of each output in turn.
 * They are gathered for one output at a time, and its gradients are scattered back, so a model sees one output only.
 *
 * Memory grows with the largest batch and is used again for the next one. Owned by one thread. It never knows servers
 * or files. Tests: test/learn/test_model.c, test_train.c, test_score.c.
 */
#ifndef LEARN_MODEL_COMPUTE_H
#define LEARN_MODEL_COMPUTE_H

#include "learn/model/model.h"

/* The rows of each table that a batch needs; NULL for tables that the model does not have. Zero it before first use. */
struct params {
    size_t cap; /* keys of features */
    float *table[MODEL_MAX_TABLES];
};
/* Makes room for at least `keys` keys of features, and for all rows of the other tables. The previous content is lost.
 * MEMORY leaves it empty. */
PARAMO_MUST_USE paramo_err params_fit(struct params *p, const struct model_info *info, size_t keys);
void params_free(struct params *p);

/* Scratch for a batch. Margins and residuals lie output by output: one of each row of the batch, then those of the next
 * output. Zero it before first use. */
struct workspace {
    size_t rows, keys;
    float *margin, *residual;
    float *model;                /* model_ops.scratch, for each output */
    struct params plane, spread; /* parameters and gradients of one output; unused if there is only one */
};
/* Makes room for a batch of this size. The previous content is lost. MEMORY leaves it empty. */
PARAMO_MUST_USE paramo_err workspace_fit(struct workspace *s, const struct model_info *info, size_t rows,
                                         size_t keys);
void workspace_free(struct workspace *s);

/* Masks param, and fills s->margin: output c of row r is at margin[c * batch->rows + r]. */
void compute_margins(const struct model_info *info, const struct batch *batch, float *const *param,
                     struct workspace *s);
/* Writes the gradients of the summed loss to grad. s is as compute_margins left it for the same batch, with s->residual
 * filled in. */
void compute_gradient(const struct model_info *info, const struct batch *batch, float *const *param,
                      struct workspace *s, float *const *grad);

#endif
