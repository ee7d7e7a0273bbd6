/*
 * Progress on standard error: a bar on a terminal, otherwise a line every few seconds; and its clock.
 *
 * Permanent lines (an epoch's result) go through progress_line, which clears the bar first. progress_format,
 * a pure function, makes the text of the bar. It never knows of models or servers. Tests:
 * test/learn/test_progress.c.
 */
#ifndef LEARN_IO_PROGRESS_H
#define LEARN_IO_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

struct progress {
    int quiet, terminal; /* set by progress_init; quiet 2: no warnings either */
    int drawn;           /* the current line has a bar */
    double last;         /* when progress was last shown */
};

struct progress_state {
    uint32_t epoch, epochs; /* the running one, from 1 */
    double part;            /* of this epoch, 0..1; negative: unknown */
    uint64_t rows;          /* of this epoch so far */
    double seconds;         /* this epoch so far */
    const char *loss_name;
    double loss;           /* progressive, as it is shown; NaN: none yet */
    double pushed, pulled; /* bytes of this epoch so far */
};

void progress_init(struct progress *progress, int quiet);
/* Seconds of a monotonic clock. */
double progress_now(void);
/* Is it time to call progress_show? */
int progress_due(const struct progress *progress, double now);
void progress_show(struct progress *progress, double now, const struct progress_state *state);
void progress_line(struct progress *progress, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "warning: ...", also if no progress is shown (quiet 1). */
void progress_warn(struct progress *progress, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Removes the bar. */
void progress_end(struct progress *progress);

/* Writes at most width columns (and cap - 1 bytes), with a bar if there is room and the part is known. */
void progress_format(char *out, size_t cap, size_t width, int bar, const struct progress_state *state);
/* "1.24 M", "318 k", "27": a number of at most four columns and a unit. "1.5 GB". "0:07", "1:02:03". Each returns
 * out. */
char *progress_count(char *out, size_t cap, double n);
char *progress_bytes(char *out, size_t cap, double bytes);
char *progress_time(char *out, size_t cap, double seconds);

#endif
