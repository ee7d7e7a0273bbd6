#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "env/blocking_job.h"
#include "env/blocking_job_impl.h"

struct real_blocking_jobs {
    struct blocking_jobs blocking_jobs;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t posted;
    struct queue waiting;
    bool stop;
};

static struct real_blocking_jobs *blocking_jobs_of(struct blocking_jobs *blocking_jobs)
{
    return container_of(blocking_jobs, struct real_blocking_jobs, blocking_jobs);
}

static void *real_blocking_jobs_run(void *arg)
{
    struct real_blocking_jobs *c = arg;
    (void)pthread_mutex_lock(&c->lock);
    for (;;) {
        while (queue_empty(&c->waiting) && !c->stop)
            (void)pthread_cond_wait(&c->posted, &c->lock);
        struct qnode *node = queue_pop(&c->waiting);
        if (!node)
            break;
        (void)pthread_mutex_unlock(&c->lock);
        blocking_job_do(container_of(node, struct blocking_job, node));
        (void)pthread_mutex_lock(&c->lock);
    }
    (void)pthread_mutex_unlock(&c->lock);
    return NULL;
}

static paramo_err real_blocking_jobs_create(struct env *env, const char *name, struct blocking_jobs **out)
{
    (void)env;
    struct real_blocking_jobs *c = calloc(1, sizeof *c);
    if (!c)
        return err_memory(sizeof *c);
    (void)pthread_mutex_init(&c->lock, NULL);
    (void)pthread_cond_init(&c->posted, NULL);
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&c->thread, NULL, real_blocking_jobs_run, c);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        (void)pthread_cond_destroy(&c->posted);
        (void)pthread_mutex_destroy(&c->lock);
        free(c);
        return err_errno(PARAMO_E_SYSTEM, failed, "start the thread %s", name);
    }
    char cut[16];
    (void)snprintf(cut, sizeof cut, "%.15s", name);
    (void)pthread_setname_np(c->thread, cut);
    *out = &c->blocking_jobs;
    return PARAMO_OK;
}

static void real_blocking_jobs_post(struct blocking_jobs *blocking_jobs, struct blocking_job *blocking_job)
{
    struct real_blocking_jobs *c = blocking_jobs_of(blocking_jobs);
    (void)pthread_mutex_lock(&c->lock);
    queue_push(&c->waiting, &blocking_job->node);
    (void)pthread_cond_signal(&c->posted);
    (void)pthread_mutex_unlock(&c->lock);
}

static void real_blocking_jobs_destroy(struct blocking_jobs *blocking_jobs)
{
    struct real_blocking_jobs *c = blocking_jobs_of(blocking_jobs);
    (void)pthread_mutex_lock(&c->lock);
    c->stop = true;
    (void)pthread_cond_signal(&c->posted);
    (void)pthread_mutex_unlock(&c->lock);
    (void)pthread_join(c->thread, NULL);
    (void)pthread_cond_destroy(&c->posted);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

const struct blocking_job_ops real_blocking_job_ops = {.create = real_blocking_jobs_create,
                                                       .post = real_blocking_jobs_post,
                                                       .destroy = real_blocking_jobs_destroy};
