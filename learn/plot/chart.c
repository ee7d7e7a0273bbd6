#include "learn/plot/chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRID  "#e3e3e3"
#define FRAME "#888888"
/* Pixels: points of a line that are nearer than this to the last one are left out; arbitrary. */
#define NEAR    0.6
#define BETWEEN 14.0 /* pixels between two labels of the x axis, at least */
#define LINE    26.0 /* pixels from label to label of the y axis, at least */

/* Okabe and Ito's colours, which colour-blind readers can distinguish, too. */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#666666"};

static const char *colour_of(const struct chart_series *s)
{
    return colours[s->colour % (sizeof colours / sizeof *colours)];
}

/* ---- axes ---- */

void chart_include(struct chart_axis *axis, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]) || (axis->log && !(x[i] > 0)))
            continue;
        if (axis->low > axis->high) {
            axis->low = axis->high = x[i];
            continue;
        }
        axis->low = fmin(axis->low, x[i]);
        axis->high = fmax(axis->high, x[i]);
    }
}

/* The step that gives about n ticks: 1, 2 or 5 times a power of ten. */
static double step_of(double span, size_t n, int whole)
{
    const double rough = span / (double)n, power = pow(10, floor(log10(rough)));
    const double part = rough / power;
    const double step = power * (part <= 1.0001 ? 1 : part <= 2.0001 ? 2 : part <= 5.0001 ? 5 : 10);
    return whole && step < 1 ? 1 : step;
}

void chart_range(struct chart_axis *axis)
{
    if (axis->low > axis->high) {
        axis->low = axis->log ? 1 : 0;
        axis->high = axis->log ? 10 : 1;
    } else if (axis->log) {
        axis->high *= axis->low == axis->high ? 2 : 1;
        axis->low /= axis->low * 2 == axis->high ? 2 : 1;
    } else if (axis->low == axis->high) {
        const double by = axis->low == 0 || axis->whole ? 1 : fabs(axis->low) / 10;
        axis->low -= by;
        axis->high += by;
    } else if (!axis->whole) {
        const double step = step_of(axis->high - axis->low, 5, 0);
        axis->low = floor(axis->low / step + 1e-9) * step;
        axis->high = ceil(axis->high / step - 1e-9) * step;
    }
}

/* 1, 2 and 5 times powers of ten; or only the powers; or every second one ... */
static size_t log_ticks(const struct chart_axis *axis, size_t most, double tick[CHART_TICKS_MAX])
{
    static const double parts[] = {1, 2, 5};
    const int first = (int)floor(log10(axis->low)), last = (int)ceil(log10(axis->high));
    for (int every = 0;; every++) {
        size_t n = 0;
        for (int power = first; power <= last; power++)
            for (size_t k = 0; k < (every == 0 ? 3 : 1); k++) {
                const double at = parts[k] * pow(10, power);
                if ((every > 0 && (power - first) % every != 0) || at < axis->low * 0.9999 ||
                    at > axis->high * 1.0001)
                    continue;
                if (n < CHART_TICKS_MAX)
                    tick[n] = at;
                n++;
            }
        if (n <= (most > 2 ? most : 2) && n <= CHART_TICKS_MAX) {
            if (n < 2) { /* the axis lies within a decade */
                tick[0] = axis->low;
                tick[1] = axis->high;
            }
            return n < 2 ? 2 : n;
        }
    }
}

size_t chart_ticks(const struct chart_axis *axis, size_t most, double tick[CHART_TICKS_MAX])
{
    most = most < 2 ? 2 : most > CHART_TICKS_MAX ? CHART_TICKS_MAX : most;
    if (axis->log)
        return log_ticks(axis, most, tick);
    const double span = axis->high - axis->low;
    for (size_t want = most; want > 0; want--) {
        const double step = step_of(span, want, axis->whole), first = ceil(axis->low / step - 1e-9);
        const double n = floor(axis->high / step + 1e-9) - first + 1;
        if (n > (double)most)
            continue;
        for (size_t i = 0; i < (size_t)n; i++)
            tick[i] = (first + (double)i) * step;
        if (n >= 2)
            return (size_t)n;
    }
    tick[0] = axis->low;
    tick[1] = axis->high;
    return 2;
}

