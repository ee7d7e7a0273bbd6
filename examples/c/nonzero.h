/* A filter of our own: where most gradients are zeros, only the others travel, and one bit for each value. */
#ifndef EXAMPLE_NONZERO_H
#define EXAMPLE_NONZERO_H

#include <paramo/filter_types.h>

extern const paramo_filter nonzero;

#endif
