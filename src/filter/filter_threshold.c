/*
 * threshold:T: a row travels when a value of what has been gathered of it exceeds T (Strom, "Scalable Distributed DNN
 * Training Using Commodity GPU Cloud Computing", Interspeech 2015; what is held back stays exact here).
 *
 *     row i waits    if    max |values of i|  <=  T
 */
#include <math.h>

#include "filter/selecting.h"

static void threshold_select(const struct filter_setting *setting, const struct filter_rows *rows,
                             uint8_t *waits)
{
    for (uint32_t i = 0; i < rows->count; i++)
        waits[i] |= selecting_most(rows, i) <= (double)setting->arg;
}

const struct filter_ops filter_threshold = {
    .name = "threshold",
    .id = 8,
    .rank = FILTER_SELECTS,
    .directions = 1 << FILTER_PUSH,
    .lossy = true,
    .meta = "VALUE",
    .min = 0,
    .max = 1e30F,
    .preset = NAN,
    .help = "holds rows back until a value of what has been gathered exceeds VALUE",
    .unfit = selecting_unfit,
    .select = threshold_select,
};
