#include "learn/io/progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define BAR_PERIOD  0.1 /* seconds; arbitrary, as the next one */
#define LINE_PERIOD 5.0

double progress_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static char *scaled(char *out, size_t cap, double n, double step, const char *const unit[5])
{
    size_t u = 0;
    while (u < 4 && n >= 999.5) { /* it would print as 1000 */
        n /= step;
        u++;
    }
    int digits = u == 0 || n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2;
    (void)snprintf(out, cap, "%.*f%s", digits, n, unit[u]);
    return out;
}

char *progress_count(char *out, size_t cap, double n)
{
    static const char *const unit[] = {"", " k", " M", " G", " T"};
    return scaled(out, cap, n, 1000, unit);
}

char *progress_bytes(char *out, size_t cap, double bytes)
{
    static const char *const unit[] = {" B", " kB", " MB", " GB", " TB"};
    return scaled(out, cap, bytes, 1000, unit);
}

char *progress_time(char *out, size_t cap, double seconds)
{
    uint64_t s = seconds < 0 ? 0 : seconds > 3.6e8 ? 360000000 : (uint64_t)(seconds + 0.5);
    unsigned h = (unsigned)(s / 3600), m = (unsigned)(s / 60 % 60), rest = (unsigned)(s % 60);
    if (h > 0)
        (void)snprintf(out, cap, "%u:%02u:%02u", h, m, rest);
    else
        (void)snprintf(out, cap, "%u:%02u", m, rest);
    return out;
}

void progress_format(char *out, size_t cap, size_t width, int bar, const struct progress_state *s)
{
    char tail[160], a[24], b[16], c[16], rows[16], loss[32] = "", left[32] = "", drawing[64] = "",
                                                   percent[16] = "";
    if (!isnan(s->loss))
        (void)snprintf(loss, sizeof loss, "  %s %.5f", s->loss_name, s->loss);
    if (s->part > 0.005 && s->part <= 1) { /* before that, an estimate would be noise */
        double epoch = s->seconds / s->part,
               seconds = epoch * (1 - s->part) + epoch * (double)(s->epochs - s->epoch);
        (void)snprintf(left, sizeof left, "  ETA %s", progress_time(a, sizeof a, seconds));
    }
    (void)snprintf(tail, sizeof tail, "  %s rows  %s rows/s%s  pushed %s  pulled %s%s",
                   progress_count(rows, sizeof rows, (double)s->rows),
                   progress_count(a, sizeof a, s->seconds > 0 ? (double)s->rows / s->seconds : 0), loss,
                   progress_bytes(b, sizeof b, s->pushed), progress_bytes(c, sizeof c, s->pulled), left);
    char head[48];
    (void)snprintf(head, sizeof head, "epoch %u/%u", s->epoch, s->epochs);
    if (s->part >= 0) {
        double part = s->part > 1 ? 1 : s->part;
        (void)snprintf(percent, sizeof percent, " %3d%%", (int)(part * 100));
        size_t used = strlen(head) + strlen(percent) + strlen(tail) + 3;
        size_t room = bar && width > used ? width - used : 0;
        room = room > 40 ? 40 : room;
        if (room >= 8) {
            size_t full = (size_t)(part * (double)room);
            memset(drawing, ' ', room + 3);
            drawing[1] = '[';
            memset(drawing + 2, '=', full);
            if (full < room)
                drawing[2 + full] = '>';
            drawing[2 + room] = ']';
            drawing[3 + room] = 0;
        }
    }
    (void)snprintf(out, cap, "%s%s%s%s", head, drawing, percent, tail);
    if (strlen(out) > width)
        out[width] = 0;
}

void progress_init(struct progress *p, int quiet)
{
    *p = (struct progress){.quiet = quiet, .terminal = isatty(STDERR_FILENO), .last = progress_now()};
}

int progress_due(const struct progress *p, double now)
{
    return !p->quiet && now - p->last >= (p->terminal ? BAR_PERIOD : LINE_PERIOD);
}

static void clear(struct progress *p)
{
    if (p->drawn)
        (void)fputs("\r\033[K", stderr);
    p->drawn = 0;
}

void progress_show(struct progress *p, double now, const struct progress_state *state)
{
    char text[256];
    if (p->quiet)
        return;
    p->last = now;
    if (!p->terminal) {
        progress_format(text, sizeof text, sizeof text - 1, 0, state);
        (void)fprintf(stderr, "%s\n", text);
        return;
    }
    struct winsize size = {0};
    size_t width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79;
    progress_format(text, sizeof text, width < sizeof text ? width : sizeof text - 1, 1, state);
    (void)fprintf(stderr, "\r%s\033[K", text);
    (void)fflush(stderr);
    p->drawn = 1;
}

void progress_line(struct progress *p, const char *fmt, ...)
{
    va_list args;
    if (p->quiet)
        return;
    clear(p);
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fputc('\n', stderr);
}

void progress_warn(struct progress *p, const char *fmt, ...)
{
    va_list args;
    if (p->quiet > 1)
        return;
    clear(p);
    (void)fputs("warning: ", stderr);
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fputc('\n', stderr);
}

void progress_end(struct progress *p)
{
    clear(p);
    (void)fflush(stderr);
}
