#include "cmd/plots.h"
#include "cmd/plots_impl.h"
#include "learn/plot/chart.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The greatest number of classes in the confusion matrix, and of those with a number in each cell: more do not fit. */
enum { SHOWN = 30, NUMBERED = 10 };

/* ---- numbers ---- */

/* The bins as arrays, which charts take. */
struct bin_arrays {
    double prediction[FITS_BINS], label[FITS_BINS], low[FITS_BINS], high[FITS_BINS];
};

/* residuals: of labels minus predictions; otherwise of labels. */
static struct bin_arrays arrays_of(const struct fits_result *r, int residuals)
{
    struct bin_arrays b = {0};
    for (size_t i = 0; i < r->bins; i++) {
        const double less = residuals ? r->bin[i].prediction : 0;
        b.prediction[i] = r->bin[i].prediction;
        b.label[i] = r->bin[i].label - less;
        b.low[i] = residuals ? r->bin[i].under : r->bin[i].low;
        b.high[i] = residuals ? r->bin[i].over : r->bin[i].high;
    }
    return b;
}

static struct chart_series bins_series(const struct bin_arrays *b, size_t n, const char *name)
{
    return (struct chart_series){.name = name,
                                 .style = CHART_LINE_POINTS,
                                 .n = n,
                                 .x = b->prediction,
                                 .y = b->label,
                                 .low = b->low,
                                 .high = b->high};
}

static struct chart_axis axis_of(const char *title, const double *x, size_t n)
{
    struct chart_axis axis = {.title = title, .low = 1, .high = 0};
    chart_include(&axis, x, n);
    return axis;
}

static void draw_predictions(struct svg *svg, const struct fits_result *r, int residuals)
{
    const struct bin_arrays b = arrays_of(r, residuals);
    char name[64];
    struct chart_axis x = axis_of("mean prediction", b.prediction, r->bins),
                      y = axis_of(residuals ? "label - prediction" : "label", b.low, r->bins);
    chart_include(&y, b.high, r->bins);
    chart_range(&x);
    chart_range(&y);
    const double ends[] = {x.low, x.high}, ideal[] = {residuals ? 0 : x.low, residuals ? 0 : x.high};
    (void)snprintf(name, sizeof name, "mean of %zu bins, 80 %% of rows", r->bins);
    const struct chart_series series[] = {
        bins_series(&b, r->bins, name),
        {.name = "ideal", .style = CHART_DASHED, .colour = 6, .n = 2, .x = ends, .y = ideal},
    };
    const struct chart chart = {.title = residuals ? "residuals by prediction" : "labels by prediction",
                                .x = x,
                                .y = y,
                                .series = series,
                                .n = 2};
    chart_draw(svg, residuals ? PANEL : 0, HEAD, PANEL, PANEL, &chart);
}

static void draw_steps(struct svg *svg, const struct fits_result *r)
{
    double x[2 * FITS_STEPS + 2], y[2 * FITS_STEPS + 2] = {0};
    for (size_t i = 0; i <= FITS_STEPS; i++)
        x[2 * i] = x[2 * i + 1] = r->step_from + (double)i * r->step_width;
    for (size_t i = 0; i < FITS_STEPS; i++)
        y[2 * i + 1] = y[2 * i + 2] = 100 * r->step[i];
    const size_t n = 2 * FITS_STEPS + 2;
    struct chart_axis across = axis_of("label - prediction", x, n), up = axis_of("rows (%)", y, n);
    chart_range(&across);
    chart_range(&up);
    const struct chart_series series = {
        .name = "rows of each step", .style = CHART_LINE, .n = n, .x = x, .y = y};
    const struct chart chart = {.title = "residuals", .x = across, .y = up, .series = &series, .n = 1};
    chart_draw(svg, 0, HEAD + PANEL, PANEL, PANEL, &chart);
}

