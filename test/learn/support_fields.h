/* Models of features with fields against slow references of their papers' formulas. */
#ifndef TEST_LEARN_SUPPORT_FIELDS_H
#define TEST_LEARN_SUPPORT_FIELDS_H

#include "learn/model/model.h"

/* The margin of a row by the formula as it stands, in double precision; param as in model.h, masked. */
typedef double field_margin_fn(const struct model_info *info, const struct batch *batch, size_t row,
                               double *const *param);

/* The value of feature i of the batch. */
double field_value(const struct batch *batch, size_t i);
/* bias + sum_i w_i x_i. */
double field_linear(const struct batch *batch, size_t row, const double *w);

/* Margins and gradients (by differences of the reference) at every vector level, over random rows: keys and fields
 * repeat within rows, fields are missing, some are not counted, some rows are empty. Every level has the same bits. */
void check_field_model(const struct model_ops *ops, field_margin_fn *reference);

#endif
