#include "cmd/metrics_json.h"

#include <math.h>

json_t *metrics_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

json_t *metrics_json(const struct objective *o, const struct metrics_result *r)
{
    json_t *j = json_pack("{s:I}", "rows", (json_int_t)r->rows);
    int bad = !j;
    if (!bad && o->ops->labels == LABEL_BINARY)
        bad |= json_object_set_new(j, "positives", json_integer((json_int_t)r->positives)) != 0;
    else if (!bad && !o->ops->many)
        bad |= json_object_set_new(j, "mean_label", metrics_number(r->mean_label)) != 0;
    if (!bad)
        bad |= json_object_set_new(j, o->ops->key, metrics_number(objective_shown(o, r->loss))) != 0;
    for (unsigned m = 0; !bad && m < METRICS; m++)
        if (o->ops->metrics & METRIC_BIT(m))
            bad |= json_object_set_new(j, objective_metric_name(m), metrics_number(r->value[m])) != 0;
    if (!bad)
        return j;
    json_decref(j);
    return NULL;
}
