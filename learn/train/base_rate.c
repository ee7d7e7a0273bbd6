#include "learn/train/base_rate.h"
#include "learn/model/logistic.h"

paramo_err base_rate_put(paramo_node *node, paramo_worker *worker, paramo_table *w,
                         const struct batch_list *list)
{
    static const char done_key[] = "train/bias";
    const uint64_t key = BATCH_BIAS_KEY;
    double done = 0;
    size_t rows = 0, positives = 0, len;
    paramo_err err = paramo_kv_add(node, done_key, &done, 1); /* else the next line would wait */
    if (err == PARAMO_OK)
        err = paramo_kv_get(node, done_key, &done, sizeof done, &len, 0);
    if (err != PARAMO_OK || done > 0)
        return err;
    for (size_t i = 0; i < list->n; i++) {
        rows += list->batch[i].rows;
        for (size_t r = 0; r < list->batch[i].rows; r++)
            positives += list->batch[i].label[r] > 0.5f;
    }
    const float bias = (float)link_margin(positives, rows - positives);
    paramo_rows put = {.size = sizeof put, .keys = &key, .n = 1, .vals = &bias, .row_values = 1};
    err = paramo_table_put(worker, w, 0, &put);
    done = 1;
    return err == PARAMO_OK ? paramo_kv_add(node, done_key, &done, 1) : err;
}
