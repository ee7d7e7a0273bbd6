#include "van/resolve.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

struct resolve {
    struct lane_task task;
    pthread_mutex_t lock; /* guards lane */
    struct lane *lane;    /* NULL: dropped; the thread frees the question */
    /* owned by the lane; NULL: dropped */
    void (*answer)(void *arg, const struct addr_list *list, paramo_err why, const char *text);
    void *arg;
    char host[ADDR_HOST_MAX];
    uint16_t port;
    paramo_err why;
    char text[ERR_TEXT_MAX];
    struct addr_list list;
};

static void resolve_free(struct resolve *q)
{
    pthread_mutex_destroy(&q->lock);
    free(q);
}

static void resolve_answer(struct lane_task *task)
{
    struct resolve *q = container_of(task, struct resolve, task);
    /* The thread may still be releasing the lock. */
    pthread_mutex_lock(&q->lock);
    pthread_mutex_unlock(&q->lock);
    if (q->answer)
        q->answer(q->arg, &q->list, q->why, q->text);
    resolve_free(q);
}

static void *resolve_thread(void *arg)
{
    struct resolve *q = arg;
    q->why = addr_resolve(q->host, q->port, &q->list);
    if (q->why)
        err_text_copy(q->text);
    pthread_mutex_lock(&q->lock);
    struct lane *lane = q->lane;
    if (lane) {
        lane_post(lane, &q->task); /* under the lock, so that the lane stays: resolve_drop waits for it */
    }
    pthread_mutex_unlock(&q->lock);
    if (!lane)
        resolve_free(q);
    return NULL;
}

paramo_err resolve_start(struct lane *lane, const char *host, uint16_t port,
                         void (*answer)(void *arg, const struct addr_list *list, paramo_err why,
                                        const char *text),
                         void *arg, struct resolve **question)
{
    struct resolve *q = calloc(1, sizeof *q);
    if (!q)
        return err_memory(sizeof *q);
    pthread_mutex_init(&q->lock, NULL);
    q->task.run = resolve_answer;
    q->lane = lane;
    q->answer = answer;
    q->arg = arg;
    q->port = port;
    (void)snprintf(q->host, sizeof q->host, "%s", host);

    sigset_t all, before;
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, &attr, resolve_thread, q);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (failed) {
        resolve_free(q);
        return err_errno(PARAMO_E_SYSTEM, failed, "start a thread to resolve %s", host);
    }
    *question = q;
    return PARAMO_OK;
}

void resolve_drop(struct resolve *q)
{
    q->answer = NULL;
    pthread_mutex_lock(&q->lock);
    assert(q->lane); /* it is dropped once */
    q->lane = NULL;
    /* If the question was posted, resolve_answer frees it, otherwise the thread does. The unlock comes last:
     * after it the thread may free the question. */
    pthread_mutex_unlock(&q->lock);
}
