#include "sim/sizes.h"

const char *const sim_table_names[SIM_TABLES] = {"dense", "sparse", "var",   "user",
                                                 "rows",  "cells",  "reals", "sums"};

unsigned sim_row_values(enum sim_table table, unsigned index)
{
    switch (table) {
    case SIM_VAR:
        return 1 + index % 3;
    case SIM_ROWS:
        return SIM_WIDE;
    case SIM_SPARSE:
    case SIM_CELLS:
    case SIM_REALS:
    case SIM_SUMS:
        return 2; /* but for SPARSE the second value is derived from the first: a torn row shows */
    default:
        return 1;
    }
}
