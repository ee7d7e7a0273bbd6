/*
 * w += g, for every type of value. Integers wrap. Without state or options.
 */
#include "table/optimizer/optimizer.h"

/* add for one type: unsigned arithmetic for the integers, which wrap. */
#define ADD_KERNEL(name, type)                                                                               \
    static void name##_span(const struct optimizer *o, void *w, float *s0, float *s1, float t,               \
                            const void *g, size_t n)                                                         \
    {                                                                                                        \
        (void)o;                                                                                             \
        (void)s0;                                                                                            \
        (void)s1;                                                                                            \
        (void)t;                                                                                             \
        type *restrict to = w;                                                                               \
        const type *restrict from = g;                                                                       \
        for (size_t i = 0; i < n; i++) {                                                                     \
            to[i] = (type)(to[i] + from[i]);                                                                 \
        }                                                                                                    \
    }                                                                                                        \
    static void name##_rows(const struct optimizer *o, void *const *rows, size_t count, size_t dim,          \
                            const void *g)                                                                   \
    {                                                                                                        \
        (void)o;                                                                                             \
        const type *restrict from = g;                                                                       \
        if (dim == 1) {                                                                                      \
            for (size_t i = 0; i < count; i++) {                                                             \
                type *to = rows[i];                                                                          \
                *to = (type)(*to + from[i]);                                                                 \
            }                                                                                                \
            return;                                                                                          \
        }                                                                                                    \
        for (size_t i = 0; i < count; i++) {                                                                 \
            type *restrict to = rows[i];                                                                     \
            for (size_t j = 0; j < dim; j++) {                                                               \
                to[j] = (type)(to[j] + from[i * dim + j]);                                                   \
            }                                                                                                \
        }                                                                                                    \
    }

ADD_KERNEL(add_f32, float)
ADD_KERNEL(add_f64, double)
ADD_KERNEL(add_u32, uint32_t)
ADD_KERNEL(add_u64, uint64_t)
ADD_KERNEL(add_u8, uint8_t)

#define ADD_FOR(name)                                                                                        \
    {                                                                                                        \
        {name##_span, name##_span, name##_span}, name##_rows                                                 \
    }

const struct optimizer_def optimizer_add = {
    .input = OPTIMIZER_FINITE,
    .kernel = {[PARAMO_F32] = ADD_FOR(add_f32),
               [PARAMO_F64] = ADD_FOR(add_f64),
               [PARAMO_I32] = ADD_FOR(add_u32),
               [PARAMO_I64] = ADD_FOR(add_u64),
               [PARAMO_U8] = ADD_FOR(add_u8)},
};
