/*
 * Measures a trained model: sizes, norms and the largest weights. It never knows of files or output. Tests:
 * test/learn/test_inspect.c.
 */
#ifndef LEARN_EXPLAIN_INSPECT_H
#define LEARN_EXPLAIN_INSPECT_H

#include "learn/store/modelio.h"

/* The values of one table, without the bias. */
struct inspect_table {
    uint64_t rows, nonzero_rows; /* nonzero: with a value that is not 0 */
    uint64_t values, nonzero;
    double l1, l2, most; /* sum of |x|, root of the sum of x^2, greatest |x| */
};

/* A feature's weight, as it is stored: for values that are divided by their scale (learn/model/scale.h). */
struct inspect_weight {
    uint64_t key;
    uint32_t output; /* the class of this weight, which is the greatest of the feature's */
    float weight;
    float divisor; /* of the feature's values; 1 if they are not scaled */
    /* root of the sum of squares of the key's row in each table; 0: it has none */
    double norm[MODEL_MAX_TABLES];
};

struct inspection {
    struct inspect_table table[MODEL_MAX_TABLES]; /* in the model's order */
    const float *bias;                            /* [outputs], owned by the model; NULL: there is none */
    size_t top;
    /* [top], the greatest magnitude first; of equal ones, the lower key */
    struct inspect_weight *weight;
};

/* Measures the model, and finds its `most` largest weights that are not 0. The caller frees the result with
 * inspect_free, before the model. MEMORY. */
PARAMO_MUST_USE paramo_err inspect_model(const struct model *model, size_t most,
                                         struct inspection *inspection);
void inspect_free(struct inspection *inspection);

#endif
