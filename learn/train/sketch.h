/*
 * How often a feature was seen, in memory of a fixed size: a count-min sketch with conservative update (Cormode and
 * Muthukrishnan, J. Algorithms 55, 2005; Estan and Varghese, SIGCOMM 2002).
 *
 *     row 0   [ . . 3 . . . . ]        a key has one counter in each row, by a hash;
 *     row 1   [ . . . . . 3 . ]        its estimate is the least of them, never below its count,
 *     row 2   [ 7 . . . . . . ]        and an addition raises only those below the new estimate
 *     row 3   [ . 3 . . . . . ]
 *
 * An endless stream would fill it. So all counters are halved whenever half as many sightings were added as a row has
 * counters: old sightings fade away, as in TinyLFU (Einziger, Friedman, Manes, ACM TOS 13, 2017). Before the first
 * halving, the estimate of a key that was never seen is above 0 with a probability of at most (1 - e^-0.5)^4, about
 * 2.4 %.
 *
 * Owned by one thread. It never knows of tables. Tests: test/learn/test_admission.c.
 */
#ifndef LEARN_TRAIN_SKETCH_H
#define LEARN_TRAIN_SKETCH_H

#include "paramo/paramo.h"

#include <stddef.h>
#include <stdint.h>

#define SKETCH_ROWS 4
#define SKETCH_MOST 255 /* of a counter */

struct sketch {
    size_t counters; /* of a row; a power of two */
    size_t added;    /* sightings since it was halved last */
    uint8_t *count;  /* [SKETCH_ROWS * counters] */
};

/* Takes at most `bytes` bytes, but at least 4 KiB. The caller frees it. */
PARAMO_MUST_USE paramo_err sketch_init(struct sketch *s, size_t bytes);
void sketch_free(struct sketch *s);
/* The estimate of a key. */
uint32_t sketch_count(const struct sketch *s, uint64_t key);
/* Adds `times` sightings, up to an estimate of `most`, which is at most SKETCH_MOST. Returns the new estimate. */
uint32_t sketch_add(struct sketch *s, uint64_t key, uint32_t times, uint32_t most);

#endif
