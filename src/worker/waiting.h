/*
 * What an application's threads do besides issuing requests: wait, cancel, run deferred callbacks, read
 * counters (client.h). It never knows how a request is sent. Tests: test/worker/test_client_threads.c.
 */
#ifndef WORKER_WAITING_H
#define WORKER_WAITING_H

#include "worker/client_impl.h"

/* On the lane: makes the counters readable from any thread. */
void client_publish(struct client *c);

#endif
