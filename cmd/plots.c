#include "cmd/plots.h"
#include "cmd/plots_impl.h"
#include "learn/io/output.h"
#include "learn/plot/chart.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

paramo_err plots_check(const char *path)
{
    struct output *out = NULL;
    paramo_err err = output_open(path, &out);
    output_abort(out);
    return err;
}

const char *plots_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] != '\0' ? slash + 1 : path;
}

void plots_heading(struct svg *svg, const char *text)
{
    char cut[TITLE_MAX];
    (void)snprintf(cut, sizeof cut, "%s", text);
    for (size_t len = strlen(cut); len > 4 && svg_text_width(cut, SVG_LARGE) > WIDTH - 30; len--) {
        while (len > 4 && ((unsigned char)cut[len - 4] & 0xc0) == 0x80)
            len--;
        (void)snprintf(cut + len - 4, sizeof cut - len + 4, "...");
    }
    svg_text(svg, WIDTH / 2.0, 26, SVG_MIDDLE, SVG_LARGE, 0, cut);
}

paramo_err plots_finish(struct svg *svg, const char *path)
{
    paramo_err err = svg_write(svg, path);
    svg_free(svg);
    return err;
}

/* ---- eval ---- */

/* The thresholds and the bins as arrays, which charts take. */
struct curve_arrays {
    double share[CURVES_POINTS + 2], recall[CURVES_POINTS + 2], fallout[CURVES_POINTS + 2],
        precision[CURVES_POINTS + 2], lift[CURVES_POINTS + 2];
    double prediction[CURVES_BINS], label[CURVES_BINS], low[CURVES_BINS], high[CURVES_BINS];
};

static void fill_arrays(const struct curves_result *r, struct curve_arrays *c)
{
    for (size_t i = 0; i < r->n; i++) {
        c->share[i] = 100 * r->at[i].share;
        c->recall[i] = 100 * r->at[i].recall;
        c->fallout[i] = 100 * r->at[i].fallout;
        c->precision[i] = 100 * r->at[i].precision;
        c->lift[i] = r->at[i].lift;
    }
    for (size_t i = 0; i < r->bins; i++) {
        c->prediction[i] = r->bin[i].prediction;
        c->label[i] = r->bin[i].label;
        c->low[i] = r->bin[i].low;
        c->high[i] = r->bin[i].high;
    }
}

static const struct chart_axis percent = {.low = 0, .high = 100};

static struct chart_axis percent_of(const char *title)
{
    struct chart_axis axis = percent;
    axis.title = title;
    return axis;
}

static void draw_roc(struct svg *svg, const struct curves_result *r, const struct curve_arrays *c,
                     const struct metrics_result *m)
{
    static const double ends[] = {0, 100};
    char name[64];
    (void)snprintf(name, sizeof name, "model, AUC %.4f", m->value[METRIC_AUC]);
    const struct chart_series series[] = {
        {.name = name, .n = r->n, .x = c->fallout, .y = c->recall},
        {.name = "chance", .style = CHART_DASHED, .colour = 6, .n = 2, .x = ends, .y = ends},
    };
    const struct chart chart = {.title = "ROC",
                                .x = percent_of("false positives (% of label 0)"),
                                .y = percent_of("true positives (% of label 1)"),
                                .series = series,
                                .n = 2};
    chart_draw(svg, 0, HEAD, PANEL, PANEL, &chart);
}

static void draw_precision(struct svg *svg, const struct curves_result *r, const struct curve_arrays *c)
{
    const double base = 100 * (double)r->positives / (double)r->rows;
    const double ends[] = {0, 100}, level[] = {base, base};
    char name[64];
    (void)snprintf(name, sizeof name, "chance, %.3g %%", base);
    const struct chart_series series[] = {
        {.name = "model", .n = r->n, .x = c->recall, .y = c->precision},
        {.name = name, .style = CHART_DASHED, .colour = 6, .n = 2, .x = ends, .y = level},
    };
    struct chart_axis y = {.title = "precision (% of rows above)", .low = 0, .high = 0};
    chart_include(&y, c->precision, r->n);
    chart_range(&y);
    const struct chart chart = {.title = "precision and recall",
                                .x = percent_of("recall (% of label 1)"),
                                .y = y,
                                .series = series,
                                .n = 2};
    chart_draw(svg, PANEL, HEAD, PANEL, PANEL, &chart);
}

