#include "learn/model/model.h"

#include <math.h>
#include <pthread.h>
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
    *info = (struct model_info){.ops = ops, .objective = objective_of(objective_at(0))};
    for (size_t i = 0; i < ops->settings; i++)
        info->setting[i] = ops->setting[i].initial;
    for (size_t t = 0; t < ops->tables; t++) {
        struct model_optimizer *o = &info->optimizer[t];
        (void)snprintf(o->name, sizeof o->name, "%s", ops->table[t].optimizer);
        o->beta = o->l2 = -1;
    }
}

/* The table's definition if it has rates for the chosen optimizer, otherwise NULL. */
static const struct model_table_def *own_rates(const struct model_info *info, size_t table)
{
    const struct model_table_def *def = &info->ops->table[table];
    return def->alpha > 0 && strcmp(info->optimizer[table].name, def->optimizer) == 0 ? def : NULL;
}

double model_alpha(const struct model_info *info, size_t table, uint64_t in_flight)
{
    const struct model_table_def *usual = &info->ops->table[table], *def = own_rates(info, table);
    const struct optimizer_choice *o = optimizers_find(info->optimizer[table].name);
    double alpha = def ? def->alpha / sqrt(in_flight > 2 ? (double)in_flight / 2 : 1) : o ? o->alpha : 0;
    const int is_usual = strcmp(info->optimizer[table].name, usual->optimizer) == 0;
    const double length = info->row_features < MODEL_LONG_ROW_MOST ? info->row_features : MODEL_LONG_ROW_MOST;
    for (unsigned i = 0; is_usual && length > MODEL_LONG_ROW && i < usual->long_rows; i++)
        alpha *= MODEL_LONG_ROW / length;
    return alpha;
}

double model_beta(const struct model_info *info, size_t table)
{
    const struct model_table_def *def = own_rates(info, table);
    const struct optimizer_choice *o = optimizers_find(info->optimizer[table].name);
    return def ? def->beta : o ? o->beta : 0;
}

double model_l2(const struct model_info *info, size_t table)
{
    const struct model_table_def *def = own_rates(info, table);
    return def ? def->l2 : 0;
}

void model_own_weights(const struct model_info *info, const float *label, const float *weight, size_t n,
                       float *own)
{
    const struct class_weights *c = &info->class_weight;
    for (size_t i = 0; i < n; i++)
        own[i] = !weight ? 1.0f : weight[i] / label_weight(c->weight, c->n, label[i]);
}

uint32_t model_outputs(const struct model_info *info)
{
    return objective_outputs(&info->objective);
}

struct model_shape model_shape(const struct model_info *info, size_t table)
{
    return info->ops->shape(info, table);
}

uint32_t model_row_values(const struct model_info *info, size_t table)
{
    return model_shape(info, table).dim * model_outputs(info);
}

uint32_t model_fields(const struct model_info *info)
{
    for (size_t i = 0; i < info->ops->settings; i++)
        if (info->ops->setting[i].field == FIELD_COUNT)
            return (uint32_t)info->setting[i];
    return 0;
}

size_t model_fixed_rows(const struct model_info *info, size_t table)
{
    return !info->ops->rows ? 0 : info->ops->rows(info, table);
}

static uint64_t counting[MODEL_ROWS_MAX];
static pthread_once_t counted = PTHREAD_ONCE_INIT;

static void count(void)
{
    for (size_t i = 0; i < MODEL_ROWS_MAX; i++)
        counting[i] = i;
}

size_t model_keys(const struct model_info *info, size_t table, const struct batch *batch,
                  const uint64_t **keys)
{
    const size_t fixed = model_fixed_rows(info, table);
    if (fixed > 0) {
        (void)pthread_once(&counted, count);
        *keys = counting;
        return fixed;
    }
    *keys = batch->key;
    return info->ops->table[table].bias ? batch->unique : batch->unique - 1;
}
