/*
 * The metrics of a model as JSON, for `paramo eval`, `train` and `tune`. It never knows how they are computed. Tests:
 * test/e2e/train.sh, objectives.sh.
 */
#ifndef CMD_METRICS_JSON_H
#define CMD_METRICS_JSON_H

#include "learn/eval/metrics.h"

#include <jansson.h>

/* A number, or null if it is not finite. */
json_t *metrics_number(double x);
/* An object with rows, positives or mean_label, the loss, and the metrics of this objective. NULL: no memory. */
json_t *metrics_json(const struct objective *o, const struct metrics_result *result);

#endif
