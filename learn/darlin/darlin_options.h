/*
 * Settings of --solver darlin. It never knows what is done with them. Tests: test/learn/test_darlin.c.
 */
#ifndef LEARN_DARLIN_DARLIN_OPTIONS_H
#define LEARN_DARLIN_DARLIN_OPTIONS_H

#include <stdint.h>

enum darlin_bias {
    DARLIN_BIAS_L1,   /* penalized as any weight: liblinear's -B 1 */
    DARLIN_BIAS_FREE, /* not penalized */
    DARLIN_BIAS_NONE  /* no bias: liblinear's -B -1 */
};
/* The optimizer in the manifest of a model that was trained with it. */
#define DARLIN_OPTIMIZER "darlin"
/* The words of --bias, in that order. */
#define DARLIN_BIAS_WORDS "l1|free|none"

struct darlin_options {
    int on;
    enum darlin_bias bias;
    uint32_t delay;  /* tau: the number of steps that a gradient may lack */
    uint32_t blocks; /* 0: DARLIN_BLOCKS times the features of a row */
    int fixed;       /* the order of the blocks is fixed; otherwise it is random for each pass */
    int unfiltered;  /* every pass is full */
    double epsilon;  /* relative decrease of the objective */
    uint32_t passes; /* at most */
};

#define DARLIN_DELAY_MAX  64 /* arbitrary, as the next two */
#define DARLIN_BLOCKS_MAX 65536
#define DARLIN_BLOCKS     4
#define DARLIN_PASSES     200    /* where --epochs is not given; arbitrary */
#define DARLIN_EPSILON    "1e-5" /* reaches liblinear's objective to 4 digits on the sets of docs/DARLIN.md */
#define DARLIN_TOLERANCE  0.01   /* of the first filtered passes; arbitrary */
#define DARLIN_VIOLATION  0.01   /* share of the first pass's sum; liblinear's -e */

#endif
