/*
 * Factorization machine of degree 2 over one batch (S. Rendle, "Factorization Machines", ICDM 2010).
 *
 * Eq. (1):  margin = bias + sum_i w_i x_i + sum_{i<j} <v_i, v_j> x_i x_j, computed as in eq. (3) in time
 * linear in the features: sum_{i<j} <v_i, v_j> x_i x_j = 1/2 sum_f ((sum_i v_if x_i)^2 - sum_i (v_if x_i)^2).
 * Eq. (4) is the gradient.
 *
 * A feature whose w is exactly 0 (never seen, or set to 0 by L1) has no factors: they count as 0. So a feature that was
 * never trained adds nothing instead of its random initial factors, and L1 on w thins out v, too. The rule is that of
 * DiFacto (Li et al., WSDM 2016, section 3). factors_clear (factors.h) applies it to pulled factors.
 *
 * w, v and their gradients hold rows for the batch's unique keys in its order; the last is the bias, which
 * has no factors. Vector code of three widths, chosen at run time, with the same bits (learn/objective/vector.h).
 * Pure arithmetic: it never knows of tables, servers or files. Tests: test/learn/test_fm.c.
 */
#ifndef LEARN_MODEL_MODEL_FM_H
#define LEARN_MODEL_MODEL_FM_H

#include "learn/data/batch.h"

/* sum[r * dim + f] = sum_i v_if x_i of row r, kept for the gradient. */
void fm_margins(const struct batch *batch, uint32_t dim, const float *w, const float *v, float *sum,
                float *margin);
/* gw[i] = sum_r d_r x_i;  gv[i * dim + f] = sum_r d_r x_i (sum[r][f] - v_if x_i), with d the residuals. */
void fm_gradient(const struct batch *batch, uint32_t dim, const float *v, const float *sum,
                 const float *residual, float *gw, float *gv);

#endif
