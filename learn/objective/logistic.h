/*
 * The logistic link, and exp and log for one number at a time: margin -> probability and log-loss.
 *
 * Gradients made from these numbers end in the model, and equal runs must give equal models on every machine
 * and build (ARCHITECTURE.md, "Same bits"); so exp and log are written out (vector_math.h), and no libm function is
 * called. Each is within 1e-14 of the true value. It never knows of keys, models or servers. Tests:
 * test/learn/test_logistic.c.
 */
#ifndef LEARN_OBJECTIVE_LOGISTIC_H
#define LEARN_OBJECTIVE_LOGISTIC_H

/* exp(x), with x limited to -700 .. 700. log(x) of a positive, normal number. */
double link_exp(double x);
double link_log(double x);

/* 1 / (1 + exp(-margin)). */
double link_probability(float margin);

/* The margin of the rate of positives, from numbers of rows or from summed weights: log((positives + 1) / (negatives +
 * 1)), which is finite even if all rows are of one kind. */
double link_margin(double positives, double negatives);

/* -log of the probability that margin gives to label (0 or 1), at most LINK_MAX_LOSS: the loss of a probability of
 * 1e-15, at which other programs clip, too. */
#define LINK_MAX_LOSS 34.538776394910684
double link_loss(float margin, float label);

#endif
