#include "sim/sizes.h"

const char *const sim_table_names[SIM_TABLES] = {"dense", "sparse", "var",   "user",
                                                 "rows",  "cells",  "reals", "sums"};
