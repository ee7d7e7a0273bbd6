#include "env/blocking_job.h"

#include "env/blocking_job_impl.h"

static void blocking_job_end(struct lane_task *task)
{
    struct blocking_job *blocking_job = container_of(task, struct blocking_job, end);
    blocking_job->done(blocking_job);
}

void blocking_job_do(struct blocking_job *blocking_job)
{
    blocking_job->work(blocking_job);
    if (!blocking_job->lane) {
        blocking_job->done(blocking_job);
        return;
    }
    blocking_job->end.run = blocking_job_end;
    lane_post(blocking_job->lane, &blocking_job->end);
}

paramo_err blocking_jobs_create(struct env *env, const char *name, struct blocking_jobs **blocking_jobs)
{
    paramo_err err = env->ops->blocking_jobs->create(env, name, blocking_jobs);
    if (!err)
        (*blocking_jobs)->ops = env->ops->blocking_jobs;
    return err;
}

void blocking_jobs_post(struct blocking_jobs *blocking_jobs, struct blocking_job *blocking_job)
{
    blocking_jobs->ops->post(blocking_jobs, blocking_job);
}

void blocking_jobs_destroy(struct blocking_jobs *blocking_jobs)
{
    if (blocking_jobs)
        blocking_jobs->ops->destroy(blocking_jobs);
}
