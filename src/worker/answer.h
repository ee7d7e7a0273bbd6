/*
 * The answers that arrive over a link, to slices and to probes. It never sends. Tests:
 * test/worker/test_client.c, test/worker/test_client_faults.c.
 */
#ifndef WORKER_ANSWER_H
#define WORKER_ANSWER_H

#include "worker/client_impl.h"

/* Callbacks of a link's connection. */
extern const struct van_user client_van_user;

#endif
