/*
 * Turns of slicing: chunks that wait for a view, or for a turn, are sliced in order, and no turn holds the lane for
 * more than about a millisecond. A new request waits behind them. It must never know how a request or a chunk is
 * sliced. On the lane. Tests: test/worker/test_client.c, test/worker/test_exactly_once_sim.c; bench/steps.c measures
 * a turn.
 */
#ifndef WORKER_SLICING_TURNS_H
#define WORKER_SLICING_TURNS_H

#include "worker/client_impl.h"

struct client_turns {
    struct client *client;
    struct lane_timer timer; /* the next turn of chunks that wait */
};

void slicing_turns_init(struct client *c);
/* No more turns. */
void slicing_turns_close(struct client *c);

/* Slices the request, in a turn where it has many keys; the request may have ended on return. */
void slice_request(struct client *c, struct request *r);
/* A new view has come: chunks that wait for it, or for a turn, are sliced in order, in turns of a millisecond. Later
 * requests wait behind them. */
void slice_resume_waiting(struct client *c);

#endif
