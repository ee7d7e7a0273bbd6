#include "cmd/model_args.h"

#include <stdio.h>
#include <string.h>

/* Appends text behind a separator. */
static void join(char *out, size_t cap, const char *separator, const char *text)
{
    size_t used = strlen(out);
    (void)snprintf(out + used, cap - used, "%s%s", used > 0 ? separator : "", text);
}

static const struct model_setting *has_setting(const struct model_ops *ops, const char *option, size_t *place)
{
    for (size_t i = 0; i < ops->settings; i++)
        if (strcmp(ops->setting[i].option, option) == 0) {
            *place = i;
            return &ops->setting[i];
        }
    return NULL;
}

static int has_prefix(const struct model_ops *ops, const char *prefix, size_t *place)
{
    for (size_t t = 0; t < ops->tables; t++)
        if (strcmp(ops->table[t].prefix, prefix) == 0) {
            *place = t;
            return 1;
        }
    return 0;
}

static void add_setting(struct model_args *a, const struct model_ops *ops, const struct model_setting *def)
{
    size_t i = 0;
    while (i < a->settings && strcmp(a->setting[i].def->option, def->option) != 0)
        i++;
    if (i == MODEL_ARGS_SETTINGS)
        return;
    struct setting_arg *s = &a->setting[i];
    if (i == a->settings) {
        *s = (struct setting_arg){.def = def};
        a->settings++;
    }
    join(s->help, sizeof s->help, ", ", ops->name);
}

static void add_optimizer(struct model_args *a, const struct model_table_def *table)
{
    size_t i = 0;
    while (i < a->optimizers_n && strcmp(a->optimizer[i].table->prefix, table->prefix) != 0)
        i++;
    if (i < a->optimizers_n || i == MODEL_ARGS_OPTIMIZERS)
        return;
    a->optimizer[a->optimizers_n++] = (struct optimizer_arg){.table = table};
}

void model_args_init(struct model_args *a)
{
    *a = (struct model_args){0};
    for (size_t i = 0; model_at(i) != NULL; i++) {
        const struct model_ops *ops = model_at(i);
        join(a->models, sizeof a->models, "|", ops->name);
        join(a->model_help, sizeof a->model_help, ", or ", ops->help);
        for (size_t k = 0; k < ops->settings; k++)
            add_setting(a, ops, &ops->setting[k]);
        for (size_t t = 0; t < ops->tables; t++)
            add_optimizer(a, &ops->table[t]);
    }
    for (size_t i = 0; i < a->settings; i++)
        join(a->setting[i].help, sizeof a->setting[i].help, ": ", a->setting[i].def->help);
    for (size_t i = 0; optimizers_at(i) != NULL; i++)
        join(a->optimizers, sizeof a->optimizers, "|", optimizers_at(i)->name);
}

struct arg model_args_model(struct model_args *a)
{
    return (struct arg){
        .name = "model", .kind = ARG_CHOICE, .out = &a->model, .meta = a->models, .help = a->model_help};
}

size_t model_args_settings(struct model_args *a, struct arg out[MODEL_ARGS_SETTINGS])
{
    for (size_t i = 0; i < a->settings; i++) {
        struct setting_arg *s = &a->setting[i];
        out[i] = (struct arg){.name = s->def->option,
                              .kind = s->def->whole ? ARG_INT : ARG_POSITIVE,
                              .out = s->def->whole ? (void *)&s->whole : (void *)&s->real,
                              .meta = s->def->meta,
                              .help = s->help,
                              .min = s->def->min,
                              .max = s->def->max,
                              .given = &s->given};
    }
    return a->settings;
}

/* "learning rate (0.1; sgd: 0.002)": the usual optimizer's, and those of others that differ. */
static void rates_help(char *out, size_t cap, const char *usual)
{
    double alpha = optimizers_find(usual)->alpha;
    size_t used = (size_t)snprintf(out, cap, "learning rate (%g", alpha);
    for (size_t i = 0; optimizers_at(i) != NULL && used < cap; i++)
        if (optimizers_at(i)->alpha != alpha)
            used += (size_t)snprintf(out + used, cap - used, "; %s: %g", optimizers_at(i)->name,
                                     optimizers_at(i)->alpha);
    if (used < cap)
        (void)snprintf(out + used, cap - used, ")");
}

