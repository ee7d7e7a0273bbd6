#include "filter/filter.h"

static const struct filter_ops *const filters[FILTER_COUNT] = {
#define FILTER_ROW(name) [FILTER_INDEX_##name] = &filter_##name,
    FILTERS(FILTER_ROW)
#undef FILTER_ROW
};

const struct filter_ops *filter_at(unsigned index)
{
    return filters[index];
}

unsigned filter_index(const struct filter_ops *ops)
{
    unsigned i = 0;
    while (i < FILTER_COUNT - 1 && filters[i] != ops)
        i++;
    return i;
}

const char *filter_unfit_float(const struct filter_table *table, enum filter_direction direction)
{
    (void)direction;
    bool floats = table->dtype == PARAMO_F32 || table->dtype == PARAMO_F64;
    return floats ? NULL : "the values of the table are not of type F32 or F64";
}

const struct filter_ops *filter_of_name(const char *name, size_t len)
{
    for (unsigned i = 0; i < FILTER_COUNT; i++)
        if (strlen(filters[i]->name) == len && memcmp(filters[i]->name, name, len) == 0)
            return filters[i];
    return NULL;
}

const struct filter_ops *filter_of_id(unsigned id)
{
    for (unsigned i = 0; i < FILTER_COUNT; i++)
        if (filters[i]->id == id)
            return filters[i];
    return NULL;
}
