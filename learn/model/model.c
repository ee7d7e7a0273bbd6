#include "learn/model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct model_ops *const models[] = {
#define MODEL_ENTRY(name) &model_##name,
    MODELS(MODEL_ENTRY)
#undef MODEL_ENTRY
};

const struct model_ops *model_at(size_t i)
{
    return i < sizeof models / sizeof *models ? models[i] : NULL;
}

const struct model_ops *model_find(const char *name)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strcmp(models[i]->name, name) == 0)
            return models[i];
    return NULL;
}

void model_info_init(struct model_info *info, const struct model_ops *ops)
{
    *info = (struct model_info){.ops = ops};
    for (size_t i = 0; i < ops->settings; i++)
        info->setting[i] = ops->setting[i].initial;
    for (size_t t = 0; t < ops->tables; t++) {
        struct model_optimizer *o = &info->optimizer[t];
        (void)snprintf(o->name, sizeof o->name, "%s", ops->table[t].optimizer);
        o->beta = 1;
    }
}

double model_alpha(const struct model_info *info, size_t table, uint32_t workers)
{
    double alpha = info->ops->table[table].alpha;
    const struct optimizer_choice *o = optimizers_find(info->optimizer[table].name);
    return alpha > 0 ? alpha / sqrt((double)workers) : o != NULL ? o->alpha : 0;
}

size_t model_keys(const struct model_info *info, size_t table, const struct batch *batch)
{
    return info->ops->table[table].bias ? batch->unique : batch->unique - 1;
}
