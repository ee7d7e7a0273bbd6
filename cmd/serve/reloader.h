/*
 * Loads new models on a thread of its own: loading may take long, and signals and deadlines of requests must not wait
 * for it. It never knows HTTP. Tests: test/e2e/serve.sh.
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

/* Starts the thread. reloader and service must stay valid until reloader_stop has returned 1. SYSTEM: no thread. */
PARAMO_MUST_USE paramo_err reloader_start(struct reloader *reloader, struct service *service);
/* Loads the model at once, even if it has not changed. */
void reloader_force(struct reloader *reloader);
/* Ends the thread. Returns 0 if it still loads a model and cannot be interrupted: the process may end without it. */
int reloader_stop(struct reloader *reloader);

#endif
