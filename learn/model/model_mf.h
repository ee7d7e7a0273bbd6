/*
 * Matrix factorization with biases over one batch (Y. Koren, R. Bell, C. Volinsky, "Matrix Factorization Techniques for
 * Recommender Systems", IEEE Computer 42(8), 2009), for ratings with --objective squared and for others alike.
 *
 * Eq. (4), with the features of two fields as user and item:
 *   margin = bias + sum_i w_i x_i + <p, q>,   p = sum over the features i of the user's field of v_i x_i, q of the item's
 * The bias is the mean rating mu, and the weights of user and item are b_u and b_i. A user that is one id has p = v_user.
 * A field may have several features: with the ids of the items that a user rated, each with the value 1 / sqrt(their
 * number), in the user's field p is that of SVD++ (Koren, KDD 2008). Features of other fields have their weights only.
 *
 * Gradient, d the residual of the row: of v_i, d x_i q in the user's field and d x_i p in the item's.
 *
 * A feature whose w is exactly 0 has no factors, as in an FM (model_fm.h): so a new user or item has its mean.
 * It never knows of tables, servers or files. Tests: test/learn/test_mf.c.
 */
#ifndef LEARN_MODEL_MODEL_MF_H
#define LEARN_MODEL_MODEL_MF_H

#include "learn/data/batch.h"

/* Which fields are user and item. */
struct mf_fields {
    uint32_t user, item;
};

/* batch->field is not NULL. w and v as in model_fm.h, v masked by fm_mask; scratch[2 * dim] holds nothing between
 * calls. */
void mf_margins(const struct batch *batch, const struct mf_fields *fields, uint32_t dim, const float *w,
                const float *v, float *scratch, float *margin);
void mf_gradient(const struct batch *batch, const struct mf_fields *fields, uint32_t dim, const float *v,
                 float *scratch, const float *residual, float *gw, float *gv);

#endif
