/*
 * The user's request handlers, of tables and of apps (paramo_serve, paramo_app_serve): hands a shard's
 * requests to them, and keeps requests for which there is no handler yet. It never knows what a request asks
 * for. Tests: test/node/test_app.c.
 */
#ifndef NODE_SERVE_H
#define NODE_SERVE_H

#include "node/node.h"

/* Before the node serves an app. */
void serve_init(paramo_node *node);
void dispatch_init(struct dispatch *dispatch, paramo_node *node, struct lane *lane);
/* What dispatch_request needs of each request's memory (shard_config.request_room). */
size_t dispatch_room(void);
/* Takes a request from the shard, on its lane. */
void dispatch_request(void *dispatch, struct shard_request *request, const struct shard_request_info *info);
/* On the lane, before the shard closes: requests that wait are answered with CLOSED. */
void dispatch_close(struct dispatch *dispatch);
/* Serves an app of the library's own, for any customer. Not on a lane. */
MUST_USE paramo_err serve_app(paramo_node *node, uint32_t app, paramo_handler handler, void *arg);
/* Wakes the threads in paramo_app_take to check whether they must return. Any thread. */
void serve_nudge(paramo_node *node);
/* Closes all apps. The threads that take requests from them are woken, and return soon. */
void serve_close_all(paramo_node *node);

#endif
