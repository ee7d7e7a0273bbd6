#include "filter/filter.h"

#include <math.h>

static const struct filter_ops *const filters[FILTER_COUNT] = {
#define FILTER_ROW(name) [FILTER_INDEX_##name] = &filter_##name,
    FILTERS(FILTER_ROW)
#undef FILTER_ROW
};

const struct filter_ops *filter_at(unsigned index)
{
    return filters[index];
}

bool filter_takes(const struct filter_ops *ops, float arg)
{
    return ops->meta ? arg >= ops->min && arg <= ops->max && (!ops->whole || arg == truncf(arg)) : arg == 0;
}

const char *filter_unfit_float(const struct filter_table *table, enum filter_direction direction)
{
    (void)direction;
    bool floats = table->dtype == PARAMO_F32 || table->dtype == PARAMO_F64;
    return floats ? NULL : "the values of the table are not of type F32 or F64";
}
