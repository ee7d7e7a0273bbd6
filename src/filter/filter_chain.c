#include "filter/filter_chain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "filter/registry.h"

const char *filter_direction_name(enum filter_direction direction)
{
    return direction == FILTER_PUSH ? "push" : "pull";
}

static paramo_err no_filter(const char *name, size_t len)
{
    char names[2 * FILTER_CHAIN_TEXT];
    size_t at = 0;
    for (unsigned i = 0, n = registry_count(); i < n && at < sizeof names; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", registry_at(i)->name);
    return err_set(PARAMO_E_INVALID, "there is no filter \"%.*s\"; the filters are %s",
                   (int)(len < 40 ? len : 40), name, names);
}

/* arg: what follows the colon; NULL: there is none. */
static paramo_err read_arg(const struct filter_ops *ops, const char *arg, size_t len, float *value)
{
    char text[32] = {0}, *end = text;
    *value = ops->preset;
    if (!ops->meta)
        return arg ? err_set(PARAMO_E_INVALID, "filter %s takes no argument", ops->name) : PARAMO_OK;
    if (!arg && isnan(ops->preset))
        return err_set(PARAMO_E_INVALID, "filter %s needs an argument: %s:%s", ops->name, ops->name,
                       ops->meta);
    if (!arg)
        return PARAMO_OK;
    if (len && len < sizeof text && strchr("0123456789.", arg[0])) {
        memcpy(text, arg, len);
        *value = strtof(text, &end);
    }
    bool good = len && end == text + len && filter_takes(ops, *value);
    return good ? PARAMO_OK
                : err_set(PARAMO_E_INVALID, "\"%.*s\" is not an argument of filter %s: %s from %g to %g",
                          (int)len, arg, ops->name, ops->whole ? "a whole number" : "a number",
                          (double)ops->min, (double)ops->max);
}

/* Why a filter of a lower rank cannot come after one of this rank. */
static const char *why_not_behind(enum filter_rank before)
{
    switch (before) {
    case FILTER_COMPRESSES:
        return "compressed bytes are neither keys nor values";
    case FILTER_BYTES:
        return "it makes bytes, which are no values any more";
    default:
        return "values must not be rounded before they are held back";
    }
}

/* Why `ops` may not follow what the chain has; OK: it may. */
static paramo_err may_follow(const struct filter_chain *chain, const struct filter_ops *ops)
{
    for (unsigned i = 0; i < chain->count; i++) {
        const struct filter_ops *before = chain->at[i].ops;
        if (before == ops)
            return err_set(PARAMO_E_INVALID, "filter %s is in the chain twice", ops->name);
        bool single = ops->rank == FILTER_ROUNDS || ops->rank == FILTER_COMPRESSES;
        if (before->rank == ops->rank && single)
            return err_set(PARAMO_E_INVALID, "a chain has %s or %s, not both: the second would gain nothing",
                           before->name, ops->name);
        if (before->rank > ops->rank && (before->rank != FILTER_KEYS || ops->rank == FILTER_KEYS))
            return err_set(PARAMO_E_INVALID, "filter %s must come before %s: %s", ops->name, before->name,
                           why_not_behind(before->rank));
    }
    return PARAMO_OK;
}

static void insert_by_rank(struct filter_chain *chain, struct filter_setting setting)
{
    unsigned at = chain->count++;
    for (; at && chain->at[at - 1].ops->rank > setting.ops->rank; at--)
        chain->at[at] = chain->at[at - 1];
    chain->at[at] = setting;
}

paramo_err filter_chain_parse(const char *text, enum filter_direction direction, struct filter_chain *out)
{
    struct filter_chain chain = {0};
    bool none = !text[0] || strcmp(text, "none") == 0;
    for (const char *at = text, *next; !none; at = next + 1) {
        next = at + strcspn(at, ",");
        const char *colon = memchr(at, ':', (size_t)(next - at));
        size_t len = (size_t)((colon ? colon : next) - at);
        const struct filter_ops *ops = registry_of_name(at, len);
        struct filter_setting setting = {.ops = ops};
        paramo_err err = ops ? PARAMO_OK : no_filter(at, len);
        if (!err && !(ops->directions >> direction & 1))
            err = err_set(PARAMO_E_INVALID, "filter %s is not for %s", ops->name,
                          direction == FILTER_PUSH ? "pushes" : "pulls");
        if (!err)
            err =
                read_arg(ops, colon ? colon + 1 : NULL, colon ? (size_t)(next - colon - 1) : 0, &setting.arg);
        if (!err)
            err = may_follow(&chain, ops);
        if (!err && chain.count == FILTER_CHAIN_MAX)
            err = err_set(PARAMO_E_INVALID, "a chain has at most %d filters", FILTER_CHAIN_MAX);
        if (err)
            return err;
        insert_by_rank(&chain, setting);
        if (!*next)
            break;
    }
    *out = chain;
    return PARAMO_OK;
}

static paramo_err read_part(const char *part, struct filter_chain chains[FILTER_DIRECTIONS], unsigned *seen)
{
    for (unsigned d = 0; d < FILTER_DIRECTIONS; d++) {
        const char *name = filter_direction_name((enum filter_direction)d);
        size_t len = strlen(name);
        if (strncmp(part, name, len) != 0 || part[len] != '=')
            continue;
        if (*seen >> d & 1)
            return err_set(PARAMO_E_INVALID, "filters: %s= is given twice", name);
        *seen |= 1u << d;
        paramo_err err = filter_chain_parse(part + len + 1, (enum filter_direction)d, &chains[d]);
        return err ? err_prefix(err, "filters %s", part) : PARAMO_OK;
    }
    return err_set(PARAMO_E_INVALID, "filters: \"%s\" does not begin with push= or pull=", part);
}

paramo_err filter_chains_parse(const char *text, struct filter_chain chains[FILTER_DIRECTIONS])
{
    struct filter_chain read[FILTER_DIRECTIONS];
    unsigned seen = 0;
    memcpy(read, chains, sizeof read);
    for (const char *at = text;; at++) {
        char part[FILTER_CHAIN_TEXT];
        size_t len = strcspn(at, ";");
        if (len >= sizeof part)
            return err_set(PARAMO_E_INVALID, "filters: a chain is longer than %d bytes",
                           FILTER_CHAIN_TEXT - 1);
        memcpy(part, at, len);
        part[len] = '\0';
        paramo_err err = read_part(part, read, &seen);
        if (err)
            return err;
        at += len;
        if (!*at)
            break;
    }
    memcpy(chains, read, sizeof read);
    return PARAMO_OK;
}

static const char *unfit(const struct filter_ops *ops, const struct filter_table *table,
                         enum filter_direction direction)
{
    return ops->unfit ? ops->unfit(table, direction) : NULL;
}

paramo_err filter_chain_fits(const struct filter_chain *chain, const struct filter_table *table,
                             enum filter_direction direction)
{
    for (unsigned i = 0; i < chain->count; i++) {
        const char *why = unfit(chain->at[i].ops, table, direction);
        if (why)
            return err_set(PARAMO_E_UNSUPPORTED, "filter %s cannot be used: %s", chain->at[i].ops->name, why);
    }
    return PARAMO_OK;
}

struct filter_chain filter_chain_fitting(const struct filter_chain *chain, const struct filter_table *table,
                                         enum filter_direction direction)
{
    struct filter_chain fitting = {0};
    for (unsigned i = 0; i < chain->count; i++)
        if (!unfit(chain->at[i].ops, table, direction))
            fitting.at[fitting.count++] = chain->at[i];
    return fitting;
}

void filter_chain_text(const struct filter_chain *chain, char text[FILTER_CHAIN_TEXT])
{
    size_t at = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < chain->count && at < FILTER_CHAIN_TEXT; i++) {
        const struct filter_setting *s = &chain->at[i];
        at += (size_t)snprintf(text + at, FILTER_CHAIN_TEXT - at, "%s%s", i ? "," : "", s->ops->name);
        if (s->ops->meta && at < FILTER_CHAIN_TEXT)
            at += (size_t)snprintf(text + at, FILTER_CHAIN_TEXT - at, ":%.9g", (double)s->arg);
    }
}

bool filter_chain_has(const struct filter_chain *chain, enum filter_rank rank)
{
    for (unsigned i = 0; i < chain->count; i++)
        if (chain->at[i].ops->rank == rank)
            return true;
    return false;
}
