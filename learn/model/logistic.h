/*
 * The logistic link: margin -> probability, log-loss and residual, for a batch at a time.
 *
 * Gradients made from these numbers end in the model, and equal runs must give equal models on every machine
 * and build (ARCHITECTURE.md, "Same bits"); so exp and log are written out here in operations that IEEE 754
 * fixes, and no libm function is called. Each is within 1e-14 of the true value. It never knows of keys,
 * models or servers. Tests: test/learn/test_logistic.c.
 */
#ifndef LEARN_MODEL_LOGISTIC_H
#define LEARN_MODEL_LOGISTIC_H

#include <stddef.h>

/* 1 / (1 + exp(-margin)). */
double link_probability(float margin);

/* The margin of the rate that these numbers of rows have: log((positives + 1) / (negatives + 1)), which is
 * finite even if there is one kind only. */
double link_margin(size_t positives, size_t negatives);

/* -log of the probability that margin gives to label (0 or 1), at most LINK_MAX_LOSS: that of a probability
 * of 1e-15, where every program clips. */
#define LINK_MAX_LOSS 34.538776394910684
double link_loss(float margin, float label);

/* residual[i] = probability - label, the derivative of the loss by the margin; returns the sum of the losses,
 * added in row order. */
double link_residuals(const float *margin, const float *label, size_t n, float *residual);

#endif
