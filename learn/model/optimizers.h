/*
 * The optimizers that training offers: those whose options are a learning rate alpha, its smoothing beta, l1 and
 * l2. The servers have more (PARAMO_OPTIMIZERS in paramo/types.h). It never knows models or tables. Tests:
 * test/learn/test_model.c.
 */
#ifndef LEARN_MODEL_OPTIMIZERS_H
#define LEARN_MODEL_OPTIMIZERS_H

#include "paramo/types.h"

#include <stddef.h>

struct optimizer_rates {
    double alpha, beta, l1, l2;
};

struct optimizer_choice {
    const char *name; /* of --optimizer, and in the manifest */
    paramo_optimizer code;
    double alpha;  /* learning rate where none is named, for the summed gradients of a batch */
    double beta;   /* smoothing of the rate where none is named */
    int stateless; /* a model saved without state can be trained further */
    /* Changes the state of a row of n values w, which was trained with the rates `old`, so that training with another
     * alpha and beta (`now`) continues from w. NULL: the state does not depend on them. */
    void (*retune)(const struct optimizer_rates *old, const struct optimizer_rates *now, const float *w,
                   float *state, size_t n);
};

/* Optimizer number i, NULL after the last; and by its name, NULL if there is none. */
const struct optimizer_choice *optimizers_at(size_t i);
const struct optimizer_choice *optimizers_find(const char *name);

#endif