static void draw_reliability(struct svg *svg, const struct objective *o, const struct curves_result *r,
                             const struct curve_arrays *c)
{
    const int rates = (o->ops->metrics & METRIC_BIT(METRIC_CALIBRATION)) != 0; /* predictions are rates */
    char name[64];
    struct chart_axis x = {.title = rates ? "mean prediction (rate)" : "mean margin",
                           .low = rates ? 0 : 1,
                           .high = 0},
                      y = {.title = "mean label (rate)", .low = 0, .high = 0};
    chart_include(&x, c->prediction, r->bins);
    chart_include(&y, c->high, r->bins);
    if (rates) {
        chart_include(&x, c->high, r->bins);
        chart_include(&y, c->prediction, r->bins);
    }
    chart_range(&x);
    chart_range(&y);
    (void)snprintf(name, sizeof name, "model, %zu bins of rows, 95 %%", r->bins);
    const double ends[] = {0, fmin(x.high, y.high)};
    const struct chart_series series[] = {
        {.name = name,
         .style = CHART_LINE_POINTS,
         .n = r->bins,
         .x = c->prediction,
         .y = c->label,
         .low = c->low,
         .high = c->high},
        {.name = "ideal", .style = CHART_DASHED, .colour = 6, .n = 2, .x = ends, .y = ends},
    };
    const struct chart chart = {.title = "reliability", .x = x, .y = y, .series = series, .n = rates ? 2 : 1};
    chart_draw(svg, 0, HEAD + PANEL, PANEL, PANEL, &chart);
}

static void draw_lift(struct svg *svg, const struct curves_result *r, const struct curve_arrays *c)
{
    static const double ends[] = {0, 100}, one[] = {1, 1};
    struct chart_axis y = {.title = "lift (times the mean rate)", .low = 0, .high = 1};
    const struct chart_series series[] = {
        {.name = "model", .n = r->n, .x = c->share, .y = c->lift},
        {.name = "chance", .style = CHART_DASHED, .colour = 6, .n = 2, .x = ends, .y = one},
    };
    /* the lift of few rows is chance: the axis need not include it */
    size_t few = 0;
    while (few + 1 < r->n && c->share[few] < 0.2)
        few++;
    chart_include(&y, c->lift + few, r->n - few);
    chart_range(&y);
    const struct chart chart = {
        .title = "lift", .x = percent_of("rows, highest scores first (%)"), .y = y, .series = series, .n = 2};
    chart_draw(svg, PANEL, HEAD + PANEL, PANEL, PANEL, &chart);
}

paramo_err plots_eval(const char *path, const char *model, const char *data, const struct objective *o,
                      const struct metrics_result *m, const struct curves_result *r)
{
    struct svg *svg;
    char title[TITLE_MAX];
    struct curve_arrays *c = malloc(sizeof *c);
    if (!c)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a plot");
    fill_arrays(r, c);
    (void)snprintf(title, sizeof title, "%s: %s %.5g on %" PRIu64 " rows, %s", plots_base_name(model),
                   o->ops->loss, objective_shown(o, m->loss), m->rows, plots_base_name(data));
    paramo_err err = svg_new(WIDTH, HEAD + 2 * PANEL, title, &svg);
    if (err == PARAMO_OK) {
        plots_heading(svg, title);
        draw_roc(svg, r, c, m);
        draw_precision(svg, r, c);
        draw_reliability(svg, o, r, c);
        draw_lift(svg, r, c);
        err = plots_finish(svg, path);
    }
    free(c);
    return err;
}

/* ---- train ---- */

