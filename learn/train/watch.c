#include "learn/train/watch.h"

#include <math.h>
#include <stdio.h>

#define DIVERGED  1.5  /* times the mean rate's log-loss */
#define SKIP_MARK 1000 /* in bad: the next window is a fresh model's first */

double watch_mean_loss(uint64_t rows, uint64_t positives)
{
    if (positives == 0 || positives >= rows)
        return 0;
    double p = (double)positives / (double)rows;
    return -(p * log(p) + (1 - p) * log1p(-p));
}

void watch_begin(struct watch *w, int fresh)
{
    *w = (struct watch){.bad = fresh ? SKIP_MARK : 0};
}

/* How many times the mean rate's log-loss; 0 if there is none to compare with. */
static double ratio(const struct watch_sums *s)
{
    double mean = watch_mean_loss(s->rows, s->positives);
    return mean > 0 ? s->loss / (double)s->rows / mean : 0;
}

int watch_step(struct watch *w, const struct watch_sums *sums, struct watch_sums *window)
{
    if (sums->rows - w->began.rows < WATCH_ROWS)
        return 0;
    *window = (struct watch_sums){.rows = sums->rows - w->began.rows,
                                  .positives = sums->positives - w->began.positives,
                                  .loss = sums->loss - w->began.loss};
    w->began = *sums;
    if (w->bad == SKIP_MARK)
        w->bad = 0;
    else
        w->bad = ratio(window) > 1 ? w->bad + 1 : 0;
    return w->bad == WATCH_WINDOWS;
}

int watch_epoch(const struct watch_sums *sums, int fresh)
{
    return ratio(sums) > (fresh && sums->rows < WATCH_ROWS ? DIVERGED : 1);
}

void watch_text(char *out, size_t cap, const struct watch_sums *s, const char *at, const char *rates)
{
    double loss = s->rows > 0 ? s->loss / (double)s->rows : 0;
    (void)snprintf(
        out, cap,
        "%s: log-loss %.4f %s, guessing the mean rate gives %.4f; a lower %s or a smaller --batch helps",
        ratio(s) > DIVERGED ? "training diverges" : "nothing is learned", loss, at,
        watch_mean_loss(s->rows, s->positives), rates);
}
