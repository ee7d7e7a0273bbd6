/*
 * skip:P: each row waits with probability P (Konecny et al., "Federated Learning: Strategies for Improving
 * Communication Efficiency", 2016, "random mask"; there the rows left out are lost, here they are held back). The draw
 * depends on the request and the key, so two runs of one worker are equal.
 */
#include <math.h>

#include "filter/selecting.h"

static void skip_select(const struct filter_setting *setting, const struct filter_rows *rows, uint8_t *waits)
{
    for (uint32_t i = 0; i < rows->count; i++)
        waits[i] |= filter_rows_draw(filter_rows_seed(rows, i), 0) < (double)setting->arg &&
                    isfinite(selecting_most(rows, i));
}

const struct filter_ops filter_skip = {
    .name = "skip",
    .id = 9,
    .rank = FILTER_SELECTS,
    .directions = 1 << FILTER_PUSH,
    .lossy = true,
    .meta = "PROBABILITY",
    .min = 0,
    .max = 0.99F,
    .preset = NAN,
    .help = "holds each row back with this probability",
    .unfit = selecting_unfit,
    .select = skip_select,
};
