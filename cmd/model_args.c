#include "cmd/model_args.h"
#include "cmd/model_options.h"

#include <stdio.h>
#include <string.h>

/* The index of an option's setting, or of the table of its optimizer, in the model; -1: the model has none. */
static int place_of(const struct model_ops *ops, const struct model_option *m)
{
    for (size_t i = 0; m->kind == MODEL_SETTING && i < ops->settings; i++)
        if (strcmp(ops->setting[i].option, m->name) == 0)
            return (int)i;
    for (size_t t = 0; m->kind == MODEL_OPTIMIZER && t < ops->tables; t++)
        if (strcmp(ops->table[t].prefix, m->table->prefix) == 0)
            return (int)t;
    return -1;
}

static enum option_id id_of(size_t i)
{
    return (enum option_id)(OPTION_COUNT + i);
}

static double setting_value(const struct options *o, size_t i)
{
    return model_options_at(i)->setting->whole ? (double)option_number(o, id_of(i))
                                               : option_real(o, id_of(i));
}

const char *model_args_name(const struct options *o)
{
    return option_text(o, id_of(0));
}

const char *model_args_given(const struct options *o, const char *const *names)
{
    const struct model_option *m;
    for (size_t i = 0; (m = model_options_at(i)); i++)
        for (size_t k = 0; names[k] && option_given(o, id_of(i)); k++)
            if (strcmp(m->name, names[k]) == 0)
                return m->name;
    return NULL;
}

/* Refuses options of other models. */
static int check(const struct options *o, const struct model_ops *ops)
{
    const struct model_option *m;
    for (size_t i = 0; (m = model_options_at(i)); i++)
        if (m->kind != MODEL_CHOICE && option_given(o, id_of(i)) && place_of(ops, m) < 0)
            return options_wrong(o, "model %s has no option --%s", ops->name, m->name);
    return -1;
}

static void apply_optimizer(const struct options *o, enum option_id id, enum optimizer_option part,
                            struct model_optimizer *to)
{
    switch (part) {
    case OPTIMIZER_NAME:
        (void)snprintf(to->name, sizeof to->name, "%s", option_text(o, id));
        break;
    case OPTIMIZER_ALPHA:
        to->alpha = option_real(o, id);
        break;
    case OPTIMIZER_BETA:
        to->beta = option_real(o, id);
        break;
    case OPTIMIZER_L1:
        to->l1 = option_real(o, id);
        break;
    case OPTIMIZER_L2:
        to->l2 = option_real(o, id);
        break;
    case OPTIMIZER_OPTIONS:
        break;
    }
}

/* Overwrites the settings of info with those that were given. */
static void apply(const struct options *o, struct model_info *info)
{
    const struct model_option *m;
    for (size_t i = 0; (m = model_options_at(i)); i++) {
        const int place = place_of(info->ops, m);
        if (!option_given(o, id_of(i)) || place < 0)
            continue;
        if (m->kind == MODEL_SETTING)
            info->setting[place] = setting_value(o, i);
        else
            apply_optimizer(o, id_of(i), m->part, &info->optimizer[place]);
    }
}

/* Settings that are numbers of fields, such as those of user and item, must differ. */
static int check_fields(const struct options *o, const struct model_info *info)
{
    const struct model_setting *setting = info->ops->setting;
    for (size_t a = 0; a < info->ops->settings; a++)
        for (size_t b = a + 1; b < info->ops->settings; b++)
            if (setting[a].field == FIELD_NUMBER && setting[b].field == FIELD_NUMBER &&
                info->setting[a] == info->setting[b])
                return options_wrong(o, "--%s and --%s are both %g: they must differ", setting[a].option,
                                     setting[b].option, info->setting[a]);
    return -1;
}

int model_args_begin(const struct options *o, struct model_info *info)
{
    const struct model_ops *ops = model_find(model_args_name(o));
    int code = check(o, ops);
    if (code >= 0)
        return code;
    model_info_init(info, ops);
    apply(o, info);
    return check_fields(o, info);
}

/* Refuses settings that a trained model cannot change. */
static int check_fixed(const struct options *o, const char *dir, const struct model_info *info)
{
    const struct model_option *m;
    for (size_t i = 0; (m = model_options_at(i)); i++) {
        const int place = place_of(info->ops, m);
        if (!option_given(o, id_of(i)) || place < 0)
            continue;
        if (m->kind == MODEL_SETTING && info->ops->setting[place].fixed &&
            setting_value(o, i) != info->setting[place])
            return options_wrong(o, "%s was trained with --%s %g", dir, m->name, info->setting[place]);
        if (m->kind == MODEL_OPTIMIZER && m->part == OPTIMIZER_NAME &&
            strcmp(option_text(o, id_of(i)), info->optimizer[place].name) != 0)
            return options_wrong(o,
                                 "%s of %s were trained with %s, whose state does not fit another optimizer",
                                 m->table->what, dir, info->optimizer[place].name);
    }
    return -1;
}

int model_args_continue(const struct options *o, const char *dir, struct model_info *info)
{
    const char *name = model_args_name(o);
    if (name && strcmp(name, info->ops->name) != 0)
        return options_wrong(o, "--model %s: the model in %s is of kind %s", name, dir, info->ops->name);
    int code = check(o, info->ops);
    if (code < 0)
        code = check_fixed(o, dir, info);
    if (code < 0)
        apply(o, info);
    return code;
}
