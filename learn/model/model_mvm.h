/*
 * Multi-view machine over one batch (B. Cao, H. Zhou, G. Li, P. S. Yu, "Multi-view Machines", WSDM 2016). A view is a
 * field.
 *
 * Eq. (6), with weights and a bias:
 *   margin = bias + sum_i w_i x_i + sum_k prod_f s_{f,k},   s_{f,k} = b_{f,k} + sum over the features i of field f of
 *   v_{i,k} x_i
 * over the factors k and all fields f = 0 .. fields - 1. b_f are the factors of field f itself, those of a constant feature
 * in each view. So the product has the interactions of every order, from single features to all fields at once, and
 * where a row has no feature of a field, its factor is b_f.
 *
 * Gradient, d the residual of the row and p_{f,k} the product of s_{g,k} over the fields g other than f: of b_{f,k},
 * d p_{f,k}; of v_{i,k}, d x_i p_{f_i,k}. p is a product of those before f and those after it. No division: a sum may
 * be 0.
 *
 * b has `fields` rows of `dim` values. They begin at 1, so the margin of a new model without bias is about dim. A feature whose w
 * is exactly 0 has no factors, as in an FM (model_fm.h). A feature of a field that is not counted has its weight only.
 * It never knows of tables, servers or files. Tests: test/learn/test_mvm.c.
 */
#ifndef LEARN_MODEL_MODEL_MVM_H
#define LEARN_MODEL_MODEL_MVM_H

#include "learn/data/batch.h"

/* Floats of scratch, which holds nothing between calls. */
size_t mvm_scratch(uint32_t fields, uint32_t dim);
/* batch->field is not NULL. w and v as in model_fm.h, v masked by fm_mask; b[fields * dim]. */
void mvm_margins(const struct batch *batch, uint32_t fields, uint32_t dim, const float *w, const float *v,
                 const float *b, float *scratch, float *margin);
void mvm_gradient(const struct batch *batch, uint32_t fields, uint32_t dim, const float *v, const float *b,
                  float *scratch, const float *residual, float *gw, float *gv, float *gb);

#endif
