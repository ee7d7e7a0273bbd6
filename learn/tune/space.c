#include "learn/tune/space.h"

#include "learn/data/holdout.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- ranges ---- */

static struct tune_option *add(struct tune_space *s, enum tune_kind kind, size_t place, double low,
                               double high)
{
    assert(s->n < TUNE_OPTIONS_MAX);
    struct tune_option *o = &s->option[s->n++];
    *o = (struct tune_option){.kind = kind, .place = place, .low = low, .high = high};
    return o;
}

static void add_optimizer(struct tune_space *s, const struct model_info *info, size_t table,
                          enum tune_kind kind, double low, double high, double zero, double usual)
{
    static const char *const names[] = {
        [TUNE_ALPHA] = "alpha", [TUNE_BETA] = "beta", [TUNE_L1] = "l1", [TUNE_L2] = "l2"};
    struct tune_option *o = add(s, kind, table, low, high);
    (void)snprintf(o->name, sizeof o->name, "%s%s", info->ops->table[table].prefix, names[kind]);
    o->zero = zero;
    o->usual = usual;
}

/* The weights get wide ranges, and other tables get ranges around the rates that the model names. Arbitrary: they
 * contain the settings that were best on the data sets of docs/TRAINING.md. */
static void add_table(struct tune_space *s, const struct model_info *info, size_t table)
{
    const double alpha = model_alpha(info, table, 2), beta = model_beta(info, table),
                 l2 = model_l2(info, table);
    if (table == 0) {
        add_optimizer(s, info, table, TUNE_ALPHA, alpha / 12, alpha * 8, 0, alpha);
        add_optimizer(s, info, table, TUNE_BETA, 0.5, 128, 0, beta);
        add_optimizer(s, info, table, TUNE_L1, 0.05, 5, 0.7, 0);
        add_optimizer(s, info, table, TUNE_L2, 0.1, 60, 0.3, 0);
    } else {
        add_optimizer(s, info, table, TUNE_ALPHA, alpha / 12, alpha * 4, 0, alpha);
        add_optimizer(s, info, table, TUNE_BETA, beta / 10 > 0.5 ? beta / 10 : 0.5, beta * 2, 0, beta);
        add_optimizer(s, info, table, TUNE_L2, 0.001, 1, 0.4, l2);
    }
}

/* Values of a whole number, which makes the model larger, are powers of two. Fields are not tuned. */
static void add_setting(struct tune_space *s, const struct model_info *info, size_t place)
{
    const struct model_setting *m = &info->ops->setting[place];
    const double low = m->initial / (m->whole ? 2 : 6), high = m->initial * (m->whole ? 4 : 6);
    if (m->field != FIELD_UNUSED)
        return;
    struct tune_option *o = add(s, TUNE_SETTING, place, m->whole && low < m->min ? m->min : low,
                                m->whole && high > m->max ? m->max : high);
    (void)snprintf(o->name, sizeof o->name, "%s", m->option);
    o->doubles = m->whole;
    o->usual = m->initial;
}

void tune_space_init(struct tune_space *s, const struct model_info *info)
{
    *s = (struct tune_space){0};
    for (size_t t = 0; t < info->ops->tables; t++)
        add_table(s, info, t);
    for (size_t i = 0; i < info->ops->settings; i++)
        add_setting(s, info, i);
    struct tune_option *batch = add(s, TUNE_BATCH, 0, 32, 512);
    (void)snprintf(batch->name, sizeof batch->name, "batch");
    batch->doubles = 1;
    batch->zero = 0.4;
}

/* The number that x becomes as text on a command line. */
static double as_text(double x)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.12g", x);
    return strtod(text, NULL);
}

void tune_space_rows(struct tune_space *s, const struct model_info *info)
{
    for (size_t i = 0; i < s->n; i++) {
        struct tune_option *o = &s->option[i];
        if (o->kind != TUNE_ALPHA)
            continue;
        o->usual = as_text(model_alpha(info, o->place, 2));
        if (!o->ranged && o->usual < o->low)
            o->low = o->usual / 2;
    }
}

static struct tune_option *find(struct tune_space *s, const char *name, size_t len)
{
    for (size_t i = 0; i < s->n; i++)
        if (strlen(s->option[i].name) == len && memcmp(s->option[i].name, name, len) == 0)
            return &s->option[i];
    return NULL;
}

void tune_space_drop(struct tune_space *s, const char *name)
{
    struct tune_option *o = find(s, name, strlen(name));
    if (o) {
        memmove(o, o + 1, (size_t)(s->option + s->n - (o + 1)) * sizeof *o);
        s->n--;
    }
}

