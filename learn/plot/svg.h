/*
 * Writes an SVG document of lines, circles, rectangles and texts, all in pixels from the upper left corner. Texts are
 * escaped; characters that are not valid UTF-8 or not allowed in XML become '?'. Every element is one line of the file.
 * It never knows what is drawn (chart.h does). Not thread-safe. Tests: test/learn/test_svg.c.
 */
#ifndef LEARN_PLOT_SVG_H
#define LEARN_PLOT_SVG_H

#include "paramo/paramo.h"

#include <stddef.h>

struct svg;

enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };

#define SVG_SMALL 11.0 /* sizes of texts */
#define SVG_USUAL 12.0
#define SVG_LARGE 15.0

/* title: of the document, for screen readers. MEMORY. The caller frees the document with svg_free. */
PARAMO_MUST_USE paramo_err svg_new(double width, double height, const char *title, struct svg **svg);
void svg_free(struct svg *svg); /* NULL is allowed */

/* fill and stroke are colours as in SVG. If there is no memory for an element, svg_write fails. */
void svg_rect(struct svg *svg, double x, double y, double width, double height, const char *fill,
              const char *stroke);
void svg_line(struct svg *svg, double x1, double y1, double x2, double y2, const char *stroke, double width);
void svg_circle(struct svg *svg, double x, double y, double radius, const char *fill);
/* dash: as in stroke-dasharray, or NULL. */
void svg_polyline(struct svg *svg, const double *x, const double *y, size_t n, const char *stroke,
                  const char *dash);
/* y is the baseline. turned: the text runs upwards, turned around (x, y). */
void svg_text(struct svg *svg, double x, double y, enum svg_anchor anchor, double size, int turned,
              const char *text);
/* An estimate of a text's width, a little above that in the usual sans-serif fonts. */
double svg_text_width(const char *text, double size);

/* Writes the document completely or not at all (learn/io/output.h). */
PARAMO_MUST_USE paramo_err svg_write(struct svg *svg, const char *path);

#endif
