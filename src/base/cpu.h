/*
 * Which vector instructions the loops over numbers may use: those of this processor, or fewer after
 * cpu_limit. A loop that gains from wider vectors is compiled once per level from one body and chosen by
 * cpu_level() at run time. All levels give the same bits: there is no contraction, vector lanes do not
 * depend on each other, and sums have a fixed order. The test of each loop shows this with cpu_limit.
 * Architectures other than x86-64 have one level: the compiler's code for the portable body (NEON where that
 * is part of the architecture). This module never knows the loops. Tests: test/base/test_cpu.c.
 */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include "base/err.h"

enum cpu_level { CPU_BASE, CPU_AVX2, CPU_AVX512, CPU_LEVELS };

#if defined(__x86_64__)
#define CPU_TARGET_AVX2   __attribute__((target("avx2")))
#define CPU_TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#else
#define CPU_TARGET_AVX2
#define CPU_TARGET_AVX512
#endif

/* The level to use: that of the processor and the system, at most the last cpu_limit. Any thread. */
enum cpu_level cpu_level(void);
/* At most "base", "avx2" or "avx512"; "auto": no limit, as at the start. INVALID: another word;
 * UNSUPPORTED: this processor does not have it. */
MUST_USE paramo_err cpu_limit(const char *name);
/* The level's name for cpu_limit. */
const char *cpu_level_name(enum cpu_level level);

#endif
