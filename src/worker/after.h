/*
 * Order among requests: one that names earlier ones is held until they have completed. It never knows what a
 * request does. On the lane. Tests: test/worker/test_hold.c.
 */
#ifndef WORKER_AFTER_H
#define WORKER_AFTER_H

#include "worker/client_impl.h"

/* True: the request must not be sliced now. It has ended, or after_done will slice it. */
bool after_hold(struct client *c, struct request *r);
/* The request is over: it waits for no other, and requests that wait for it may be sent. */
void after_done(struct client *c, struct request *r);

#endif
