/*
 * Looks for new models on a thread of its own, because loading one may take long, and signals and deadlines of requests
 * do not wait for it. It knows nothing of HTTP. Tests: test/e2e/serve.sh.
 */
#ifndef CMD_SERVE_RELOADER_H
#define CMD_SERVE_RELOADER_H

#include "learn/serve/service.h"

#include <pthread.h>

struct reloader {
    struct service *service;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t asked;
    int force, end, busy;
};

/* reloader and service stay the caller's, until reloader_stop has returned 1. */
PARAMO_MUST_USE paramo_err reloader_start(struct reloader *reloader, struct service *service);
/* Loads the model at once, even if it has not changed. */
void reloader_force(struct reloader *reloader);
/* Ends the thread. 0: it is still loading a model; it does not wait, and the process may end. */
int reloader_stop(struct reloader *reloader);

#endif
