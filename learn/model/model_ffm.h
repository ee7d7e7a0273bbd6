/*
 * Field-aware factorization machine over one batch (Y. Juan, Y. Zhuang, W.-S. Chin, C.-J. Lin, "Field-aware Factorization
 * Machines for CTR Prediction", RecSys 2016).
 *
 * Eq. (4), with weights and a bias:
 *   margin = bias + sum_i w_i x_i + sum_{i<j} <v_{i,f_j}, v_{j,f_i}> x_i x_j
 * over the features i, j of a row, f_i the field of feature i. A feature has `dim` factors for each of the fields
 * 0 .. fields - 1: v holds fields * dim values a key, those for field g from g * dim on. Two features of one field are
 * a pair, too. So are two features with the same key.
 *
 * Gradient, d the residual of the row: of w_i, d x_i; of v_{i,g}, d x_i times the sum of v_{j,f_i} x_j over the other
 * features j of field g.
 *
 * A feature whose w is exactly 0 has no factors, as in an FM (model_fm.h). A feature of a field that is not counted has
 * its weight and no pairs. All pairs are computed: time grows with the square of the features of a row.
 * It never knows of tables, servers or files. Tests: test/learn/test_ffm.c.
 */
#ifndef LEARN_MODEL_MODEL_FFM_H
#define LEARN_MODEL_MODEL_FFM_H

#include "learn/data/batch.h"

/* batch->field is not NULL. w and v as in model_fm.h; v masked by fm_mask with fields * dim factors. */
void ffm_margins(const struct batch *batch, uint32_t fields, uint32_t dim, const float *w, const float *v,
                 float *margin);
void ffm_gradient(const struct batch *batch, uint32_t fields, uint32_t dim, const float *v,
                  const float *residual, float *gw, float *gv);

#endif
