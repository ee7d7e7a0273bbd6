/*
 * What the filters of a job's workers have done, summed over all of its processes. Each worker adds its news to values
 * at the scheduler, and the leader reads them at the end. Counts that a worker has not added when it dies are lost. It
 * never knows what a filter does. Tests: test/e2e/train.sh, cluster.sh.
 */
#ifndef LEARN_TRAIN_FILTER_SUMS_H
#define LEARN_TRAIN_FILTER_SUMS_H

#include "paramo/paramo.h"

enum { FILTER_SUMS_MAX = 64 }; /* a filter counts pushes and pulls apart */

/* What one worker has added to the job's sums. */
struct filter_reported {
    size_t n;
    paramo_filter_counter added[FILTER_SUMS_MAX];
};

/* What all workers have added for one filter in one direction. */
struct filter_sum {
    char name[32];
    paramo_filter_counter of; /* its name is NULL */
};

/* Adds what the worker's filters have done since it was called last. */
PARAMO_MUST_USE paramo_err filter_sums_add(struct filter_reported *f, paramo_node *node,
                                           paramo_worker *worker);
/* The job's sums so far, of the filters that these chains name ("push=a,b;pull=c", or NULL) and that have done
 * anything. Returns how many there are. */
size_t filter_sums_read(paramo_node *node, const char *chains, struct filter_sum sums[FILTER_SUMS_MAX]);

#endif
