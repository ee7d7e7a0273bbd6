#include "learn/model/model_fm.h"
#include "learn/model/factors.h"
#include "learn/model/model.h"
#include "learn/model/model_lr.h"
#include "learn/objective/vector.h"

#include <string.h>

/*
 * A row's factors are worked on in spans of 16, 8, 4 or 1. The length of a span is a constant wherever these bodies
 * are inlined, so that the compiler keeps a span's sums in registers. The one sum over factors, of eq. (3), runs in
 * lanes (factors.h). dim is a constant, too, for the usual sizes, and `ones` says that all values are 1.
 */

struct row {
    const uint32_t *index;
    const float *value; /* NULL if ones */
    size_t n;
};

/* Registers as the compiler's own vector types. A span is `count` of them, of the level's widest kind: with
 * wider ones than the level has, compilers keep the sums in memory. */
typedef float wide16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef float wide8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float wide4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef float wide1;

#define SPAN_LOOPS(width, count)                                                                             \
    VECTOR_INLINE void margin_##width##x##count(const struct row *row, int ones, size_t dim, const float *v, \
                                                float *sum, float *lane)                                     \
    {                                                                                                        \
        wide##width s[count], squares[count];                                                                \
        memset(s, 0, sizeof s);                                                                              \
        memset(squares, 0, sizeof squares);                                                                  \
        for (size_t i = 0; i < row->n; i++) {                                                                \
            const float x = ones ? 1.0f : row->value[i], *vi = v + (size_t)row->index[i] * dim;              \
            for (size_t k = 0; k < count; k++) {                                                             \
                wide##width t = *(const wide##width *)(vi + k * width);                                      \
                if (!ones)                                                                                   \
                    t *= x;                                                                                  \
                s[k] += t;                                                                                   \
                squares[k] += t * t;                                                                         \
            }                                                                                                \
        }                                                                                                    \
        float pairs[width * count];                                                                          \
        memcpy(sum, s, sizeof s);                                                                            \
        for (size_t k = 0; k < count; k++)                                                                   \
            s[k] = s[k] * s[k] - squares[k];                                                                 \
        memcpy(pairs, s, sizeof pairs);                                                                      \
        for (size_t f = 0; f < width * count; f++)                                                           \
            lane[f % FACTOR_LANES] += pairs[f];                                                              \
    }                                                                                                        \
                                                                                                             \
    VECTOR_INLINE void gradient_##width##x##count(const struct row *row, int ones, size_t dim,               \
                                                  float residual, const float *v, const float *sum,          \
                                                  float *gv)                                                 \
    {                                                                                                        \
        wide##width s[count];                                                                                \
        memcpy(s, sum, sizeof s);                                                                            \
        for (size_t i = 0; i < row->n; i++) {                                                                \
            const float x = ones ? 1.0f : row->value[i], dx = residual * x;                                  \
            const size_t at = (size_t)row->index[i] * dim;                                                   \
            for (size_t k = 0; k < count; k++) {                                                             \
                wide##width vx = *(const wide##width *)(v + at + k * width);                                 \
                if (!ones)                                                                                   \
                    vx *= x;                                                                                 \
                *(wide##width *)(gv + at + k * width) += dx * (s[k] - vx);                                   \
            }                                                                                                \
        }                                                                                                    \
    }

SPAN_LOOPS(16, 1)
SPAN_LOOPS(8, 2)
SPAN_LOOPS(8, 1)
SPAN_LOOPS(4, 4)
SPAN_LOOPS(4, 2)
SPAN_LOOPS(4, 1)
SPAN_LOOPS(1, 1)

#define SPAN16(name, wide, ...)                                                                              \
    ((wide) == 16  ? name##_16x1(__VA_ARGS__)                                                                \
     : (wide) == 8 ? name##_8x2(__VA_ARGS__)                                                                 \
                   : name##_4x4(__VA_ARGS__))
#define SPAN8(name, wide, ...) ((wide) == 4 ? name##_4x2(__VA_ARGS__) : name##_8x1(__VA_ARGS__))

VECTOR_INLINE struct row row_of(const struct batch *batch, size_t r)
{
    size_t from = batch->start[r] - batch->start[0];
    return (struct row){.index = batch->index + from,
                        .value = batch->value ? batch->value + from : NULL,
                        .n = batch->start[r + 1] - batch->start[r]};
}

VECTOR_INLINE void margins(const struct batch *batch, int wide, int ones, size_t dim, const float *v,
                           float *sum, float *margin)
{
    for (size_t r = 0; r < batch->rows; r++) {
        struct row row = row_of(batch, r);
        float lane[FACTOR_LANES] = {0}, *s = sum + r * dim;
        size_t f = 0;
        for (; f + 16 <= dim; f += 16)
            SPAN16(margin, wide, &row, ones, dim, v + f, s + f, lane);
        for (; f + 8 <= dim; f += 8)
            SPAN8(margin, wide, &row, ones, dim, v + f, s + f, lane);
        for (; f + 4 <= dim; f += 4)
            margin_4x1(&row, ones, dim, v + f, s + f, lane + f % FACTOR_LANES);
        for (; f < dim; f++)
            margin_1x1(&row, ones, dim, v + f, s + f, lane + f % FACTOR_LANES);
        margin[r] += 0.5f * factors_fold(lane);
    }
}

VECTOR_INLINE void factor_gradient(const struct batch *batch, int wide, int ones, size_t dim, const float *v,
                                   const float *sum, const float *residual, float *gv)
{
    for (size_t r = 0; r < batch->rows; r++) {
        struct row row = row_of(batch, r);
        const float *s = sum + r * dim;
        size_t f = 0;
        for (; f + 16 <= dim; f += 16)
            SPAN16(gradient, wide, &row, ones, dim, residual[r], v + f, s + f, gv + f);
        for (; f + 8 <= dim; f += 8)
            SPAN8(gradient, wide, &row, ones, dim, residual[r], v + f, s + f, gv + f);
        for (; f + 4 <= dim; f += 4)
            gradient_4x1(&row, ones, dim, residual[r], v + f, s + f, gv + f);
        for (; f < dim; f++)
            gradient_1x1(&row, ones, dim, residual[r], v + f, s + f, gv + f);
    }
}

/* The usual sizes, each with its constants. */
VECTOR_INLINE void any_margins(const struct batch *batch, int wide, size_t dim, const float *v, float *sum,
                               float *margin)
{
    int ones = !batch->value;
    if (dim == 8 && ones)
        margins(batch, wide, 1, 8, v, sum, margin);
    else if (dim == 8)
        margins(batch, wide, 0, 8, v, sum, margin);
    else if (dim == 16)
        margins(batch, wide, ones, 16, v, sum, margin);
    else if (dim == 4)
        margins(batch, wide, ones, 4, v, sum, margin);
    else
        margins(batch, wide, ones, dim, v, sum, margin);
}

VECTOR_INLINE void any_gradient(const struct batch *batch, int wide, size_t dim, const float *v,
                                const float *sum, const float *residual, float *gv)
{
    int ones = !batch->value;
    if (dim == 8 && ones)
        factor_gradient(batch, wide, 1, 8, v, sum, residual, gv);
    else if (dim == 8)
        factor_gradient(batch, wide, 0, 8, v, sum, residual, gv);
    else if (dim == 16)
        factor_gradient(batch, wide, ones, 16, v, sum, residual, gv);
    else if (dim == 4)
        factor_gradient(batch, wide, ones, 4, v, sum, residual, gv);
    else
        factor_gradient(batch, wide, ones, dim, v, sum, residual, gv);
}

VECTOR_LOOP(void, pair_margins,
            (const struct batch *batch, size_t dim, const float *v, float *sum, float *margin),
            any_margins(batch, VECTOR_FLOATS, dim, v, sum, margin));
VECTOR_LOOP(void, pair_gradient,
            (const struct batch *batch, size_t dim, const float *v, const float *sum, const float *residual,
             float *gv),
            any_gradient(batch, VECTOR_FLOATS, dim, v, sum, residual, gv));

void fm_margins(const struct batch *batch, uint32_t dim, const float *w, const float *v, float *sum,
                float *margin)
{
    lr_margins(batch, w, margin);
    pair_margins_at[vector_level()](batch, dim, v, sum, margin);
}

void fm_gradient(const struct batch *batch, uint32_t dim, const float *v, const float *sum,
                 const float *residual, float *gw, float *gv)
{
    lr_gradient(batch, residual, gw);
    memset(gv, 0, batch->unique * dim * sizeof *gv);
    pair_gradient_at[vector_level()](batch, dim, v, sum, residual, gv);
}

/* ---- the model ---- */

static const struct model_setting settings[] = {
    [FACTORS_DIM] = FACTOR_SETTING(8), [FACTORS_INIT] = FACTOR_INIT_SETTING(0.03)};

/* The factors' learning rate is that of docs/TRAINING.md, "Several workers". */
static const struct model_table_def tables[] = {
    [FACTORS_W] = WEIGHTS_TABLE,
    [FACTORS_V] = {.name = "v",
                   .prefix = "factor-",
                   .what = "the factors",
                   .optimizer = "adagrad",
                   .alpha = 0.1,
                   .beta = 10,
                   .long_rows = 4},
};

static size_t fm_scratch(const struct model_info *info, size_t rows)
{
    return rows * factors_dim(info);
}

static void fm_model_margins(const struct model_info *info, const struct batch *batch, float *const *param,
                             float *scratch, float *margin)
{
    fm_margins(batch, factors_dim(info), param[FACTORS_W], param[FACTORS_V], scratch, margin);
}

static void fm_model_gradient(const struct model_info *info, const struct batch *batch, float *const *param,
                              float *scratch, const float *residual, float *const *grad)
{
    fm_gradient(batch, factors_dim(info), param[FACTORS_V], scratch, residual, grad[FACTORS_W],
                grad[FACTORS_V]);
}

const struct model_ops model_fm = {
    .name = "fm",
    .help = "a factorization machine (FM)",
    .setting = settings,
    .settings = sizeof settings / sizeof *settings,
    .table = tables,
    .tables = sizeof tables / sizeof *tables,
    .order = 2,
    .shape = factors_shape,
    .scratch = fm_scratch,
    .mask = factors_mask,
    .margins = fm_model_margins,
    .gradient = fm_model_gradient,
};
