/*
 * Predictions as text: `paramo predict` writes a row a line, `paramo serve` the same or JSON. It never knows of files
 * or HTTP. Tests: test/learn/test_score.c.
 */
#ifndef LEARN_EVAL_PREDICTION_H
#define LEARN_EVAL_PREDICTION_H

#include "learn/objective/objective.h"

/* Bytes that a row's text takes at most. */
size_t prediction_max(const struct objective *o);
/* Writes row r's prediction: a number, or one for each class with a tab between two; json: these as an array. Returns
 * the length. */
size_t prediction_text(const struct objective *o, const float *margin, size_t stride, size_t r, int json,
                       char *out);

#endif
