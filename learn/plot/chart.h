/*
 * A chart: axes with ticks and titles, a grid, series of points, and a legend, in a box of an SVG (svg.h). Ticks are as
 * many as have room beside each other, and the legend stands above the axes, so that no text lies on another or on the
 * data. It never knows what the numbers mean. Tests: test/learn/test_svg.c.
 */
#ifndef LEARN_PLOT_CHART_H
#define LEARN_PLOT_CHART_H

#include "learn/plot/svg.h"

struct chart_axis {
    const char *title; /* with the unit */
    double low, high;  /* low < high; for log: both above 0 */
    int log;
    int whole; /* ticks are whole numbers */
};

enum chart_style { CHART_LINE, CHART_DASHED, CHART_POINTS, CHART_LINE_POINTS };

struct chart_series {
    const char *name; /* in the legend; NULL: not there */
    enum chart_style style;
    unsigned colour; /* from 0 */
    size_t n;
    const double *x, *y; /* points outside the axes are drawn at their edge; not finite ones are left out */
    const double *low, *high; /* [n] of y, or NULL: bars of uncertainty */
};

struct chart {
    const char *title;
    struct chart_axis x, y;
    const struct chart_series *series;
    size_t n;
};

/* Draws it into the box at (x, y). MEMORY shows when the document is written. */
void chart_draw(struct svg *svg, double x, double y, double width, double height, const struct chart *chart);

/* Widens low .. high to numbers that ticks have, or by a little if it is one point; of log to within its decades. */
void chart_range(struct chart_axis *axis);
/* Takes x[0..n) into the range, those that are finite (and above 0, for log); low > high: nothing was taken yet. */
void chart_include(struct chart_axis *axis, const double *x, size_t n);

#define CHART_TICKS_MAX 32
/* The places of ticks for room for `most` of them: at least 2, and at most CHART_TICKS_MAX. */
size_t chart_ticks(const struct chart_axis *axis, size_t most, double tick[CHART_TICKS_MAX]);
/* A tick's label. */
void chart_label(const struct chart_axis *axis, double tick, double step, char *out, size_t cap);

#endif
