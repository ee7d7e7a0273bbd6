/*
 * Effect of a push on values: pure loops over parameters w, state s0 and s1, and pushed values g. There are
 * two shapes: a span (adjacent columns, as in a dense run) and rows (short rows scattered in memory, as in a
 * sparse table). Knows nothing of keys, tables or memory. Tests: test/table/test_optimizer.c, with a slow
 * reference of each kernel in test/table/support_reference.c.
 *
 * Kernels that gain from it exist once for each level of vector instructions (base/cpu.h); optimizer_setup
 * chooses. They use only +, -, *, /, sqrt and comparisons of IEEE floats, in a fixed order per column and
 * never across columns. So every compiler, vector width and slicing gives the same bits. soft(x, t) = sign(x)
 * max(|x| - t, 0).
 *
 * assign:    w = g
 *
 * add:       w += g  (integers wrap)
 *
 * sgd:       w = soft(w - alpha (g + l2 w), alpha l1)
 *            Proximal gradient step (ISTA).
 *
 * momentum:  v = momentum v + (g + l2 w); w = soft(w - alpha v, alpha l1)
 *            State v. Polyak's heavy ball.
 *
 * adagrad:   h = g + l2 w; n += h^2; eta = alpha / (beta + sqrt n); w = soft(w - eta h, eta l1)
 *            State n. Duchi, Hazan, Singer, JMLR 12 (2011): diagonal AdaGrad, composite mirror descent with
 *            the l1 norm (5.1).
 *
 * ftrl:      sigma = (sqrt(n + g^2) - sqrt n) / alpha; z += g - sigma w; n += g^2;
 *            w = 0 if |z| <= l1, else -(z - sign(z) l1) / ((beta + sqrt n) / alpha + l2)
 *            State z, n. McMahan et al., KDD 2013, Algorithm 1. w is kept beside them, so a pull is a copy.
 *
 * adam:      h = g + l2 w; t += 1; m = beta1 m + (1 - beta1) h; v = beta2 v + (1 - beta2) h^2;
 *            eta = alpha / (sqrt(v / (1 - beta2^t)) + epsilon); w = soft(w - eta m / (1 - beta1^t), eta l1)
 *            State m, v, t. Kingma and Ba, ICLR 2015, Algorithm 1. t counts the pushes of a row and stops at
 *            2^24, where both corrections have long been 1.
 *
 * The sums of squares (n, v) saturate at the largest float, so they never become infinite.
 */
#ifndef TABLE_OPTIMIZER_H
#define TABLE_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "paramo/types.h"

/* Gradients of a greater magnitude are refused by all but assign and add: their squares would leave the range
 * of a float, and a model that gets there has diverged. */
#define OPTIMIZER_GRADIENT_MAX 0x1p60F
/* Where Adam's t stays: the last integer that a float counts to. */
#define OPTIMIZER_STEPS_MAX 0x1p24F

struct optimizer;

/* n columns: w, s0 and s1 (unused ones may be anything), g. t is Adam's count, this push included. */
typedef void optimizer_span_fn(const struct optimizer *o, void *w, float *s0, float *s1, float t,
                               const void *g, size_t n);
/* count distinct rows of dim columns, each laid out w, s0, s1, t without gaps; g is count * dim values.
 * Counts t up itself. */
typedef void optimizer_rows_fn(const struct optimizer *o, void *const *rows, size_t count, size_t dim,
                               const void *g);

struct optimizer {
    paramo_optimizer kind;
    paramo_dtype dtype;
    float alpha, beta, l1, l2;
    float momentum;
    float beta1, beta2, epsilon;
    optimizer_span_fn *span;
    optimizer_rows_fn *rows;
};

/* options are checked ones. */
void optimizer_setup(struct optimizer *o, const paramo_table_options *options);
/* Planes of dim state values: 0, 1 or 2 (s0, s1); Adam has its t besides. */
unsigned optimizer_planes(const struct optimizer *o);
bool optimizer_counts(const struct optimizer *o);

/* NUMERIC, with the position, if a pushed value cannot be taken: see OPTIMIZER_GRADIENT_MAX; add refuses
 * values that are not finite; assign takes any, and so do integers. */
MUST_USE paramo_err optimizer_check(const struct optimizer *o, const void *g, size_t n);
/* NUMERIC if values to be stored as state cannot be one (not finite; n, v or t negative). s0 and s1 hold n
 * each. */
MUST_USE paramo_err optimizer_check_state(const struct optimizer *o, const float *w, const float *s0,
                                          const float *s1, float t, size_t n);
/* Sets the state of fresh columns whose initial parameters stand in w. For FTRL, whose w is a function of z
 * and n, a row that starts at w starts with n = 0 and the z that gives w there, z = -w (beta / alpha + l2) -
 * sign(w) l1; w then is set by the formula, which moves it by a rounding error at most. s0 == NULL: only w is
 * wanted. */
void optimizer_start(const struct optimizer *o, void *w, float *s0, float *s1, size_t n);
/* t of the next push, from t of the last. */
float optimizer_next_step(float t);

#endif
