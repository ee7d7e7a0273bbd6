/*
 * The end of a collection (collecting.h): its pushes become one change, or are handled one by one, or wait in their
 * connections for what every request waits for. It must never know why it ends now. Tests: test/worker/test_combined.c.
 */
#ifndef SERVER_SHARD_COLLECTING_TURN_H
#define SERVER_SHARD_COLLECTING_TURN_H

#include "server/shard/collecting.h"

/* Takes all pushes of x, which is in no list any more. */
void collecting_turn(struct shard *s, struct collection *x);

#endif
