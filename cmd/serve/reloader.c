#include "cmd/serve/reloader.h"

#include <string.h>
#include <time.h>

#define CHECK_NS 200000000 /* between two refreshes of the model; arbitrary */
#define NS_PER_S 1000000000

/* Waits for an order, or until the next refresh is due. The caller has the lock. */
static void wait_for_order(struct reloader *r)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += CHECK_NS;
    until.tv_sec += until.tv_nsec / NS_PER_S;
    until.tv_nsec %= NS_PER_S;
    int err = 0;
    while (!r->force && !r->end && err == 0)
        err = pthread_cond_timedwait(&r->asked, &r->lock, &until);
}

static void *reload(void *arg)
{
    struct reloader *r = arg;
    (void)pthread_mutex_lock(&r->lock);
    for (wait_for_order(r); !r->end; wait_for_order(r)) {
        int force = r->force;
        r->force = 0;
        r->busy = 1;
        (void)pthread_mutex_unlock(&r->lock);
        service_refresh(r->service, force);
        (void)pthread_mutex_lock(&r->lock);
        r->busy = 0;
    }
    (void)pthread_mutex_unlock(&r->lock);
    return NULL;
}

static void fini(struct reloader *r)
{
    (void)pthread_cond_destroy(&r->asked);
    (void)pthread_mutex_destroy(&r->lock);
}

paramo_err reloader_start(struct reloader *r, struct service *service)
{
    pthread_condattr_t clock;
    *r = (struct reloader){.service = service};
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->asked, &clock);
    (void)pthread_condattr_destroy(&clock);
    int err = pthread_create(&r->thread, NULL, reload, r);
    if (err == 0)
        return PARAMO_OK;
    fini(r);
    return paramo_error_set(PARAMO_E_SYSTEM, "the thread that looks for new models cannot start: %s",
                            strerror(err));
}

void reloader_force(struct reloader *r)
{
    (void)pthread_mutex_lock(&r->lock);
    r->force = 1;
    (void)pthread_cond_signal(&r->asked);
    (void)pthread_mutex_unlock(&r->lock);
}

int reloader_stop(struct reloader *r)
{
    (void)pthread_mutex_lock(&r->lock);
    r->end = 1;
    (void)pthread_cond_signal(&r->asked);
    int busy = r->busy;
    (void)pthread_mutex_unlock(&r->lock);
    if (busy && !service_interrupt(r->service))
        return 0;
    (void)pthread_join(r->thread, NULL);
    fini(r);
    return 1;
}