/* The epochs as arrays; all but the first are losses. */
struct epoch_arrays {
    size_t n;
    double *epoch, *learned, *measured, *guess;
};

static paramo_err fill_epochs(const struct train_result *r, struct epoch_arrays *e)
{
    const size_t most = r->epochs - r->first_epoch;
    double *memory = malloc((4 * most + 1) * sizeof *memory);
    if (!memory)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a plot of %zu epochs", most);
    *e = (struct epoch_arrays){
        .epoch = memory, .learned = memory + most, .measured = memory + 2 * most, .guess = memory + 3 * most};
    for (size_t i = r->first_epoch; i < r->epochs; i++) {
        const struct train_epoch *t = &r->epoch[i];
        if (t->rows == 0)
            continue;
        e->epoch[e->n] = (double)(i + 1);
        e->learned[e->n] = objective_shown(&r->objective, t->loss);
        e->measured[e->n] = t->has_valid ? objective_shown(&r->objective, t->valid.loss) : (double)NAN;
        e->guess[e->n++] = r->base_loss > 0 ? objective_shown(&r->objective, r->base_loss) : (double)NAN;
    }
    return PARAMO_OK;
}

static void draw_losses(struct svg *svg, const struct train_result *r, const struct epoch_arrays *e)
{
    char title[64], best[64];
    const int measures = r->best_epoch > 0;
    const size_t at = r->best_epoch;
    double best_x = (double)at, best_y = objective_shown(&r->objective, r->best_loss);
    (void)snprintf(title, sizeof title, "mean %s of a row", r->objective.ops->loss);
    (void)snprintf(best, sizeof best, "best, epoch %zu: %.5g", at, best_y);
    struct chart_series series[4] = {{.name = "rows learned, before each batch",
                                      .style = CHART_LINE_POINTS,
                                      .n = e->n,
                                      .x = e->epoch,
                                      .y = e->learned}};
    size_t n = 1;
    if (measures) {
        series[n++] = (struct chart_series){.name = r->hold_out > 0 ? "held-out rows" : "validation rows",
                                            .style = CHART_LINE_POINTS,
                                            .colour = 1,
                                            .n = e->n,
                                            .x = e->epoch,
                                            .y = e->measured};
        series[n++] = (struct chart_series){
            .name = best, .style = CHART_POINTS, .colour = 2, .n = 1, .x = &best_x, .y = &best_y};
    }
    if (r->base_loss > 0)
        series[n++] = (struct chart_series){.name = "the same guess for each row",
                                            .style = CHART_DASHED,
                                            .colour = 6,
                                            .n = e->n,
                                            .x = e->epoch,
                                            .y = e->guess};
    struct chart_axis x = {.title = "epoch", .low = 1, .high = 0, .whole = 1},
                      y = {.title = title, .low = 1, .high = 0};
    chart_include(&x, e->epoch, e->n);
    chart_include(&y, e->learned, e->n);
    chart_include(&y, e->measured, e->n);
    chart_include(&y, e->guess, e->n);
    chart_range(&x);
    chart_range(&y);
    const struct chart chart = {.title = "loss by epoch", .x = x, .y = y, .series = series, .n = n};
    chart_draw(svg, 0, HEAD, WIDTH, 420, &chart);
}

paramo_err plots_train(const char *path, const char *model, const char *data, const struct train_result *r)
{
    struct svg *svg;
    struct epoch_arrays e = {0};
    char title[TITLE_MAX];
    paramo_err err = fill_epochs(r, &e);
    if (err != PARAMO_OK)
        return err;
    (void)snprintf(title, sizeof title, "%s on %s: %" PRIu64 " rows learned in %.3g s", model,
                   plots_base_name(data), r->rows, r->seconds);
    err = svg_new(WIDTH, HEAD + 430, title, &svg);
    if (err == PARAMO_OK) {
        plots_heading(svg, title);
        draw_losses(svg, r, &e);
        err = plots_finish(svg, path);
    }
    free(e.epoch);
    return err;
}
