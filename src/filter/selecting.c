#include "filter/selecting.h"

#include <math.h>

double selecting_most(const struct filter_rows *r, uint32_t row)
{
    size_t at = (size_t)row * r->row_values;
    double most = 0;
    for (uint32_t i = 0; i < r->row_values; i++) {
        double value = r->dtype == PARAMO_F32 ? (double)((const float *)r->vals)[at + i]
                                              : ((const double *)r->vals)[at + i];
        value = isnan(value) ? HUGE_VAL : fabs(value);
        most = value > most ? value : most;
    }
    return most;
}

const char *selecting_unfit(const struct filter_table *table, enum filter_direction direction)
{
    if (!table->row_values)
        return "rows of the table have lengths of their own";
    if (table->optimizer == PARAMO_OPT_ASSIGN || table->optimizer == PARAMO_OPT_MAX)
        return "pushes to the table do not add up, so what is held back cannot be added to a later one";
    if (table->aggregates)
        return "the table aggregates the pushes of each clock, so none can wait for a later one";
    return filter_unfit_float(table, direction);
}
