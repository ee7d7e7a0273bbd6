/*
 * Copies answers into the caller's arrays where they could not be received in place. It never knows where the
 * values came from. Tests: test/worker/test_client.c.
 */
#ifndef WORKER_GATHER_H
#define WORKER_GATHER_H

#include "worker/client_impl.h"

/* Copies the rows of a finished split chunk or a scattered slice to their places. */
void gather_split(struct chunk *chunk);
void gather_chunk(struct chunk *chunk);
/* All answers with lens: SIZE_MISMATCH if there is no room. */
MUST_USE paramo_err gather_lens(struct request *r);

#endif