/* The options of one optimizer. The first table's have the long help, the others' refer to it. */
static void optimizer_args(struct model_args *a, struct optimizer_arg *o, struct arg out[OPTIMIZER_ARGS])
{
    static const char *const names[OPTIMIZER_ARGS] = {"optimizer", "alpha", "beta", "l1", "l2"};
    const struct model_table_def *table = o->table;
    int first = o == &a->optimizer[0];
    for (size_t i = 0; i < OPTIMIZER_ARGS; i++)
        (void)snprintf(o->option[i], sizeof o->option[i], "%s%s", table->prefix, names[i]);
    (void)snprintf(o->help[0], sizeof o->help[0], "the same for %s (%s)", table->what, table->optimizer);
    if (table->alpha > 0)
        (void)snprintf(o->help[1], sizeof o->help[1], "(%g / square root of the workers)", table->alpha);
    else
        rates_help(o->help[1], sizeof o->help[1], table->optimizer);
    out[0] = (struct arg){.kind = ARG_CHOICE, .out = &o->name, .meta = a->optimizers, .given = &o->has_name};
    out[1] = (struct arg){.kind = ARG_POSITIVE, .out = &o->alpha, .meta = "A", .given = &o->has_alpha};
    out[2] = (struct arg){.kind = ARG_NATURAL, .out = &o->beta, .meta = "B", .given = &o->has_beta};
    out[3] = (struct arg){.kind = ARG_NATURAL, .out = &o->l1, .meta = "L", .given = &o->has_l1};
    out[4] = (struct arg){.kind = ARG_NATURAL, .out = &o->l2, .meta = "L", .given = &o->has_l2};
    out[0].help =
        first ? "FTRL-proximal (McMahan et al., KDD 2013), AdaGrad, or plain steps\n(ftrl)" : o->help[0];
    out[1].help = o->help[1];
    out[2].help = first ? "smoothing of the learning rate, ftrl and adagrad (1)" : "(1)";
    out[3].help = first ? "L1 regularisation: more makes more weights 0 (0)" : "(0)";
    out[4].help = first ? "L2 regularisation (0)" : "(0)";
    for (size_t i = 0; i < OPTIMIZER_ARGS; i++)
        out[i].name = o->option[i];
}

size_t model_args_optimizers(struct model_args *a, struct arg out[MODEL_ARGS_OPTIMIZERS * OPTIMIZER_ARGS])
{
    for (size_t i = 0; i < a->optimizers_n; i++)
        optimizer_args(a, &a->optimizer[i], out + i * OPTIMIZER_ARGS);
    return a->optimizers_n * OPTIMIZER_ARGS;
}

static double setting_value(const struct setting_arg *s)
{
    return s->def->whole ? (double)s->whole : s->real;
}

/* Refuses options of other models. */
static int check(const struct model_args *a, const struct model_ops *ops)
{
    size_t place;
    for (size_t i = 0; i < a->settings; i++)
        if (a->setting[i].given && has_setting(ops, a->setting[i].def->option, &place) == NULL)
            return args_wrong("train", "model %s has no option --%s", ops->name, a->setting[i].def->option);
    for (size_t i = 0; i < a->optimizers_n; i++) {
        const struct optimizer_arg *o = &a->optimizer[i];
        if ((o->has_name || o->has_alpha || o->has_beta || o->has_l1 || o->has_l2) &&
            !has_prefix(ops, o->table->prefix, &place))
            return args_wrong("train", "model %s has no options --%s...", ops->name, o->table->prefix);
    }
    return -1;
}

/* What was given, over what info has. */
static void apply(const struct model_args *a, struct model_info *info)
{
    size_t place;
    for (size_t i = 0; i < a->settings; i++)
        if (a->setting[i].given && has_setting(info->ops, a->setting[i].def->option, &place) != NULL)
            info->setting[place] = setting_value(&a->setting[i]);
    for (size_t i = 0; i < a->optimizers_n; i++) {
        const struct optimizer_arg *o = &a->optimizer[i];
        if (!has_prefix(info->ops, o->table->prefix, &place))
            continue;
        struct model_optimizer *to = &info->optimizer[place];
        if (o->has_name)
            (void)snprintf(to->name, sizeof to->name, "%s", o->name);
        to->alpha = o->has_alpha ? o->alpha : to->alpha;
        to->beta = o->has_beta ? o->beta : to->beta;
        to->l1 = o->has_l1 ? o->l1 : to->l1;
        to->l2 = o->has_l2 ? o->l2 : to->l2;
    }
}

int model_args_begin(const struct model_args *a, struct model_info *info)
{
    const struct model_ops *ops = model_find(a->model);
    int code = check(a, ops);
    if (code >= 0)
        return code;
    model_info_init(info, ops);
    apply(a, info);
    return -1;
}

int model_args_continue(const struct model_args *a, const char *dir, struct model_info *info)
{
    size_t place;
    if (a->model != NULL && strcmp(a->model, info->ops->name) != 0)
        return args_wrong("train", "%s is a model of kind %s", dir, info->ops->name);
    int code = check(a, info->ops);
    if (code >= 0)
        return code;
    for (size_t i = 0; i < a->settings; i++) {
        const struct setting_arg *s = &a->setting[i];
        const struct model_setting *def = has_setting(info->ops, s->def->option, &place);
        if (s->given && def != NULL && def->fixed && setting_value(s) != info->setting[place])
            return args_wrong("train", "%s was trained with --%s %g", dir, def->option, info->setting[place]);
    }
    for (size_t i = 0; i < a->optimizers_n; i++) {
        const struct optimizer_arg *o = &a->optimizer[i];
        if (o->has_name && has_prefix(info->ops, o->table->prefix, &place) &&
            strcmp(o->name, info->optimizer[place].name) != 0)
            return args_wrong("train",
                              "%s of %s were trained with %s, whose state does not fit another optimizer",
                              o->table->what, dir, info->optimizer[place].name);
    }
    apply(a, info);
    return -1;
}
