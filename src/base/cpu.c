#include "base/cpu.h"

#include <stdatomic.h>
#include <string.h>

static const char *const names[CPU_LEVELS] = {"base", "avx2", "avx512"};
static atomic_int limit = CPU_LEVELS - 1;

static enum cpu_level highest(void)
{
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2")) /* asks the system, too: it must save the registers */
        return CPU_BASE;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
               ? CPU_AVX512
               : CPU_AVX2;
#else
    return CPU_BASE;
#endif
}

enum cpu_level cpu_level(void)
{
    int most = atomic_load_explicit(&limit, memory_order_relaxed);
    enum cpu_level here = highest();
    return (int)here < most ? here : (enum cpu_level)most;
}

paramo_err cpu_limit(const char *name)
{
    int level = 0;
    if (strcmp(name, "auto") == 0)
        level = CPU_LEVELS - 1;
    else
        while (level < CPU_LEVELS && strcmp(name, names[level]) != 0)
            level++;
    if (level == CPU_LEVELS)
        return err_set(PARAMO_E_INVALID, "'%s' is not a vector level: use auto, base, avx2 or avx512", name);
    if (strcmp(name, "auto") != 0 && level > (int)highest())
        return err_set(PARAMO_E_UNSUPPORTED,
                       "this processor does not support %s; set PARAMO_CPU to a lower level", name);
    atomic_store(&limit, level);
    return PARAMO_OK;
}

const char *cpu_level_name(enum cpu_level level)
{
    return names[level];
}
