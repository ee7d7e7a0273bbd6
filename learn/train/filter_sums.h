/*
 * What the filters of a job's workers have done, summed over all of its processes: each worker adds to values at the
 * scheduler what is new since it did so last, and the leader reads them at the end. A worker that dies takes with it
 * what it has not added. It never knows what a filter does. Tests: test/e2e/train.sh.
 */
#ifndef LEARN_TRAIN_FILTER_SUMS_H
#define LEARN_TRAIN_FILTER_SUMS_H

#include "paramo/paramo.h"

enum { FILTERED_MAX = 64 }; /* a filter counts pushes and pulls apart */

/* Of one worker. */
struct filtered {
    size_t n;
    paramo_filter_counter added[FILTERED_MAX]; /* to the job's sums */
};

/* Of a job. */
struct filter_sum {
    char name[32];
    paramo_filter_counter of; /* its name is NULL */
};

/* Adds what is new. */
PARAMO_MUST_USE paramo_err filtered_report(struct filtered *f, paramo_node *node, paramo_worker *worker);
/* The job's sums so far, of the filters that these chains name ("push=a,b;pull=c", or NULL) and that have done
 * anything. Returns how many there are. */
size_t filtered_sums(paramo_node *node, const char *chains, struct filter_sum sums[FILTERED_MAX]);

#endif
