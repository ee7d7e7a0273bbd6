#include "learn/eval/prediction.h"

#include <stdio.h>

#define NUMBER_MAX 32 /* characters of a number and of its separator */

size_t prediction_max(const struct objective *o)
{
    return ((size_t)objective_outputs(o) + 1) * NUMBER_MAX;
}

size_t prediction_text(const struct objective *o, const float *margin, size_t stride, size_t r, int json,
                       char *out)
{
    double value[OBJECTIVE_CLASSES_MAX];
    const uint32_t n = objective_outputs(o);
    const int array = json && o->ops->many;
    size_t len = 0;
    o->ops->predict(o, margin + r, stride, value);
    if (array)
        out[len++] = '[';
    for (uint32_t c = 0; c < n; c++)
        len += (size_t)snprintf(out + len, NUMBER_MAX, "%s%.9g", c == 0 ? "" : json ? "," : "\t", value[c]);
    if (array)
        out[len++] = ']';
    return len;
}