void chart_label(const struct chart_axis *axis, double tick, double step, char *out, size_t cap)
{
    const double size = fabs(tick);
    if (axis->log || size >= 1e5 || (size > 0 && size < 1e-4)) {
        const int needed = size > 0 && !axis->log ? (int)ceil(log10(size / step) + 1e-9) + 1 : 4;
        (void)snprintf(out, cap, "%.*g", needed < 3 ? 3 : needed > 12 ? 12 : needed, tick);
        return;
    }
    int digits = (int)ceil(-log10(step) - 1e-9);
    digits = digits < 0 ? 0 : digits > 8 ? 8 : digits;
    double power = pow(10, digits); /* more digits for a tick that is not round */
    for (int more = 0; more < 2 && digits < 8 && fabs(tick * power - round(tick * power)) > 0.01; more++) {
        digits++;
        power *= 10;
    }
    (void)snprintf(out, cap, "%.*f", digits, size < step / 1e6 ? 0.0 : tick);
}

/* The place of v on the axis, from 0 (low) to 1 (high). */
static double place(const struct chart_axis *a, double v)
{
    const double part = !a->log ? (v - a->low) / (a->high - a->low)
                        : v > 0 ? log(v / a->low) / log(a->high / a->low)
                                : 0;
    return part < 0 ? 0 : part > 1 ? 1 : part;
}

struct frame {
    double left, top, width, height; /* of the axes */
    const struct chart *chart;
};

static double x_of(const struct frame *f, double x)
{
    return f->left + f->width * place(&f->chart->x, x);
}

static double y_of(const struct frame *f, double y)
{
    return f->top + f->height * (1 - place(&f->chart->y, y));
}

static double widest(const struct chart_axis *axis, const double *tick, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        char text[32];
        chart_label(axis, tick[i], n > 1 ? tick[1] - tick[0] : 1, text, sizeof text);
        most = fmax(most, svg_text_width(text, SVG_SMALL));
    }
    return most;
}

/* The largest number of ticks whose labels have room beside each other. */
static size_t x_ticks(const struct frame *f, double tick[CHART_TICKS_MAX])
{
    for (size_t most = 10;; most--) {
        const size_t n = chart_ticks(&f->chart->x, most, tick);
        double nearest = f->width;
        for (size_t i = 1; i < n; i++)
            nearest = fmin(nearest, x_of(f, tick[i]) - x_of(f, tick[i - 1]));
        if (most <= 2 || widest(&f->chart->x, tick, n) + BETWEEN <= nearest)
            return n;
    }
}

static size_t y_ticks(double height, const struct chart *c, double tick[CHART_TICKS_MAX])
{
    return chart_ticks(&c->y, (size_t)(height / LINE), tick);
}

/* An entry of the legend that has no room in its line begins a new one. Returns the number of lines; draws it if svg is
 * not NULL. */
static size_t legend(struct svg *svg, const struct chart *c, double left, double top, double width)
{
    double at = 0;
    size_t lines = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct chart_series *s = &c->series[i];
        if (!s->name)
            continue;
        const double wide = 26 + svg_text_width(s->name, SVG_SMALL) + 14;
        if (lines == 0 || at + wide > width) {
            lines++;
            at = 0;
        }
        const double y = top + 16 * (double)(lines - 1), x = left + at;
        const double ends[2] = {x, x + 20}, level[2] = {y - 4, y - 4};
        if (svg && s->style != CHART_POINTS)
            svg_polyline(svg, ends, level, 2, colour_of(s), s->style == CHART_DASHED ? "4 3" : NULL);
        if (svg && (s->style == CHART_POINTS || s->style == CHART_LINE_POINTS))
            svg_circle(svg, x + 10, y - 4, 3, colour_of(s));
        if (svg)
            svg_text(svg, x + 26, y, SVG_START, SVG_SMALL, 0, s->name);
        at += wide;
    }
    return lines;
}

