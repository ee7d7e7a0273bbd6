/*
 * Which shard is reached over which link, by the present view; client_set_view is here. It never knows what a
 * link sends. On the lane. Tests: test/worker/test_client.c, test/worker/test_succession.c.
 */
#ifndef WORKER_ROUTE_H
#define WORKER_ROUTE_H

#include "worker/client_types.h"

/* On the lane. Takes a reference of its own; a view that is not newer is ignored. */
void client_set_view(struct client *client, struct view *view);
void route_init(struct client *c);
void route_fini(struct client *c);

#endif
