/*
 * Finds mistakes in a request before anything is sent: each has its own error, with the index and the key.
 * Pure; runs in the caller's thread. It never knows views or connections. Tests: test/worker/test_check.c.
 */
#ifndef WORKER_CHECK_H
#define WORKER_CHECK_H

#include "worker/client_types.h"

/* frame_bytes: the largest message that may be sent. */
MUST_USE paramo_err check_call(const struct client_call *call, uint64_t frame_bytes);
/* keys[0 .. n-1] ascend without repeats: KEYS_UNSORTED, KEYS_REPEATED. */
MUST_USE paramo_err check_keys(const uint64_t *keys, size_t n);
/* *sum of n lens. */
void check_sum(const uint32_t *lens, size_t n, uint64_t *sum);

#endif
