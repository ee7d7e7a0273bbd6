/*
 * A chart: axes with ticks and titles, a grid, series of points, and a legend, in a box of an SVG (svg.h). There are no
 * more ticks than have room, and the legend is above the axes, so that no text overlaps other text or the data. It
 * never knows what the numbers mean. Tests: test/learn/test_svg.c.
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
    const char *name; /* in the legend; NULL: it is not in the legend */
    enum chart_style style;
    unsigned colour; /* from 0 */
    size_t n;
    /* Points outside the axes are drawn at their edge; those that are not finite are left out. */
    const double *x, *y;
    const double *low, *high; /* [n]: ends of error bars of y, or NULL */
};

struct chart {
    const char *title;
    struct chart_axis x, y;
    const struct chart_series *series;
    size_t n;
};

/* Draws the chart in the box at (x, y). If memory is short, svg_write fails. */
void chart_draw(struct svg *svg, double x, double y, double width, double height, const struct chart *chart);

/* Widens the range to round numbers, or by a little if it is one point. A log axis is widened only then, and whole
 * numbers, too. */
void chart_range(struct chart_axis *axis);
/* Extends the range to those of x[0..n) that are finite (and above 0, for log). low > high: the range is empty. */
void chart_include(struct chart_axis *axis, const double *x, size_t n);

#define CHART_TICKS_MAX 32
/* The places of at most `most` ticks. Returns their number: at least 2, and at most CHART_TICKS_MAX. */
size_t chart_ticks(const struct chart_axis *axis, size_t most, double tick[CHART_TICKS_MAX]);
/* A tick's label. step: the distance of ticks, from which the number of digits follows. */
void chart_label(const struct chart_axis *axis, double tick, double step, char *out, size_t cap);

#endif
