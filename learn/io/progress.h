/*
 * Progress on standard error: a bar on a terminal, else a line every few seconds; and the clock for it.
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
    int drawn;           /* a bar stands on the line */
    double last;         /* when something was shown */
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
/* Seconds of a clock that never goes back. */
double progress_now(void);
/* Is it time to call progress_show? */
int progress_due(const struct progress *progress, double now);
void progress_show(struct progress *progress, double now, const struct progress_state *state);
void progress_line(struct progress *progress, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "warning: ...", also where no progress is shown. */
void progress_warn(struct progress *progress, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Removes the bar. */
void progress_end(struct progress *progress);

/* Text of at most width columns (and cap - 1 bytes); with a bar if there is room and the part is known. */
void progress_format(char *out, size_t cap, size_t width, int bar, const struct progress_state *state);
/* "1.24 M", "318 k", "27": four columns of digits at most. "1.5 GB". "0:07", "1:02:03". Each returns out. */
char *progress_count(char *out, size_t cap, double n);
char *progress_bytes(char *out, size_t cap, double bytes);
char *progress_time(char *out, size_t cap, double seconds);

#endif
