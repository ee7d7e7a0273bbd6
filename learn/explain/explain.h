/*
 * Explains the score of a row: each feature's share of the margin.
 *
 * A margin is a polynomial of the row's features in which no feature is squared: weights, products of pairs (fm, ffm,
 * fwfm, mf) or of more (mvm). Each product is divided evenly among its features. These shares are the Shapley values of
 * the features (Shapley, 1953), against a row without features. By the multilinear extension (Owen, Management Science
 * 18, 1972) they are
 *   share_i = integral over t from 0 to 1 of dM/dz_i, where feature j has the value z_j x_j, at z_j = t for all j.
 * A parameter of feature i is always multiplied by z_i x_i. So z_i dM/dz_i = sum of p dM/dp over the parameters p of
 * feature i, which the model's gradient gives. Gauss and Legendre's rule with q points integrates polynomials of degree
 * 2 q - 1 exactly. So models need no code for this, only the order of their products (model_ops.order).
 *
 * It never knows of files or names. Tests: test/learn/test_explain.c.
 */
#ifndef LEARN_EXPLAIN_EXPLAIN_H
#define LEARN_EXPLAIN_EXPLAIN_H

#include "learn/data/block.h"
#include "learn/store/modelio.h"

/* One feature of the row. */
struct explain_term {
    uint64_t key;
    uint16_t field; /* 0 where the data has none */
    int known;      /* the model has a weight for it */
    float value;    /* as in the data */
    float scaled;   /* as the model uses it */
    double weight;  /* its weight times the scaled value */
    double share;   /* of the margin: `weight`, and its part of the products */
};

struct explanation {
    uint32_t output;  /* the class that is explained; 0 if there is only one margin */
    uint32_t outputs; /* margins of a row */
    float *margin;    /* [outputs]: those that predict uses */
    double base;      /* the margin of a row without features: the bias */
    size_t n;
    struct explain_term *term; /* [n], in the order of the row */
};

enum { EXPLAIN_BEST = -1 }; /* the class with the highest margin */

/* Explains row `row` of block; output: a class, or EXPLAIN_BEST. base and the shares add up to margin[output], except
 * for rounding. The caller frees it with explain_free. MEMORY; NUMERIC: the margin is not finite. Thread-safe. */
PARAMO_MUST_USE paramo_err explain_row(const struct model *model, const struct block *block, size_t row,
                                       int output, struct explanation *explanation);
void explain_free(struct explanation *explanation);

/* The points and weights of Gauss and Legendre's rule on 0 .. 1, n of each. */
void explain_rule(size_t n, double *point, double *weight);

#endif
