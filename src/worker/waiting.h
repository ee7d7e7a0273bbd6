/*
 * The calls of the application's threads that issue no request: wait, cancel, run deferred callbacks, read counters
 * (client.h). It never knows how a request is sent. Tests: test/worker/test_client_threads.c.
 */
#ifndef WORKER_WAITING_H
#define WORKER_WAITING_H

#include "worker/client_types.h"

/* As paramo_wait, paramo_wait_all, paramo_test, paramo_cancel. */
MUST_USE paramo_err client_wait(struct client *client, uint64_t ts, uint32_t timeout_ms);
/* Waits for a call with this `status` (struct client_call). It returns the failure also when later ones have displaced
 * it (tracker.h): what the library itself waits for must not be taken for a success. */
MUST_USE paramo_err client_wait_status(struct client *client, uint64_t ts, const paramo_err *status);
MUST_USE paramo_err client_wait_all(struct client *client, uint32_t timeout_ms);
MUST_USE paramo_err client_test(struct client *client, uint64_t ts, int *done);
MUST_USE paramo_err client_cancel(struct client *client, uint64_t ts);
/* As paramo_answers. */
MUST_USE paramo_err client_answers(struct client *client, uint64_t ts, uint32_t *count);
/* Async-signal-safe: waits end with CLOSED when they next wake (the node posts to the lane). */
void client_interrupt(struct client *client);

/* From now on callbacks wait for client_run_callbacks, which runs them one at a time. */
void client_defer_callbacks(struct client *client);
void client_run_callbacks(struct client *client);

/* Any thread; a snapshot as of the lane's last round. */
void client_get_counters(struct client *client, struct client_counters *counters);

/* Runs the task, a callback, off the lane, after those before it. */
void client_complete(struct client *c, struct lane_task *task);
/* On the lane: makes the counters readable from any thread. */
void client_publish(struct client *c);

#endif
