/*
 * topk:F: of each push the share F of the rows with the greatest magnitudes travels (Aji and Heafield, "Sparse
 * Communication for Distributed Gradient Descent", EMNLP'17). Of equal rows the first ones travel.
 *
 *     k = ceil(F * n) rows: those whose max |values| is at least the k-th greatest
 */
#include <math.h>
#include <stdlib.h>

#include "filter/selecting.h"

/* Objective: the k-th greatest of m[0 .. n), k from 1, in expected time n; m is reordered (Hoare's FIND, CACM 1961). */
static double kth_greatest(double *m, size_t n, size_t k)
{
    size_t low = 0, high = n - 1, want = k - 1;
    while (low < high) {
        double pivot = m[low + (high - low) / 2];
        size_t i = low, j = high;
        for (;;) {
            while (m[i] > pivot)
                i++;
            while (m[j] < pivot)
                j--;
            if (i <= j) {
                double swap = m[i];
                m[i++] = m[j];
                m[j] = swap;
                if (!j)
                    break;
                j--;
            }
            if (i > j)
                break;
        }
        if (want <= j)
            high = j;
        else if (want >= i)
            low = i;
        else
            return m[want];
    }
    return m[want];
}

static void topk_select(const struct filter_setting *setting, const struct filter_rows *rows, uint8_t *waits)
{
    /* 0.1F is a little more than 0.1: of 10 rows 2 would travel */
    size_t n = rows->count, k = (size_t)ceil((double)setting->arg * (1 - 1e-6) * (double)n);
    double *most = n > k && k ? malloc(n * sizeof *most) : NULL;
    if (!most)
        return; /* all rows travel */
    for (uint32_t i = 0; i < n; i++)
        most[i] = selecting_most(rows, i);
    double least = kth_greatest(most, n, k);
    size_t greater = 0;
    for (uint32_t i = 0; i < n; i++)
        greater += selecting_most(rows, i) > least;
    for (uint32_t i = 0; i < n; i++) {
        double m = selecting_most(rows, i);
        bool equal = m == least && greater < k && isfinite(m);
        greater += equal;
        waits[i] |= m < least || (m == least && !equal && isfinite(m));
    }
    free(most);
}

const struct filter_ops filter_topk = {
    .name = "topk",
    .id = 7,
    .rank = FILTER_SELECTS,
    .directions = 1 << FILTER_PUSH,
    .lossy = true,
    .meta = "SHARE",
    .min = 0.0001F,
    .max = 1,
    .preset = NAN,
    .help =
        "sends this share of a push's rows, those with the greatest magnitudes, and holds the others back",
    .unfit = selecting_unfit,
    .select = topk_select,
};
