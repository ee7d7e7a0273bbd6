/*
 * Sends the floor of the client's numbers to servers that get no other message from the client. It never knows how
 * the floor rises.
 * Tests: test/worker/test_client.c, test/worker/test_senders.c.
 */
#ifndef WORKER_FLOOR_H
#define WORKER_FLOOR_H

#include "worker/client_impl.h"

struct client_floor {
    struct client *client;
    struct lane_timer timer; /* a server may not know the floor */
};

void floor_init(struct client *c);
void floor_close(struct client *c);

/* The floor has risen: servers that get no other message from this client are told later. */
void floor_rises(struct client *c);

#endif
