/*
 * The step of one weight under an L1 penalty: the bound of the curvature, the trust region, and the distance of the
 * weight from its optimality condition.
 *
 * A block's weights step together: d minimizes g d + u d^2 / 2 + l1 |w + d|, with the gradient g of the loss and a
 * bound u of its curvature (proximal gradient with a diagonal metric: Li, Andersen, Smola, "Distributed Delayed
 * Proximal Gradient Methods", NIPS workshop on optimization for machine learning, 2013). u can be small because |d|
 * is held in a trust region (Genkin, Lewis, Madigan, "Large-Scale Bayesian Logistic Regression for Text
 * Categorization", Technometrics 49, 2007; Yuan, Ho, Lin, "An Improved GLMNET for L1-regularized Logistic
 * Regression", JMLR 13, 2012).
 *
 * Pure arithmetic in operations that IEEE 754 fixes: equal input gives equal bits. Any thread. It never knows of
 * rows, keys or servers. Tests: test/learn/test_coordinate.c.
 */
#ifndef LEARN_DARLIN_COORDINATE_H
#define LEARN_DARLIN_COORDINATE_H

/* The new weight. u > 0. reach: the most that it may move; 0: any distance. */
double coordinate_step(double w, double g, double u, double l1, double reach);

/* The reach of the next step: twice the length of this one, but at least half of its reach. reach 0: at least
 * l1 / (2 u), the step of a gradient of half the penalty. */
double coordinate_reach(double reach, double moved, double u, double l1);

/* How far 0 is from the subdifferential of g w + l1 |w|: 0 at the minimum. */
double coordinate_violation(double w, double g, double l1);

/*
 * Bound of the second derivative p (1 - p) of a row's loss while its margin moves by at most `way` (perhaps infinite).
 *   Given the derivative `bend` at the margin: d/dm ln(p (1 - p)) = 1 - 2 p is within -1 .. 1, so it grows at most by
 *   e^way, which is below 1 / (1 - way); and it is never above 1/4.
 */
double coordinate_curvature(double bend, double way);

#endif
