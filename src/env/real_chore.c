#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "env/chore_impl.h"

struct real_chores {
    struct chores chores;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t posted;
    struct queue waiting;
    bool stop;
};

static struct real_chores *chores_of(struct chores *chores)
{
    return container_of(chores, struct real_chores, chores);
}

static void *real_chores_run(void *arg)
{
    struct real_chores *c = arg;
    (void)pthread_mutex_lock(&c->lock);
    for (;;) {
        while (queue_empty(&c->waiting) && !c->stop)
            (void)pthread_cond_wait(&c->posted, &c->lock);
        struct qnode *node = queue_pop(&c->waiting);
        if (!node)
            break;
        (void)pthread_mutex_unlock(&c->lock);
        chore_do(container_of(node, struct chore, node));
        (void)pthread_mutex_lock(&c->lock);
    }
    (void)pthread_mutex_unlock(&c->lock);
    return NULL;
}

static paramo_err real_chores_create(struct env *env, const char *name, struct chores **out)
{
    (void)env;
    struct real_chores *c = calloc(1, sizeof *c);
    if (!c)
        return err_memory(sizeof *c);
    (void)pthread_mutex_init(&c->lock, NULL);
    (void)pthread_cond_init(&c->posted, NULL);
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&c->thread, NULL, real_chores_run, c);
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
    *out = &c->chores;
    return PARAMO_OK;
}

static void real_chores_post(struct chores *chores, struct chore *chore)
{
    struct real_chores *c = chores_of(chores);
    (void)pthread_mutex_lock(&c->lock);
    queue_push(&c->waiting, &chore->node);
    (void)pthread_cond_signal(&c->posted);
    (void)pthread_mutex_unlock(&c->lock);
}

static void real_chores_destroy(struct chores *chores)
{
    struct real_chores *c = chores_of(chores);
    (void)pthread_mutex_lock(&c->lock);
    c->stop = true;
    (void)pthread_cond_signal(&c->posted);
    (void)pthread_mutex_unlock(&c->lock);
    (void)pthread_join(c->thread, NULL);
    (void)pthread_cond_destroy(&c->posted);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

const struct chore_ops real_chore_ops = {
    .create = real_chores_create, .post = real_chores_post, .destroy = real_chores_destroy};
