/*
 * Shared by plots.c and plots_fits.c: sizes in pixels, and the frame of a document.
 */
#ifndef CMD_PLOTS_IMPL_H
#define CMD_PLOTS_IMPL_H

#include "learn/plot/svg.h"

enum { WIDTH = 800, PANEL = 400, HEAD = 40, TITLE_MAX = 256 };

/* The last part of a path. */
const char *plots_base_name(const char *path);
/* Draws the heading; a text that is too wide is cut, and ends with "...". */
void plots_heading(struct svg *svg, const char *text);
/* Writes the document, and frees it. */
PARAMO_MUST_USE paramo_err plots_finish(struct svg *svg, const char *path);

#endif
