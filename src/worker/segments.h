/*
 * The segments of a slice's frame: keys, lengths and values, where they lie. It never knows filters. Tests:
 * test/worker/test_client.c, test/worker/test_filtering.c.
 */
#ifndef WORKER_SEGMENTS_H
#define WORKER_SEGMENTS_H

#include "worker/client_impl.h"

/* Sets the segments of the slice's frame to those of its span. */
void slice_segments(struct slice *p);

#endif
