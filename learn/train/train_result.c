#include "learn/train/train_result.h"
#include "learn/train/watch.h"

#include <stdlib.h>

int train_nothing_learned(const struct train_result *r)
{
    return r->base_loss > 0 && r->best_loss >= r->base_loss &&
           !watch_by_chance(&r->objective, r->best_loss, r->base_loss, r->measured);
}

void train_result_free(struct train_result *result)
{
    free(result->epoch);
    *result = (struct train_result){0};
}
