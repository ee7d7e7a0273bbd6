#include "cmd/model_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct model_option list[MODEL_OPTIONS_MAX];
static size_t list_n;

/* Appends text after a separator. */
static void join(char *out, size_t cap, const char *separator, const char *text)
{
    size_t used = strlen(out);
    (void)snprintf(out + used, cap - used, "%s%s", used > 0 ? separator : "", text);
}

static struct model_option *add(enum model_option_kind kind)
{
    if (list_n == MODEL_OPTIONS_MAX)
        abort(); /* the models have too many options: raise MODEL_OPTIONS_MAX */
    struct model_option *o = &list[list_n++];
    o->kind = kind;
    return o;
}

static void add_choice(void)
{
    struct model_option *o = add(MODEL_CHOICE);
    (void)snprintf(o->name, sizeof o->name, "model");
    o->option.type = PARAMO_OPTION_WORD;
    for (size_t i = 0; model_at(i); i++) {
        join(o->meta, sizeof o->meta, "|", model_at(i)->name);
        join(o->help, sizeof o->help, ", or ", model_at(i)->help);
    }
}

static void add_setting(const struct model_ops *ops, const struct model_setting *setting)
{
    char initial[32];
    for (size_t i = 0; i < list_n; i++) {
        if (list[i].kind == MODEL_SETTING && strcmp(list[i].name, setting->option) == 0) {
            join(list[i].help, sizeof list[i].help, ", ", ops->name);
            (void)snprintf(initial, sizeof initial, "%s: %g", ops->name, setting->initial);
            if (setting->initial != list[i].setting->initial)
                join(list[i].initial, sizeof list[i].initial, "; ", initial);
            return;
        }
    }
    struct model_option *o = add(MODEL_SETTING);
    o->setting = setting;
    o->option.type = setting->whole ? PARAMO_OPTION_NUMBER : PARAMO_OPTION_POSITIVE;
    o->option.min = setting->min;
    o->option.max = setting->max;
    if (setting->field != FIELD_COUNT)
        (void)snprintf(o->initial, sizeof o->initial, "%g", setting->initial);
    (void)snprintf(o->name, sizeof o->name, "%s", setting->option);
    (void)snprintf(o->meta, sizeof o->meta, "%s", setting->meta);
    (void)snprintf(o->help, sizeof o->help, "%s", ops->name);
}

static double rate_of(const struct optimizer_choice *choice, enum optimizer_option part)
{
    return part == OPTIMIZER_ALPHA ? choice->alpha : choice->beta;
}

/* "learning rate (0.25; sgd: 0.002)": the rate of the table's usual optimizer, and the rates of others that differ. */
static void rates_help(struct model_option *o, const char *what, const char *usual)
{
    const double rate = rate_of(optimizers_find(usual), o->part);
    char one[64];
    (void)snprintf(o->help, sizeof o->help, "%s (%g", what, rate);
    for (size_t i = 0; optimizers_at(i); i++) {
        const double other = rate_of(optimizers_at(i), o->part);
        if (other == rate)
            continue;
        (void)snprintf(one, sizeof one, "%s: %g", optimizers_at(i)->name, other);
        join(o->help, sizeof o->help, "; ", one);
    }
    join(o->help, sizeof o->help, "", ")");
}

/* Options of the first table have the long help; those of other tables have a short one. */
static void optimizer_help(struct model_option *o, int first)
{
    static const char *const helps[OPTIMIZER_OPTIONS][2] = {
        {"FTRL-proximal (McMahan et al., KDD 2013), AdaGrad, or plain steps", "optimizer"},
        {"learning rate", "learning rate"},
        {"smoothing of the learning rate", "smoothing of the learning rate"},
        {"L1 regularisation: more makes more weights 0 (0)", "L1 regularisation"},
        {"L2 regularisation (0)", "L2 regularisation"}};
    const struct model_table_def *table = o->table;
    if (o->part == OPTIMIZER_NAME && first)
        (void)snprintf(o->help, sizeof o->help, "%s (%s)", helps[o->part][0], table->optimizer);
    else if (o->part == OPTIMIZER_NAME)
        (void)snprintf(o->help, sizeof o->help, "optimizer of %s (%s)", table->what, table->optimizer);
    else if (o->part == OPTIMIZER_ALPHA && table->alpha > 0)
        (void)snprintf(o->help, sizeof o->help,
                       table->long_rows > 0
                           ? "learning rate of %s (%g with one worker, less with more, and in long rows)"
                           : "learning rate of %s (%g with one worker, less with more)",
                       table->what, table->alpha);
    else if (o->part == OPTIMIZER_ALPHA || (o->part == OPTIMIZER_BETA && first))
        rates_help(o, helps[o->part][0], table->optimizer);
    else if (first)
        (void)snprintf(o->help, sizeof o->help, "%s", helps[o->part][0]);
    else
        (void)snprintf(o->help, sizeof o->help, "%s of %s (%g)", helps[o->part][1], table->what,
                       o->part == OPTIMIZER_L1   ? 0.0
                       : o->part == OPTIMIZER_L2 ? table->l2
                       : table->alpha > 0        ? table->beta
                                                 : optimizers_find(table->optimizer)->beta);
}

