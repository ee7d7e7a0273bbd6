#include "cmd/darlin_args.h"
#include "cmd/model_args.h"
#include "learn/io/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const biases[] = {"l1", "free", "none"}; /* by enum darlin_bias */

int darlin_args_on(const struct options *s)
{
    return s->verb == VERB_TRAIN && strcmp(option_text(s, OPT_SOLVER), "darlin") == 0;
}

/* The first of these options that was given, or NULL. */
static const char *first_given(const struct options *s, const enum option_id *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *heading;
        char letter;
        if (option_given(s, ids[i]))
            return option_line(VERB_TRAIN, ids[i], &heading, &letter)->name;
    }
    return NULL;
}

static int refuse_without(const struct options *s)
{
    static const enum option_id own[] = {OPT_BIAS,        OPT_TAU,    OPT_BLOCKS,
                                         OPT_BLOCK_ORDER, OPT_NO_KKT, OPT_TOLERANCE};
    const char *name = first_given(s, own, sizeof own / sizeof *own);
    return name ? options_wrong(s, "--%s needs --solver darlin", name) : -1;
}

/* The name of a filter in these chains that delays rows of a push, or NULL. chains may be NULL. */
static const char *holds_back(const char *chains)
{
    static const char *const names[] = {"topk", "threshold", "skip", "significant"};
    for (size_t i = 0; chains && i < sizeof names / sizeof *names; i++) {
        const size_t n = strlen(names[i]);
        for (const char *at = chains; (at = strstr(at, names[i])); at += n)
            if (at > chains && strchr("=,", at[-1]) && strchr(":,;", at[n]))
                return names[i];
    }
    return NULL;
}

/* A step needs the gradients of all rows, so a filter may keep none of them on a worker. */
static int refuse_filters(const struct options *s)
{
    const struct option_list *list = option_list(s, OPT_FILTER);
    const char *name = list->n ? NULL : holds_back(getenv("PARAMO_FILTER"));
    for (size_t i = 0; i < list->n && !name; i++)
        name = holds_back(list->item[i]);
    return name ? options_wrong(s,
                                "--solver darlin does not take the filter %s: it needs the gradients of all "
                                "rows in each step, and that filter holds some back",
                                name)
                : -1;
}

/* Refuses options without a meaning for darlin, and those that it does not support. */
static int refuse_others(const struct options *s, const struct train_options *o)
{
    static const enum option_id others[] = {OPT_BATCH,        OPT_AHEAD,          OPT_CONSISTENCY,
                                            OPT_NEGATIVES,    OPT_SHUFFLE,        OPT_PATIENCE,
                                            OPT_CLASSES,      OPT_QUANTILE,       OPT_CALIBRATE,
                                            OPT_CLASS_WEIGHT, OPT_CHECKPOINT_DIR, OPT_CHECKPOINT_EVERY,
                                            OPT_RESTORE,      OPT_SCHEDULE,       OPT_WARMUP,
                                            OPT_ADMIT,        OPT_EXPIRE};
    const struct model_info *info = &o->model;
    const char *name = first_given(s, others, sizeof others / sizeof *others);
    if (name)
        return options_wrong(s, "--solver darlin does not take --%s", name);
    if (strcmp(info->ops->name, "lr") != 0)
        return options_wrong(s, "--solver darlin trains --model lr only, not %s", info->ops->name);
    if (info->objective.ops != &objective_logistic)
        return options_wrong(s, "--solver darlin takes --objective logistic only, not %s",
                             info->objective.ops->name);
    if (option_given(s, OPT_SCALE) && info->scale != SCALE_NONE && info->scale != SCALE_AUTO)
        return options_wrong(s,
                             "--solver darlin does not scale values: leave out --scale, or use --scale none");
    name = model_args_given(s, (const char *const[]){"optimizer", "alpha", "beta", "l2", NULL});
    if (name)
        return options_wrong(s, "--solver darlin does not take --%s", name);
    if (!(info->optimizer[0].l1 > 0))
        return options_wrong(s, "--solver darlin needs --l1 L above 0: the penalty of each weight");
    return refuse_filters(s);
}

int darlin_args_apply(const struct options *s, struct train_options *o)
{
    struct darlin_options *d = &o->darlin;
    if (s->verb != VERB_TRAIN)
        return -1;
    if (!darlin_args_on(s))
        return refuse_without(s);
    int code = refuse_others(s, o);
    if (code >= 0)
        return code;
    *d = (struct darlin_options){
        .on = 1,
        .delay = (uint32_t)option_number(s, OPT_TAU),
        .blocks = (uint32_t)option_number(s, OPT_BLOCKS),
        .fixed = strcmp(option_text(s, OPT_BLOCK_ORDER), "fixed") == 0,
        .unfiltered = option_flag(s, OPT_NO_KKT),
        .epsilon = option_real(s, OPT_TOLERANCE),
        .passes = option_given(s, OPT_EPOCHS) ? (uint32_t)option_number(s, OPT_EPOCHS) : DARLIN_PASSES};
    while (strcmp(biases[d->bias], option_text(s, OPT_BIAS)) != 0)
        d->bias++;
    o->model.scale = SCALE_NONE;
    o->model.optimizer[0] =
        (struct model_optimizer){.name = DARLIN_OPTIMIZER, .l1 = o->model.optimizer[0].l1};
    return -1;
}

/* ---- results ---- */

void darlin_args_report(json_t *epoch, const struct train_epoch *e)
{
    (void)json_object_set_new(epoch, "objective", json_real(e->objective));
    (void)json_object_set_new(epoch, "violation", json_real(e->violation));
    (void)json_object_set_new(epoch, "violated", json_integer((json_int_t)e->violated));
    (void)json_object_set_new(epoch, "active", json_integer((json_int_t)e->active));
}

void darlin_args_settings(json_t *job, const struct train_options *o, const struct train_result *r)
{
    const struct darlin_options *d = &o->darlin;
    json_t *j = json_pack("{s:f, s:s, s:i, s:i, s:i, s:s, s:b, s:f, s:b}", "l1", o->model.optimizer[0].l1,
                          "bias", biases[d->bias], "tau", (int)d->delay, "delayed", (int)r->delayed, "blocks",
                          (int)r->blocks, "block_order", d->fixed ? "fixed" : "random", "kkt", !d->unfiltered,
                          "tolerance", d->epsilon, "converged", r->converged);
    if (r->epochs > r->first_epoch)
        (void)json_object_set_new(j, "objective_value", json_real(r->epoch[r->epochs - 1].objective));
    (void)json_object_set_new(job, "darlin", j);
}

void darlin_args_table(const struct train_result *r)
{
    char keys[16], weights[16], sent[16], received[16];
    (void)printf(
        " pass     objective   log-loss   violated       keys    weights     pushed     pulled     time\n");
    for (size_t i = r->first_epoch; i < r->epochs; i++) {
        const struct train_epoch *e = &r->epoch[i];
        if (e->rows == 0)
            continue;
        (void)printf("%5zu %13.7g    %.5f %10" PRIu64 " %10s %10s %10s %10s %6.2f s\n", i + 1, e->objective,
                     e->loss, e->violated, progress_count(keys, sizeof keys, (double)e->active),
                     progress_count(weights, sizeof weights, (double)e->nonzero),
                     progress_bytes(sent, sizeof sent, e->sent),
                     progress_bytes(received, sizeof received, e->received), e->seconds);
    }
}
