/*
 * Which vector instructions the loops over numbers may use: what this processor has, or less if somebody
 * limits it. A loop that gains from wider vectors is compiled once per level from one body and chosen by
 * cpu_level() at run time; all levels give the same bits (no contraction, lanes that do not depend on each
 * other, sums in a fixed order), which its test shows by cpu_limit. On other architectures than x86-64 there
 * is one level, what the compiler makes of the portable body (NEON where that is part of the architecture).
 * Knows no loop. Tests: test/base/test_cpu.c.
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

/* The level to use: what the processor and the system have, at most what cpu_limit last said. Any thread. */
enum cpu_level cpu_level(void);
/* "base", "avx2" or "avx512" at most; "auto": all that there is, as at the start. INVALID: another word;
 * UNSUPPORTED: this processor does not have it. */
MUST_USE paramo_err cpu_limit(const char *name);
/* As cpu_limit takes it. */
const char *cpu_level_name(enum cpu_level level);

#endif