const char *tune_space_range(struct tune_space *s, const char *text)
{
    const char *sign = strchr(text, '=');
    struct tune_option *o = sign ? find(s, text, (size_t)(sign - text)) : NULL;
    char *end;
    if (!sign)
        return "expected NAME=LOW:HIGH";
    if (!o)
        return "no option of that name is tuned";
    const double low = strtod(sign + 1, &end);
    const char *at = end;
    const double high = *at == ':' ? strtod(at + 1, &end) : 0;
    if (at == sign + 1 || *at != ':' || end == at + 1 || *end != '\0')
        return "expected NAME=LOW:HIGH";
    if (!(low > 0) || !(high >= low) || !isfinite(high))
        return "both ends are above 0, the first at most the second";
    if (o->doubles && (low < 1 || high > (o->kind == TUNE_BATCH ? 1 << 20 : 512) || floor(low) != low))
        return "expected whole numbers that the option can have";
    o->low = low;
    o->high = high;
    o->zero = 0;
    o->ranged = 1;
    return NULL;
}

/* ---- points ---- */

struct dice {
    uint64_t state;
};

static struct dice dice_of(uint64_t seed, uint64_t number)
{
    return (struct dice){holdout_mix(holdout_mix(seed) + number)};
}

/* 0 <= x < 1. */
static double roll(struct dice *d)
{
    d->state = holdout_mix(d->state);
    return (double)(d->state >> 11) * 0x1p-53;
}

/* About normal, with standard deviation 1: the sum of twelve rolls. */
static double roll_normal(struct dice *d)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += roll(d);
    return sum;
}

/* x with three significant digits, as the number that its text gives. */
static double rounded(double x)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.3g", x);
    return strtod(text, NULL);
}

/* The value at a place from 0 (low) to 1 (high). */
static double value_at(const struct tune_option *o, double place)
{
    place = place < 0 ? 0 : place > 1 ? 1 : place;
    if (!o->doubles)
        return rounded(o->low * exp(place * log(o->high / o->low)));
    const double steps = floor(log2(o->high / o->low) + 1e-9); /* low, 2 low, ... */
    return o->low * exp2(floor(fmin(place * (steps + 1), steps)));
}

static double place_of(const struct tune_option *o, double value)
{
    if (!(o->high > o->low) || !(value > 0))
        return 0.5;
    const double place = log(value / o->low) / log(o->high / o->low);
    if (!o->doubles)
        return place;
    const double steps = floor(log2(o->high / o->low) + 1e-9);
    return (log2(value / o->low) + 0.5) / (steps + 1);
}

void tune_usual(const struct tune_space *s, double *point)
{
    for (size_t i = 0; i < s->n; i++)
        point[i] = s->option[i].usual;
}

void tune_draw(const struct tune_space *s, uint64_t seed, uint64_t number, double *point)
{
    struct dice d = dice_of(seed, number);
    for (size_t i = 0; i < s->n; i++) {
        const double zero = roll(&d), place = roll(&d);
        point[i] = zero < s->option[i].zero ? 0 : value_at(&s->option[i], place);
    }
}

#define CHANGED 0.6  /* share of the options that a near point changes; arbitrary, as the next two */
#define STEP    0.12 /* standard deviation of a change, as a share of the range */
#define TO_ZERO 0.15 /* probability that a value becomes 0, or is no longer 0 */

void tune_near(const struct tune_space *s, const double *from, uint64_t seed, uint64_t number, double *point)
{
    struct dice d = dice_of(seed, number);
    for (size_t i = 0; i < s->n; i++) {
        const struct tune_option *o = &s->option[i];
        const int changes = roll(&d)<CHANGED, zero = o->zero> 0 && roll(&d) < TO_ZERO;
        const double step = STEP * roll_normal(&d), place = roll(&d);
        if (!changes)
            point[i] = from[i];
        else if (zero || from[i] == 0)
            point[i] = from[i] != 0 ? 0 : zero ? value_at(o, place) : 0;
        else
            point[i] = value_at(o, place_of(o, from[i]) + (o->doubles ? 2 * step : step));
    }
}

void tune_apply(const struct tune_space *s, const double *point, struct train_options *options)
{
    struct model_info *info = &options->model;
    for (size_t i = 0; i < s->n; i++) {
        const struct tune_option *o = &s->option[i];
        struct model_optimizer *optimizer = &info->optimizer[o->kind == TUNE_SETTING ? 0 : o->place];
        switch (o->kind) {
        case TUNE_SETTING:
            info->setting[o->place] = point[i];
            break;
        case TUNE_ALPHA:
            optimizer->alpha = point[i];
            break;
        case TUNE_BETA:
            optimizer->beta = point[i];
            break;
        case TUNE_L1:
            optimizer->l1 = point[i];
            break;
        case TUNE_L2:
            optimizer->l2 = point[i];
            break;
        case TUNE_BATCH:
            options->batch = (uint64_t)point[i];
            break;
        }
    }
}

size_t tune_text(const struct tune_space *s, const double *point, char *out, size_t cap)
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < s->n && len < cap; i++)
        if (s->option[i].kind != TUNE_BATCH || point[i] > 0)
            len += (size_t)snprintf(out + len, cap - len, " --%s %.12g", s->option[i].name, point[i]);
    return len < cap ? len : cap - 1;
}
