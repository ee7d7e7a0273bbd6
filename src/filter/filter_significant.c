/*
 * significant:T: the significantly modified filter (Li et al., OSDI'14, section 3.5.3) with a bound that follows the
 * gradients: a row travels when what has changed of it since it was sent last is large beside the other rows of its
 * push. (threshold:T has a bound of its own.) The bound shrinks with the gradients.
 *
 *     m_i  =  max |values of row i|, of what has been gathered of it
 *     row i waits    if    m_i  <  T * sqrt(sum m^2 / n)
 *
 * The sum is over all n rows whose values are finite; the others travel.
 */
#include <math.h>

#include "filter/selecting.h"

static void significant_select(const struct filter_setting *setting, const struct filter_rows *rows,
                               uint8_t *waits)
{
    double greatest = 0, sum = 0, n = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        double most = selecting_most(rows, i);
        greatest = isfinite(most) && most > greatest ? most : greatest;
    }
    for (uint32_t i = 0; i < rows->count && greatest > 0; i++) {
        double share = selecting_most(rows, i) / greatest; /* so that its square is finite */
        sum += isfinite(share) ? share * share : 0;
        n += isfinite(share);
    }
    double least = n > 0 ? (double)setting->arg * greatest * sqrt(sum / n) : 0;
    for (uint32_t i = 0; i < rows->count; i++)
        waits[i] |= selecting_most(rows, i) < least;
}

const struct filter_ops filter_significant = {
    .name = "significant",
    .id = 10,
    .rank = FILTER_SELECTS,
    .directions = 1 << FILTER_PUSH,
    .lossy = true,
    .meta = "FACTOR",
    .min = 0,
    .max = 1000,
    .preset = NAN,
    .help = "holds rows back whose gathered values are below FACTOR times the root mean square of the push",
    .unfit = selecting_unfit,
    .select = significant_select,
};
