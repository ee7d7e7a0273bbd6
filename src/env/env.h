/*
 * An environment: clock and randomness, real (env/real/real.c) or simulated (sim/env/sim.h). Only src/env
 * and src/van ask the system for time, random numbers, threads or files. An env outlives everything made
 * with it. Any thread may call its functions. Tests: test/env/test_lane.c, test/sim/test_sim.c.
 */
#ifndef ENV_ENV_H
#define ENV_ENV_H

#include <stdint.h>

#include "base/err.h"

struct env;
struct lane;

struct env_ops {
    /* Monotonic nanoseconds, never 0. */
    uint64_t (*now)(struct env *env);
    /* 64 random bits: from the kernel, or from the simulation's seed. */
    uint64_t (*random)(struct env *env);
    /* How to start, wake, wait for and end a lane of this env (env/lane.c only). */
    const struct lane_ops *lanes;
    /* How to run blocking functions beside the lanes (env/blocking_job.c only). */
    const struct blocking_job_ops *blocking_jobs;
};

struct env {
    const struct env_ops *ops;
};

#define ENV_SEC UINT64_C(1000000000)
#define ENV_MS  UINT64_C(1000000)
#define ENV_US  UINT64_C(1000)

static inline uint64_t env_now(struct env *env)
{
    return env->ops->now(env);
}

static inline uint64_t env_random(struct env *env)
{
    return env->ops->random(env);
}

/* The one real environment of this process. */
struct env *env_real(void);

#endif
