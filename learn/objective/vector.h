/*
 * Loops over numbers that are compiled once for each vector level and chosen at run time (paramo_cpu).
 *
 * VECTOR_LOOP(type, name, arguments, call) makes name_base, name_avx2 and name_avx512 from one always-inlined body, and
 * a table of them: name_at[vector_level()](...) calls the right one. The body's lanes must not depend on each other,
 * and its sums must have a fixed order. Then, without contraction (CMakeLists.txt), every level gives the same bits,
 * which the tests of each loop show. On other architectures all three are the same. It never knows what the loops
 * compute. Tests: those of each loop, such as test/learn/test_fm.c.
 */
#ifndef LEARN_OBJECTIVE_VECTOR_H
#define LEARN_OBJECTIVE_VECTOR_H

#include "paramo/paramo.h"

enum vector_level { VECTOR_BASE, VECTOR_AVX2, VECTOR_AVX512, VECTOR_LEVELS };

#define VECTOR_INLINE static inline __attribute__((always_inline))
#if defined(__x86_64__)
#define VECTOR_TARGET_AVX2   __attribute__((target("avx2")))
#define VECTOR_TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#else
#define VECTOR_TARGET_AVX2
#define VECTOR_TARGET_AVX512
#endif

/* In `call`, the constant VECTOR_FLOATS is the number of floats in a register of the level. */
#define VECTOR_LOOP(type, name, arguments, call)                                                             \
    static type name##_base arguments                                                                        \
    {                                                                                                        \
        enum { VECTOR_FLOATS = 4 };                                                                          \
        return call;                                                                                         \
    }                                                                                                        \
    VECTOR_TARGET_AVX2 static type name##_avx2 arguments                                                     \
    {                                                                                                        \
        enum { VECTOR_FLOATS = 8 };                                                                          \
        return call;                                                                                         \
    }                                                                                                        \
    VECTOR_TARGET_AVX512 static type name##_avx512 arguments                                                 \
    {                                                                                                        \
        enum { VECTOR_FLOATS = 16 };                                                                         \
        return call;                                                                                         \
    }                                                                                                        \
    static type(*const name##_at[VECTOR_LEVELS]) arguments = {name##_base, name##_avx2, name##_avx512}

/* The level to use. */
static inline enum vector_level vector_level(void)
{
    const char *name = paramo_cpu(); /* "base", "avx2", "avx512" */
    return name[0] == 'b' ? VECTOR_BASE : name[3] == '2' ? VECTOR_AVX2 : VECTOR_AVX512;
}

#endif
