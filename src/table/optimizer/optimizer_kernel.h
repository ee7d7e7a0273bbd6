/*
 * What the files of gradient optimizers share: the shape of a kernel, its compilation for each level of vector
 * instructions, and arithmetic that several formulas use. An optimizer writes
 *
 *     FLOAT_SPAN(name) { ... a loop over n columns ... }
 *     SPAN_OF(name)
 *
 * and names the kernel in its definition: GRADIENT_KERNEL(name, optimizer_rows_by_span). Included by opt_*.c
 * only. It never knows tables. Tests: test/table/test_optimizer.c.
 */
#ifndef TABLE_OPTIMIZER_OPTIMIZER_KERNEL_H
#define TABLE_OPTIMIZER_OPTIMIZER_KERNEL_H

#include <float.h>
#include <math.h>

#include "table/optimizer/optimizer.h"

/* rows of an optimizer without a count, and of one with it: spans of its kernel. */
optimizer_rows_fn optimizer_rows_by_span;
optimizer_rows_fn optimizer_rows_counted;

/* Each float kernel is one function over a span, written without branches so that compilers turn it into
 * vector code. restrict is true: w and the state are distinct, and g is the caller's. */
#define FLOAT_SPAN(name)                                                                                     \
    static inline __attribute__((always_inline)) void name(const struct optimizer *o, float *restrict w,     \
                                                           float *restrict s0, float *restrict s1, float t,  \
                                                           const float *restrict g, size_t n)

#define SPAN_AT(name, level, target)                                                                         \
    target static void name##_##level(const struct optimizer *o, void *w, float *s0, float *s1, float t,     \
                                      const void *g, size_t n)                                               \
    {                                                                                                        \
        const struct optimizer local = *o; /* in registers: stores to w cannot change it */                  \
        name(&local, w, s0, s1, t, g, n);                                                                    \
    }

/* One kernel, compiled for each level of vector instructions (base/cpu.h): the same bits, since columns do
 * not depend on each other and nothing is contracted. */
#if defined(__x86_64__)
#define SPAN_OF(name)                                                                                        \
    SPAN_AT(name, base, )                                                                                    \
    SPAN_AT(name, avx2, CPU_TARGET_AVX2)                                                                     \
    SPAN_AT(name, avx512, CPU_TARGET_AVX512)
#define LEVELS(name)                                                                                         \
    {                                                                                                        \
        name##_base, name##_avx2, name##_avx512                                                              \
    }
#else
#define SPAN_OF(name) SPAN_AT(name, base, )
#define LEVELS(name)                                                                                         \
    {                                                                                                        \
        name##_base, name##_base, name##_base                                                                \
    }
#endif

/* The kernels of a definition: F32, every level of vector instructions. */
#define GRADIENT_KERNEL(name, rows_fn)                                                                       \
    {                                                                                                        \
        [PARAMO_F32] = { LEVELS(name), rows_fn }                                                             \
    }

/* sign(x) max(|x| - threshold, 0) */
static inline float soft(float x, float threshold)
{
    float rest = fabsf(x) - threshold;
    return rest > 0 ? copysignf(rest, x) : 0.0F;
}

static inline float saturate(float x)
{
    return x < FLT_MAX ? x : FLT_MAX;
}

#endif
