/*
 * The callbacks of a client: those that are running, and those that wait until the application runs them (waiting.c).
 * It must never know what a callback does. Any thread. Tests: test/worker/test_client_threads.c.
 */
#ifndef WORKER_CALLBACKS_H
#define WORKER_CALLBACKS_H

#include "worker/client_impl.h"

struct client_callbacks {
    atomic_bool deferred; /* callbacks wait for client_run_callbacks */
    atomic_uint out;      /* requests whose callback has not returned to the lane; its holder writes it */
    struct mailbox queue; /* deferred */
    atomic_flag running;
};

void callbacks_init(struct client *c);
/* On the lane: the callback of a request leaves it; it returns by callbacks_ended. */
void callbacks_begun(struct client *c);
void callbacks_ended(struct client *c);
unsigned callbacks_out(const struct client *c);
/* Do callbacks wait for client_run_callbacks? */
bool callbacks_deferred(struct client *c);

#endif
