/* The inside of blocking jobs. Only for env/blocking_job.c, env/real/real_blocking_job.c and sim/env/sim.c.
 * Tests: test/env/test_blocking_job.c. */
#ifndef ENV_BLOCKING_JOB_IMPL_H
#define ENV_BLOCKING_JOB_IMPL_H

#include "base/err.h"

struct blocking_job;
struct blocking_jobs;
struct env;

struct blocking_job_ops {
    paramo_err (*create)(struct env *env, const char *name, struct blocking_jobs **blocking_jobs);
    void (*post)(struct blocking_jobs *blocking_jobs, struct blocking_job *blocking_job);
    void (*destroy)(struct blocking_jobs *blocking_jobs);
};

/* The real and the simulated kind embed this. */
struct blocking_jobs {
    const struct blocking_job_ops *ops;
};

/* Runs the job and posts its end. */
void blocking_job_do(struct blocking_job *blocking_job);

extern const struct blocking_job_ops real_blocking_job_ops;

#endif
