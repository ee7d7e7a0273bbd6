#include "cmd/tuning.h"
#include "learn/plot/chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 800, HEAD = 40, FIRST = 320, PANEL = 280 };

/* The trials as arrays, which charts take. */
struct trial_arrays {
    size_t n;
    double *number, *loss, *best; /* best: the lowest loss so far */
    double *value;                /* scratch: the values of one option */
};

static double shown(const struct tuning *t, double loss)
{
    return objective_shown(&t->base.model.objective, loss);
}

/* Returns 0 if there is no memory. */
static int fill_arrays(const struct tuning *t, struct trial_arrays *c)
{
    const struct tune_search *s = &t->search;
    double *memory = malloc((4 * s->n + 1) * sizeof *memory), lowest = (double)INFINITY;
    if (!memory)
        return 0;
    *c = (struct trial_arrays){
        .number = memory, .loss = memory + s->n, .best = memory + 2 * s->n, .value = memory + 3 * s->n};
    for (size_t i = 0; i < s->n; i++) {
        if (s->trial[i].budget == 0)
            continue;
        lowest = fmin(lowest, s->trial[i].outcome.loss);
        c->number[c->n] = (double)i;
        /* a trial that diverged is drawn at the upper edge */
        c->loss[c->n] = fmin(shown(t, s->trial[i].outcome.loss), 1e30);
        c->best[c->n++] = isfinite(lowest) ? shown(t, lowest) : (double)NAN;
    }
    return 1;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* From the lowest loss to that of the guess, but only so far that nine tenths of the trials are in the chart. */
static struct chart_axis loss_axis(const struct tuning *t, const struct trial_arrays *c, const char *title)
{
    struct chart_axis y = {.title = title, .low = 1, .high = 0};
    for (size_t i = 0; i < c->n; i++)
        c->value[i] = c->loss[i];
    qsort(c->value, c->n, sizeof *c->value, by_size);
    const double usual = c->value[c->n - 1 - c->n / 10], guess = t->guess > 0 ? shown(t, t->guess) : usual;
    const double ends[] = {c->value[0], fmax(c->best[c->n - 1], fmin(usual, guess))};
    chart_include(&y, ends, 2);
    chart_range(&y);
    return y;
}

static void draw_trials(struct svg *svg, const struct tuning *t, const struct trial_arrays *c,
                        const struct chart_axis *y)
{
    const double guess = t->guess > 0 ? shown(t, t->guess) : (double)NAN;
    const double ends[] = {0, (double)(t->search.n - 1)}, level[] = {guess, guess};
    const struct chart_series series[] = {
        {.name = "trials", .style = CHART_POINTS, .n = c->n, .x = c->number, .y = c->loss},
        {.name = "the best so far", .colour = 1, .n = c->n, .x = c->number, .y = c->best},
        {.name = "the same guess for each row",
         .style = CHART_DASHED,
         .colour = 6,
         .n = 2,
         .x = ends,
         .y = level},
    };
    struct chart_axis x = {
        .title = "trial (what is above the axis is at its edge)", .low = 1, .high = 0, .whole = 1};
    chart_include(&x, ends, 2);
    chart_range(&x);
    const struct chart chart = {.title = "trials",
                                .x = x,
                                .y = *y,
                                .series = series,
                                .n = isfinite(guess) && guess <= y->high ? 3 : 2};
    chart_draw(svg, 0, HEAD, WIDTH, FIRST, &chart);
}

/* A value of 0, and a --batch that is not given, are at the left edge of the logarithmic axis. */
static void draw_option(struct svg *svg, const struct tuning *t, const struct trial_arrays *c,
                        const struct chart_axis *y, size_t option, double left, double top)
{
    const struct tune_option *o = &t->space.option[option];
    char name[64];
    size_t n = 0;
    for (size_t i = 0; i < t->search.n; i++)
        if (t->search.trial[i].budget > 0)
            c->value[n++] = t->search.trial[i].point[option];
    const double best[] = {t->search.trial[t->search.best].point[option]};
    const double best_loss[] = {shown(t, t->search.trial[t->search.best].outcome.loss)};
    const struct chart_series series[] = {
        {.style = CHART_POINTS, .n = n, .x = c->value, .y = c->loss},
        {.style = CHART_POINTS, .colour = 1, .n = 1, .x = best, .y = best_loss},
    };
    (void)snprintf(name, sizeof name, "--%s%s", o->name,
                   o->kind == TUNE_BATCH ? " (rows; left edge: not given)"
                   : o->zero > 0         ? " (0 is at the left edge)"
                                         : "");
    struct chart_axis x = {.title = name, .log = 1, .low = o->low, .high = o->high};
    chart_include(&x, c->value, n);
    if (o->zero > 0)
        x.low /= 1.5;
    chart_range(&x);
    const struct chart chart = {.title = o->name, .x = x, .y = *y, .series = series, .n = 2};
    chart_draw(svg, left, top, WIDTH / 2.0, PANEL, &chart);
}

paramo_err tuning_plot(const struct tuning *t, const char *path)
{
    struct svg *svg;
    struct trial_arrays c;
    char title[128], losses[64];
    const size_t rows = (t->space.n + 1) / 2;
    if (!fill_arrays(t, &c))
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a plot");
    (void)snprintf(title, sizeof title, "%s: the best of %zu trials has %s %.5g", t->base.model.ops->name,
                   t->search.trained, t->base.model.objective.ops->loss,
                   shown(t, t->search.trial[t->search.best].outcome.loss));
    (void)snprintf(losses, sizeof losses, "mean %s of a row", t->base.model.objective.ops->loss);
    paramo_err err = svg_new(WIDTH, HEAD + FIRST + (double)rows * PANEL, title, &svg);
    if (err == PARAMO_OK) {
        const struct chart_axis y = loss_axis(t, &c, losses);
        svg_text(svg, WIDTH / 2.0, 26, SVG_MIDDLE, SVG_LARGE, 0, title);
        draw_trials(svg, t, &c, &y);
        for (size_t i = 0; i < t->space.n; i++)
            draw_option(svg, t, &c, &y, i, i % 2 == 0 ? 0 : WIDTH / 2.0,
                        HEAD + FIRST + (double)(i / 2) * PANEL);
        err = svg_write(svg, path);
        svg_free(svg);
    }
    free(c.number);
    return err;
}
