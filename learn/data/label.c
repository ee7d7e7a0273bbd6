#include "learn/data/label.h"
#include "learn/data/number.h"

#include <math.h>

const char *label_read(const struct label_rule *rule, const char *word, size_t len, float *label)
{
    static const char *const expected[] = {
        [LABEL_BINARY] = "expected a label, 0 or 1 (or -1 or +1)",
        [LABEL_REAL] = "expected a label, a number",
        [LABEL_COUNT] = "expected a label, a number that is not negative",
        [LABEL_CLASS] = "expected a label, the number of a class (0, 1, ...)",
        [LABEL_NONE] = "expected a label or a feature",
    };
    const char *what;
    float v;
    if (number_float(word, &v, &what) != word + len)
        return expected[rule->kind];
    if (rule->kind == LABEL_BINARY && v != 0 && v != 1 && v != -1)
        return expected[rule->kind];
    if (rule->kind == LABEL_COUNT && v < 0)
        return expected[rule->kind];
    if (rule->kind == LABEL_CLASS && (v < 0 || v >= (float)LABEL_CLASSES_MAX || v != (float)(uint32_t)v))
        return expected[rule->kind];
    if (rule->kind == LABEL_CLASS && rule->classes > 0 && v >= (float)rule->classes)
        return "a class that the model does not have";
    *label = rule->kind == LABEL_BINARY ? (float)(v > 0)
             : rule->kind == LABEL_NONE ? NAN
                                        : v + 0.0f; /* -0 becomes 0 */
    return NULL;
}
