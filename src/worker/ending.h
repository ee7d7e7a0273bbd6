/*
 * A request is marked as ended, with its status. client_finish does the rest, at the end of the lane's entry. It never
 * knows why a request ends. Tests: test/worker/test_client.c.
 */
#ifndef WORKER_ENDING_H
#define WORKER_ENDING_H

#include "worker/client_impl.h"

/* Only the first ending counts. */
void request_end(struct request *r, paramo_err status, const char *text);
/* A node of a MESSAGE has failed: the request ends with the first failure, when all nodes have answered or failed. */
void request_note(struct request *r, paramo_err status, const char *text);
/* All nodes of a MESSAGE have answered or failed. */
void request_close(struct request *r);

#endif
