/*
 * What the files of plots share: sizes in pixels, and the frame of a document. Only plots*.c include it.
 */
#ifndef CMD_PLOTS_IMPL_H
#define CMD_PLOTS_IMPL_H

#include "learn/plot/svg.h"

enum { WIDTH = 800, PANEL = 400, HEAD = 40, TITLE_MAX = 256 };

/* The last part of a path. */
const char *plots_base_name(const char *path);
/* A heading that fits: the text is cut at its end. */
void plots_heading(struct svg *svg, const char *text);
/* Writes the document, and frees it. */
PARAMO_MUST_USE paramo_err plots_finish(struct svg *svg, const char *path);

#endif