static void draw_errors(struct svg *svg, const struct fits_result *r)
{
    double percent[101];
    for (size_t i = 0; i <= 100; i++)
        percent[i] = (double)i;
    struct chart_axis x = axis_of("error, at most", r->error, 100); /* the greatest error is left out */
    chart_range(&x);
    const struct chart_series series = {
        .name = "model", .style = CHART_LINE, .n = 101, .x = r->error, .y = percent};
    const struct chart chart = {.title = "predictions near the label",
                                .x = x,
                                .y = {.title = "rows (%)", .low = 0, .high = 100},
                                .series = &series,
                                .n = 1};
    chart_draw(svg, PANEL, HEAD + PANEL, PANEL, PANEL, &chart);
}

/* ---- classes ---- */

static uint64_t labels_of(const struct fits_result *r, uint32_t class)
{
    uint64_t rows = 0;
    for (uint32_t c = 0; c < r->classes; c++)
        rows += r->confusion[(size_t) class * r->classes + c];
    return rows;
}

static uint64_t predicted_as(const struct fits_result *r, uint32_t class)
{
    uint64_t rows = 0;
    for (uint32_t c = 0; c < r->classes; c++)
        rows += r->confusion[(size_t)c * r->classes + class];
    return rows;
}

/* Chooses the classes that are the label of most rows, in the order of their numbers. Returns how many. */
static uint32_t choose_classes(const struct fits_result *r, uint32_t chosen[SHOWN])
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < r->classes; c++) {
        if (n < SHOWN) {
            chosen[n++] = c;
            continue;
        }
        uint32_t least = 0;
        for (uint32_t i = 1; i < n; i++)
            least = labels_of(r, chosen[i]) < labels_of(r, chosen[least]) ? i : least;
        if (labels_of(r, c) <= labels_of(r, chosen[least]))
            continue;
        for (uint32_t i = least; i + 1 < n; i++)
            chosen[i] = chosen[i + 1];
        chosen[n - 1] = c;
    }
    return n;
}

/* From white for 0 to blue for 1. */
static void colour_of(double share, char out[8])
{
    const unsigned other = (unsigned)(255 - 200 * share);
    (void)snprintf(out, 8, "#%02x%02xff", other, other);
}

static void draw_cell(struct svg *svg, double x, double y, double size, double share, int numbered)
{
    char colour[8], text[16];
    colour_of(share, colour);
    svg_rect(svg, x, y, size, size, colour, "#dddddd");
    (void)snprintf(text, sizeof text, "%.0f", 100 * share);
    if (numbered)
        svg_text(svg, x + size / 2, y + size / 2 + 4, SVG_MIDDLE, SVG_SMALL, 0, text);
}

static void draw_confusion(struct svg *svg, const struct fits_result *r)
{
    const double left = 66, top = HEAD + 56, room = PANEL - 100;
    uint32_t chosen[SHOWN];
    const uint32_t n = choose_classes(r, chosen);
    const double size = room / n;
    const int numbered = n <= NUMBERED;
    char text[64];
    svg_text(svg, left + room / 2, HEAD + 20, SVG_MIDDLE, SVG_USUAL, 0, "confusion");
    if (n < r->classes)
        (void)snprintf(text, sizeof text, "%% of the rows of a label, %u of %u labels", n, r->classes);
    else
        (void)snprintf(text, sizeof text, "%% of the rows of a label");
    svg_text(svg, left + room / 2, HEAD + 40, SVG_MIDDLE, SVG_SMALL, 0, text);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t rows = labels_of(r, chosen[i]);
        for (uint32_t k = 0; k < n; k++)
            draw_cell(svg, left + k * size, top + i * size, size,
                      rows > 0
                          ? (double)r->confusion[(size_t)chosen[i] * r->classes + chosen[k]] / (double)rows
                          : 0,
                      numbered);
        (void)snprintf(text, sizeof text, "%u", chosen[i]);
        if (!numbered && i % 5 > 0)
            continue;
        svg_text(svg, left - 6, top + i * size + size / 2 + 4, SVG_END, SVG_SMALL, 0, text);
        svg_text(svg, left + i * size + size / 2, top + room + 14, SVG_MIDDLE, SVG_SMALL, 0, text);
    }
    svg_text(svg, 16, top + room / 2, SVG_MIDDLE, SVG_USUAL, 1, "label");
    svg_text(svg, left + room / 2, top + room + 32, SVG_MIDDLE, SVG_USUAL, 0, "predicted");
}