static void draw_axes(struct svg *svg, const struct frame *f)
{
    const struct chart *c = f->chart;
    double tick[CHART_TICKS_MAX];
    char text[32];
    size_t n = x_ticks(f, tick);
    for (size_t i = 0; i < n; i++) {
        const double x = x_of(f, tick[i]);
        svg_line(svg, x, f->top, x, f->top + f->height, GRID, 1);
        chart_label(&c->x, tick[i], tick[1] - tick[0], text, sizeof text);
        svg_text(svg, x, f->top + f->height + 18, SVG_MIDDLE, SVG_SMALL, 0, text);
    }
    n = y_ticks(f->height, c, tick);
    const double wide = widest(&c->y, tick, n);
    for (size_t i = 0; i < n; i++) {
        const double y = y_of(f, tick[i]);
        svg_line(svg, f->left, y, f->left + f->width, y, GRID, 1);
        chart_label(&c->y, tick[i], tick[1] - tick[0], text, sizeof text);
        svg_text(svg, f->left - 6, y + 4, SVG_END, SVG_SMALL, 0, text);
    }
    svg_rect(svg, f->left, f->top, f->width, f->height, "none", FRAME);
    svg_text(svg, f->left + f->width / 2, f->top + f->height + 36, SVG_MIDDLE, SVG_USUAL, 0, c->x.title);
    svg_text(svg, f->left - 12 - wide, f->top + f->height / 2, SVG_MIDDLE, SVG_USUAL, 1, c->y.title);
}

/* A line through the points, without those that are NEAR to the last one. */
static void draw_line(struct svg *svg, const struct frame *f, const struct chart_series *s)
{
    double *x = malloc((2 * s->n + 1) * sizeof *x), *y = x + s->n;
    size_t n = 0;
    if (!x)
        return;
    for (size_t i = 0; i < s->n; i++) {
        if (!isfinite(s->x[i]) || !isfinite(s->y[i]))
            continue;
        x[n] = x_of(f, s->x[i]);
        y[n] = y_of(f, s->y[i]);
        if (n == 0 || i + 1 == s->n || hypot(x[n] - x[n - 1], y[n] - y[n - 1]) >= NEAR)
            n++;
    }
    svg_polyline(svg, x, y, n, colour_of(s), s->style == CHART_DASHED ? "4 3" : NULL);
    free(x);
}

static void draw_series(struct svg *svg, const struct frame *f, const struct chart_series *s)
{
    for (size_t i = 0; s->low && s->high && i < s->n; i++)
        if (isfinite(s->x[i]) && isfinite(s->low[i]) && isfinite(s->high[i]))
            svg_line(svg, x_of(f, s->x[i]), y_of(f, s->low[i]), x_of(f, s->x[i]), y_of(f, s->high[i]),
                     colour_of(s), 1);
    if (s->style != CHART_POINTS)
        draw_line(svg, f, s);
    for (size_t i = 0; (s->style == CHART_POINTS || s->style == CHART_LINE_POINTS) && i < s->n; i++)
        if (isfinite(s->x[i]) && isfinite(s->y[i]))
            svg_circle(svg, x_of(f, s->x[i]), y_of(f, s->y[i]), 3, colour_of(s));
}

void chart_draw(struct svg *svg, double x, double y, double width, double height, const struct chart *c)
{
    double tick[CHART_TICKS_MAX];
    const double head = 24 + 16 * (double)legend(NULL, c, x, y, width - 30);
    struct frame f = {.chart = c, .top = y + head + 8, .height = height - head - 8 - 46};
    const double wide = widest(&c->y, tick, y_ticks(f.height, c, tick));
    /* labels at the ends of the x axis extend beyond it by half of their width */
    const double half = widest(&c->x, tick, chart_ticks(&c->x, 10, tick)) / 2 + 4;
    f.left = x + fmax(12 + SVG_USUAL + wide + 6, half);
    f.width = x + width - fmax(18, half) - f.left;
    svg_text(svg, x + width / 2, y + 16, SVG_MIDDLE, SVG_USUAL, 0, c->title);
    (void)legend(svg, c, x + 15, y + 36, width - 30);
    draw_axes(svg, &f);
    for (size_t i = 0; i < c->n; i++)
        draw_series(svg, &f, &c->series[i]);
}
