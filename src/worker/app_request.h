/*
 * Messages to apps on other nodes: which nodes each goes to, one chunk for each, answers passed on as they
 * come. The client makes each chunk arrive once. It never knows what a message means. Tests:
 * test/worker/test_app_request.c, test_app_request_sim.c.
 */
#ifndef WORKER_APP_REQUEST_H
#define WORKER_APP_REQUEST_H

#include "worker/client_impl.h"

/* In the caller's thread, before a timestamp is taken: INVALID, TOO_LARGE. */
MUST_USE paramo_err app_request_check(const struct client *c, const struct client_call *call);
/* Takes the messages over into r (with PARAMO_COPY: their bytes too). */
MUST_USE paramo_err app_request_fill(struct request *r, const struct client_call *call);
/* A chunk for each message and node. */
void app_request_slice(struct client *c, struct request *r);
/* The chunk's node has another link, or none, by the present view. */
void app_request_slice_again(struct client *c, struct chunk *chunk);
/* An answer; in its frame() callback. False: there was no memory, the request has ended. */
MUST_USE bool app_request_take_answer(struct client *c, struct slice *p, const struct van_seg *seg,
                                      unsigned nseg);

#endif
