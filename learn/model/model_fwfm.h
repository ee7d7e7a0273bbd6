/*
 * Field-weighted factorization machine over one batch (J. Pan, J. Xu, A. L. Ruiz, W. Zhao, S. Pan, Y. Sun, Q. Lu,
 * "Field-weighted Factorization Machines for Click-Through Rate Prediction in Display Advertising", WWW 2018).
 *
 * Eq. (4), with weights and a bias:
 *   margin = bias + sum_i w_i x_i + sum_{i<j} r_{f_i,f_j} <v_i, v_j> x_i x_j
 * over the features i, j of a row, f_i the field of feature i. r_{f,g} = r_{g,f} is a weight of the pair of fields; with
 * all of them 1 this is an FM.
 *
 * Computed over fields: s_f = sum of v_i x_i over the features of field f. Pairs of different fields give
 * sum_{f<g} r_{f,g} <s_f, s_g>, and those within a field r_{f,f} / 2 (|s_f|^2 - sum_i |v_i x_i|^2).
 * Gradient, d the residual of the row: of v_i, d x_i (sum_{g != f_i} r_{f_i,g} s_g + r_{f_i,f_i} (s_{f_i} - v_i x_i));
 * of r_{f,g}, d <s_f, s_g>; of r_{f,f}, d / 2 (|s_f|^2 - sum_i |v_i x_i|^2). A field with one feature in the row has no
 * pair of its own: that is exactly 0.
 *
 * r has `fields` rows of `fields` values; the weight of fields f <= g is value g of row f, and values before the diagonal
 * are not used. A feature whose w is exactly 0 has no factors, as in an FM (model_fm.h). A feature of a field that is
 * not counted has its weight and no pairs.
 * It never knows of tables, servers or files. Tests: test/learn/test_fwfm.c.
 */
#ifndef LEARN_MODEL_MODEL_FWFM_H
#define LEARN_MODEL_MODEL_FWFM_H

#include "learn/data/batch.h"

/* Floats of scratch, which holds nothing between calls. */
size_t fwfm_scratch(uint32_t fields, uint32_t dim);
/* batch->field is not NULL. w and v as in model_fm.h, v masked by fm_mask; r[fields * fields]. */
void fwfm_margins(const struct batch *batch, uint32_t fields, uint32_t dim, const float *w, const float *v,
                  const float *r, float *scratch, float *margin);
void fwfm_gradient(const struct batch *batch, uint32_t fields, uint32_t dim, const float *v, const float *r,
                   float *scratch, const float *residual, float *gw, float *gv, float *gr);

#endif