static double initial_rate(const struct model_table_def *table, enum optimizer_option part)
{
    return part == OPTIMIZER_ALPHA ? table->alpha : part == OPTIMIZER_BETA ? table->beta : table->l2;
}

/* Adds the rate of a model to the help, if it is not that of the first model with this option. */
static void add_rate(struct model_option *o, const struct model_ops *ops, const struct model_table_def *table)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%s: %g", ops->name, initial_rate(table, o->part));
    if ((o->part == OPTIMIZER_ALPHA || o->part == OPTIMIZER_BETA || o->part == OPTIMIZER_L2) &&
        initial_rate(table, o->part) != initial_rate(o->table, o->part))
        join(o->initial, sizeof o->initial, "; ", text);
}

static void add_optimizer(const struct model_ops *ops, const struct model_table_def *table)
{
    static const char *const names[OPTIMIZER_OPTIONS] = {"optimizer", "alpha", "beta", "l1", "l2"};
    static const char *const metas[OPTIMIZER_OPTIONS] = {NULL, "A", "B", "L", "L"};
    static const paramo_option_type types[OPTIMIZER_OPTIONS] = {PARAMO_OPTION_WORD, PARAMO_OPTION_POSITIVE,
                                                                PARAMO_OPTION_NATURAL, PARAMO_OPTION_NATURAL,
                                                                PARAMO_OPTION_NATURAL};
    int first = 1, known = 0;
    for (size_t i = 0; i < list_n; i++) {
        first &= list[i].kind != MODEL_OPTIMIZER;
        if (list[i].kind != MODEL_OPTIMIZER || strcmp(list[i].table->prefix, table->prefix) != 0)
            continue;
        add_rate(&list[i], ops, table);
        known = 1;
    }
    if (known)
        return;
    for (enum optimizer_option part = 0; part < OPTIMIZER_OPTIONS; part++) {
        struct model_option *o = add(MODEL_OPTIMIZER);
        o->table = table;
        o->part = part;
        o->option.type = types[part];
        (void)snprintf(o->name, sizeof o->name, "%s%s", table->prefix, names[part]);
        for (size_t i = 0; !metas[part] && optimizers_at(i); i++)
            join(o->meta, sizeof o->meta, "|", optimizers_at(i)->name);
        if (metas[part])
            (void)snprintf(o->meta, sizeof o->meta, "%s", metas[part]);
        optimizer_help(o, first);
    }
}

/* Adds "(0.03; ffm: 0.1)" to the help, within the brackets at its end if there are some. */
static void add_initial(struct model_option *o)
{
    const size_t used = strlen(o->help);
    const int brackets = o->help[used - 1] == ')';
    if (brackets)
        o->help[used - 1] = '\0';
    join(o->help, sizeof o->help, brackets ? "; " : " (", o->initial);
    join(o->help, sizeof o->help, "", ")");
}

static void make_list(void)
{
    add_choice();
    for (size_t i = 0; model_at(i); i++)
        for (size_t k = 0; k < model_at(i)->settings; k++)
            add_setting(model_at(i), &model_at(i)->setting[k]);
    for (size_t i = 0; model_at(i); i++)
        for (size_t t = 0; t < model_at(i)->tables; t++)
            add_optimizer(model_at(i), &model_at(i)->table[t]);
    for (size_t i = 0; i < list_n; i++) {
        struct model_option *o = &list[i];
        if (o->kind == MODEL_SETTING)
            join(o->help, sizeof o->help, ": ", o->setting->help);
        if (o->initial[0] != '\0')
            add_initial(o);
        o->option.name = o->name;
        o->option.meta = o->meta;
        o->option.help = o->help;
    }
}

const struct model_option *model_options_at(size_t i)
{
    if (!list_n)
        make_list();
    return i < list_n ? &list[i] : NULL;
}