static void draw_certainty(struct svg *svg, const struct fits_result *r)
{
    const struct bin_arrays b = arrays_of(r, 0);
    static const double ends[] = {0, 1};
    char name[64];
    (void)snprintf(name, sizeof name, "model, %zu bins of rows, 95 %%", r->bins);
    const struct chart_series series[] = {
        bins_series(&b, r->bins, name),
        {.name = "ideal", .style = CHART_DASHED, .colour = 6, .n = 2, .x = ends, .y = ends},
    };
    const struct chart chart = {
        .title = "reliability",
        .x = {.title = "mean probability of the predicted class", .low = 0, .high = 1},
        .y = {.title = "rows for which it is right (rate)", .low = 0, .high = 1},
        .series = series,
        .n = 2};
    chart_draw(svg, PANEL, HEAD, PANEL, PANEL, &chart);
}

/* A class that no row has, or that is never predicted, has no point. */
static paramo_err draw_classes(struct svg *svg, const struct fits_result *r)
{
    const size_t n = r->classes;
    double *at = malloc(3 * n * sizeof *at), *recall = at + n, *precision = at + 2 * n;
    if (!at)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a plot of %zu classes", n);
    for (uint32_t c = 0; c < n; c++) {
        const double right = 100 * (double)r->confusion[(size_t)c * n + c];
        at[c] = c;
        recall[c] = right / (double)labels_of(r, c);
        precision[c] = right / (double)predicted_as(r, c);
    }
    struct chart_axis x = axis_of("class", at, n);
    x.whole = 1;
    chart_range(&x);
    const struct chart_series series[] = {
        {.name = "recall", .style = CHART_POINTS, .n = n, .x = at, .y = recall},
        {.name = "precision", .style = CHART_POINTS, .colour = 1, .n = n, .x = at, .y = precision},
    };
    const struct chart chart = {.title = "recall and precision",
                                .x = x,
                                .y = {.title = "rows (%)", .low = 0, .high = 100},
                                .series = series,
                                .n = 2};
    chart_draw(svg, 0, HEAD + PANEL, PANEL, PANEL, &chart);
    free(at);
    return PARAMO_OK;
}

static void draw_ranks(struct svg *svg, const struct fits_result *r)
{
    double rank[FITS_RANKS], among[FITS_RANKS];
    const size_t n = r->classes < FITS_RANKS ? r->classes : FITS_RANKS;
    for (size_t i = 0; i < n; i++) {
        rank[i] = (double)(i + 1);
        among[i] = 100 * r->among[i];
    }
    struct chart_axis x = axis_of("classes of the highest probability", rank, n);
    x.whole = 1;
    chart_range(&x);
    const struct chart_series series = {
        .name = "model", .style = CHART_LINE_POINTS, .n = n, .x = rank, .y = among};
    const struct chart chart = {.title = "the label is among the best",
                                .x = x,
                                .y = {.title = "rows (%)", .low = 0, .high = 100},
                                .series = &series,
                                .n = 1};
    chart_draw(svg, PANEL, HEAD + PANEL, PANEL, PANEL, &chart);
}

paramo_err plots_fits(const char *path, const char *model, const char *data, const struct objective *o,
                      const struct metrics_result *m, const struct fits_result *r)
{
    struct svg *svg;
    char title[TITLE_MAX];
    (void)snprintf(title, sizeof title, "%s: %s %.5g on %" PRIu64 " rows, %s", plots_base_name(model),
                   o->ops->loss, objective_shown(o, m->loss), m->rows, plots_base_name(data));
    paramo_err err = svg_new(WIDTH, HEAD + 2 * PANEL, title, &svg);
    if (err != PARAMO_OK)
        return err;
    plots_heading(svg, title);
    if (r->classes > 0) {
        draw_confusion(svg, r);
        draw_certainty(svg, r);
        err = draw_classes(svg, r);
        draw_ranks(svg, r);
    } else {
        draw_predictions(svg, r, 0);
        draw_predictions(svg, r, 1);
        draw_steps(svg, r);
        draw_errors(svg, r);
    }
    if (err == PARAMO_OK)
        return plots_finish(svg, path);
    svg_free(svg);
    return err;
}
