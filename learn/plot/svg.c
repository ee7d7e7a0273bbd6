#include "learn/plot/svg.h"
#include "learn/io/output.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LETTER 0.60 /* mean width of a letter, as a share of its size; a little more than usual fonts have */
#define FONT   "font-family=\"'DejaVu Sans','Helvetica Neue',Arial,sans-serif\""

struct svg {
    FILE *out;
    char *text;
    size_t len;
};

/* The bytes of the UTF-8 character at text; 0: it is not valid, or not allowed in XML. */
static size_t character(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    if (c[0] < 0x80)
        return c[0] >= 0x20 || c[0] == '\t' ? 1 : 0;
    const size_t n = c[0] >= 0xf0 && c[0] < 0xf5   ? 4
                     : c[0] >= 0xe0 && c[0] < 0xf0 ? 3
                     : c[0] >= 0xc2 && c[0] < 0xe0 ? 2
                                                   : 0;
    uint32_t code = n == 4 ? c[0] & 7u : n == 3 ? c[0] & 15u : c[0] & 31u;
    for (size_t i = 1; i < n; i++) {
        if ((c[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (c[i] & 0x3fu);
    }
    if ((n == 3 && code < 0x800) || (n == 4 && (code < 0x10000 || code > 0x10ffff)) ||
        (code >= 0xd800 && code < 0xe000) || code == 0xfffe || code == 0xffff)
        return 0;
    return n;
}

static void put_text(FILE *out, const char *text)
{
    while (*text) {
        const size_t n = character(text);
        if (*text == '<')
            (void)fputs("&lt;", out);
        else if (*text == '>')
            (void)fputs("&gt;", out);
        else if (*text == '&')
            (void)fputs("&amp;", out);
        else if (n == 0 || *text == '\t')
            (void)fputc(n == 0 ? '?' : ' ', out);
        else
            (void)fwrite(text, 1, n, out);
        text += n == 0 ? 1 : n;
    }
}

static paramo_err no_memory(void)
{
    return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a plot");
}

paramo_err svg_new(double width, double height, const char *title, struct svg **svg)
{
    struct svg *s = calloc(1, sizeof *s);
    if (s)
        s->out = open_memstream(&s->text, &s->len);
    if (!s || !s->out) {
        free(s);
        return no_memory();
    }
    (void)fprintf(
        s->out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" " FONT
        ">\n<title>",
        width, height, width, height);
    put_text(s->out, title);
    (void)fputs("</title>\n", s->out);
    svg_rect(s, 0, 0, width, height, "#ffffff", "none");
    *svg = s;
    return PARAMO_OK;
}

void svg_free(struct svg *svg)
{
    if (!svg)
        return;
    (void)fclose(svg->out);
    free(svg->text);
    free(svg);
}

void svg_rect(struct svg *svg, double x, double y, double width, double height, const char *fill,
              const char *stroke)
{
    (void)fprintf(svg->out,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" stroke=\"%s\"/>\n",
                  x, y, width, height, fill, stroke);
}

void svg_line(struct svg *svg, double x1, double y1, double x2, double y2, const char *stroke, double width)
{
    (void)fprintf(
        svg->out,
        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"%g\"/>\n", x1, y1,
        x2, y2, stroke, width);
}

void svg_circle(struct svg *svg, double x, double y, double radius, const char *fill)
{
    (void)fprintf(svg->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%g\" fill=\"%s\"/>\n", x, y, radius, fill);
}

void svg_polyline(struct svg *svg, const double *x, const double *y, size_t n, const char *stroke,
                  const char *dash)
{
    (void)fprintf(svg->out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\"%s%s%s points=\"",
                  stroke, dash ? " stroke-dasharray=\"" : "", dash ? dash : "", dash ? "\"" : "");
    for (size_t i = 0; i < n; i++)
        (void)fprintf(svg->out, "%s%.1f,%.1f", i == 0 ? "" : " ", x[i], y[i]);
    (void)fputs("\"/>\n", svg->out);
}

void svg_text(struct svg *svg, double x, double y, enum svg_anchor anchor, double size, int turned,
              const char *text)
{
    static const char *const words[] = {[SVG_START] = "start", [SVG_MIDDLE] = "middle", [SVG_END] = "end"};
    (void)fprintf(svg->out,
                  "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%g\" fill=\"#222222\"", x, y,
                  words[anchor], size);
    if (turned)
        (void)fprintf(svg->out, " transform=\"rotate(-90 %.1f %.1f)\"", x, y);
    (void)fputc('>', svg->out);
    put_text(svg->out, text);
    (void)fputs("</text>\n", svg->out);
}

double svg_text_width(const char *text, double size)
{
    size_t letters = 0;
    for (; *text; text++)
        letters += ((unsigned char)*text & 0xc0) != 0x80;
    return (double)letters * size * LETTER;
}

paramo_err svg_write(struct svg *svg, const char *path)
{
    struct output *out = NULL;
    (void)fputs("</svg>\n", svg->out);
    if (fflush(svg->out) != 0 || ferror(svg->out))
        return no_memory();
    paramo_err err = output_open(path, &out);
    if (err == PARAMO_OK)
        err = output_write(out, svg->text, svg->len);
    if (err == PARAMO_OK)
        return output_commit(out);
    output_abort(out);
    return err;
}
