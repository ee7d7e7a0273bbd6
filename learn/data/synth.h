/*
 * A click log drawn from a known model, for the demo, tests and benchmarks. It can have any size, and the
 * best log-loss that any model can reach on it is known.
 *
 * Each row has one value of each field; values are drawn by a Zipf law. The click is drawn with probability
 * p = sigmoid(bias + sum of weights (+ sum over pairs of <v_i, v_j>, as in Rendle, "Factorization Machines",
 * 2010)). The best reachable log-loss is the mean entropy of p over the rows written. Everything follows from
 * the seed. It never knows of readers and models. Tests: test/learn/test_synth.c.
 */
#ifndef LEARN_DATA_SYNTH_H
#define LEARN_DATA_SYNTH_H

#include "learn/data/parse.h"
#include "paramo/paramo.h"

struct synth_options {
    uint64_t rows;            /* 100,000 */
    uint32_t fields;          /* 10; Criteo: always 39 */
    uint32_t features;        /* values per field; 1,000; Criteo's integers: at most 100 */
    double zipf;              /* exponent of popularity; 1.1 */
    double spread;            /* standard deviation of the weights' sum; 1.2 */
    double bias;              /* -1.0 */
    uint32_t factors;         /* dimension of the pairwise part; 0: none */
    double factor_spread;     /* standard deviation of the pairwise sum; 1.0 */
    uint64_t seed;            /* of the rows; 1 */
    uint64_t model_seed;      /* of the weights; 1. Train and test files: the same here, another seed */
    enum parse_format format; /* PARSE_LIBFFM */
};

struct synth_report {
    uint64_t rows, positives;
    double best_logloss;  /* mean entropy of the true probabilities */
    double drawn_logloss; /* of the true probabilities against the labels that were drawn */
    double best_auc;      /* expected AUC of the true probabilities */
    double base_logloss;  /* entropy of the mean label: what a model that knows nothing reaches */
};

void synth_options_init(struct synth_options *options);
/* Writes the log to path ("-": standard output; .gz and .zst compress), as a whole or not at all. INVALID
 * names the option that is wrong. stop may be NULL; when it becomes non-zero (a signal handler may set it)
 * the result is INTERRUPTED and nothing is left behind. */
PARAMO_MUST_USE paramo_err synth_write(const struct synth_options *options, const char *path,
                                       const volatile int *stop, struct synth_report *report);

#endif
