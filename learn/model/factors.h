/*
 * What the models with factors share: settings, tables, and loops over the factors of one feature.
 *
 * Factors are lanes that do not depend on each other. A sum over them runs in eight lanes (factor k in lane k % 8, in
 * order) and is then folded in halves: so every width of vectors gives the same bits (learn/objective/vector.h). It
 * never knows of servers. Tests: test/learn/test_ffm.c, test_fwfm.c.
 */
#ifndef LEARN_MODEL_FACTORS_H
#define LEARN_MODEL_FACTORS_H

#include "learn/data/batch.h"
#include "learn/model/model.h"
#include "learn/objective/vector.h"

#define FACTORS_MAX  512  /* arbitrary */
#define FIELDS_MAX   1024 /* arbitrary: rows of an ffm have as many groups of factors */
#define FACTOR_LANES 8
#define FACTOR_SETTING(first)                                                                                \
    {                                                                                                        \
        .option = "dim", .manifest = "dim", .meta = "K", .help = "factors per feature", .whole = 1,          \
        .min = 1, .max = FACTORS_MAX, .initial = (first), .fixed = 1                                         \
    }
#define FACTOR_INIT_SETTING(first)                                                                           \
    {                                                                                                        \
        .option = "factor-init", .manifest = "factor_init", .meta = "S",                                     \
        .help = "standard deviation of the first factors", .initial = (first)                                \
    }
#define FIELDS_SETTING                                                                                       \
    {                                                                                                        \
        .option = "fields", .manifest = "fields", .meta = "N",                                               \
        .help = "the fields are 0 .. N-1 (those of the first rows)", .whole = 1, .min = 1,                   \
        .max = FIELDS_MAX, .fixed = 1, .field = FIELD_COUNT                                                  \
    }

/* Places of the settings and tables that these models have in common: W has weights, V factors, and T the rows of
 * fields, in models whose fields have rows. */
enum { FACTORS_DIM, FACTORS_INIT, FACTORS_FIELDS };
enum { FACTORS_W, FACTORS_V, FACTORS_T };
#define WEIGHTS_TABLE                                                                                        \
    {                                                                                                        \
        .name = "w", .prefix = "", .what = "the weights", .bias = 1, .optimizer = "ftrl", .long_rows = 2     \
    }

/* The number of factors of a feature. */
uint32_t factors_dim(const struct model_info *info);
/* Of W, rows of one weight; of V, rows of factors_dim() factors with random first values. */
struct model_shape factors_shape(const struct model_info *info, size_t table);
/* Sets to 0 the rows of v whose w is 0, and that of the bias. */
void factors_clear(const struct batch *batch, uint32_t dim, const float *w, float *v);
/* factors_clear() for the first two tables. */
void factors_mask(const struct model_info *info, const struct batch *batch, float *const *param);
/* Writes the gradient of the weights, and sets those of the other tables to 0. */
void factors_gradient(const struct model_info *info, const struct batch *batch, const float *residual,
                      float *const *grad);
/* model_ops.rows and .scratch: table T has a row for each field; scratch holds two rows of factors for each field. */
size_t fields_rows(const struct model_info *info, size_t table);
size_t fields_scratch(const struct model_info *info, size_t rows);

/* loop(dim, ...) with the usual number of factors as a constant: its inner loops are unrolled. */
#define FACTORS_USUAL(usual, loop, dim, ...)                                                                 \
    ((dim) == (usual) ? loop(usual, __VA_ARGS__) : loop(dim, __VA_ARGS__))

typedef float factor_wide8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float factor_wide4 __attribute__((vector_size(16), aligned(4), may_alias));

/* The features of row r: from .. to - 1 of the batch. */
VECTOR_INLINE size_t row_from(const struct batch *b, size_t r)
{
    return b->start[r] - b->start[0];
}
VECTOR_INLINE size_t row_to(const struct batch *b, size_t r)
{
    return b->start[r + 1] - b->start[0];
}
VECTOR_INLINE float value_of(const struct batch *b, size_t i)
{
    return !b->value ? 1.0f : b->value[i];
}

/* out += x v; wide is VECTOR_FLOATS. */
VECTOR_INLINE void factors_add(int wide, size_t dim, float x, const float *v, float *out)
{
    size_t k = 0;
    for (; wide >= 8 && k + 8 <= dim; k += 8)
        *(factor_wide8 *)(out + k) += x * *(const factor_wide8 *)(v + k);
    for (; k + 4 <= dim; k += 4)
        *(factor_wide4 *)(out + k) += x * *(const factor_wide4 *)(v + k);
    for (; k < dim; k++)
        out[k] += x * v[k];
}

/* out = a b. */
VECTOR_INLINE void factors_product(int wide, size_t dim, const float *a, const float *b, float *out)
{
    size_t k = 0;
    for (; wide >= 8 && k + 8 <= dim; k += 8)
        *(factor_wide8 *)(out + k) = *(const factor_wide8 *)(a + k) * *(const factor_wide8 *)(b + k);
    for (; k + 4 <= dim; k += 4)
        *(factor_wide4 *)(out + k) = *(const factor_wide4 *)(a + k) * *(const factor_wide4 *)(b + k);
    for (; k < dim; k++)
        out[k] = a[k] * b[k];
}

/* lane[k % 8] += x a_k b_k. */
VECTOR_INLINE void factors_dot(int wide, size_t dim, float x, const float *a, const float *b,
                               float lane[FACTOR_LANES])
{
    size_t k = 0;
    for (; wide >= 8 && k + 8 <= dim; k += 8)
        *(factor_wide8 *)lane += x * (*(const factor_wide8 *)(a + k) * *(const factor_wide8 *)(b + k));
    for (; k + 4 <= dim; k += 4)
        *(factor_wide4 *)(lane + k % FACTOR_LANES) +=
            x * (*(const factor_wide4 *)(a + k) * *(const factor_wide4 *)(b + k));
    for (; k < dim; k++)
        lane[k % FACTOR_LANES] += x * (a[k] * b[k]);
}

VECTOR_INLINE float factors_fold(const float lane[FACTOR_LANES])
{
    float four[4];
    for (int i = 0; i < 4; i++)
        four[i] = lane[i] + lane[i + 4];
    return (four[0] + four[2]) + (four[1] + four[3]);
}

#endif
