#include "learn/train/watch.h"

#include <math.h>
#include <stdio.h>

#define DIVERGED    1.5                /* times the mean rate's log-loss */
#define TOSS        0.6931471805599453 /* ln 2: what a fair coin's guess costs for any row */
#define TURNS_LEAST 50                 /* arbitrary: with fewer, sorted labels are chance */
#define TURNS_USUAL 10   /* arbitrary: users' rows often stand together, which halves the turns or so */
#define LEAST_GAIN  0.01 /* arbitrary: of guessing's log-loss; so little is hardly worth a model */
#define ONE_PERCENT 2.326347874 /* standard deviations below the mean of a normal distribution */
#define SKIP_MARK   1000        /* in bad: the next window is a fresh model's first */

double watch_mean_loss(uint64_t rows, uint64_t positives)
{
    if (positives == 0 || positives >= rows)
        return 0;
    double p = (double)positives / (double)rows;
    return -(p * log(p) + (1 - p) * log1p(-p));
}

double watch_base_loss(const struct watch_sums *learned, uint64_t rows, uint64_t positives)
{
    /* half a row of each class more: a rate of 0 or 1 guesses nothing */
    double p = ((double)learned->positives + 0.5) / ((double)learned->rows + 1);
    double q = rows > 0 ? (double)positives / (double)rows : 0;
    return -(q * log(p) + (1 - q) * log1p(-p));
}

int watch_diverges(double loss, double mean)
{
    return mean > 0 && loss > DIVERGED * mean && loss > TOSS;
}

int watch_sorted(uint64_t rows, uint64_t positives, double turns, double *usual)
{
    double p = rows > 0 ? (double)positives / (double)rows : 0;
    *usual = 2 * p * (1 - p) * (double)rows;
    return *usual >= TURNS_LEAST && turns < *usual / TURNS_USUAL;
}

static double mean_of(const struct watch_sums *s)
{
    return s->rows > 0 ? s->loss / (double)s->rows : 0;
}

void watch_begin(struct watch *w, int fresh)
{
    *w = (struct watch){.bad = fresh ? SKIP_MARK : 0};
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
        w->bad = watch_epoch(window) ? w->bad + 1 : 0;
    return w->bad == WATCH_WINDOWS;
}

int watch_epoch(const struct watch_sums *sums)
{
    return watch_diverges(mean_of(sums), watch_mean_loss(sums->rows, sums->positives));
}

void watch_text(char *out, size_t cap, const struct watch_sums *s, const char *at)
{
    (void)snprintf(out, cap, "training diverges: log-loss %.4f %s, guessing the mean rate gives %.4f",
                   mean_of(s), at, watch_mean_loss(s->rows, s->positives));
}

int watch_by_chance(double best, double base, uint64_t rows)
{
    const double expected = LEAST_GAIN * base * (double)rows, gain = (base - best) * (double)rows;
    return expected - gain < ONE_PERCENT * sqrt(2 * expected) && !watch_diverges(best, base);
}

void watch_judge(char *out, size_t cap, const struct watch_verdict *v, const char *at)
{
    char shown[96] = "";
    out[0] = '\0';
    if (v->best < v->base)
        return;
    if (v->epochs > 1 && v->best_epoch == v->epochs)
        (void)snprintf(shown, sizeof shown,
                       "; it still fell in epoch %zu, from %.4f at first: more --epochs help", v->epochs,
                       v->first);
    else if (v->epochs > 1 && v->best_epoch == 1)
        (void)snprintf(shown, sizeof shown, "; it rose with further epochs");
    const int chance = watch_by_chance(v->best, v->base, v->rows);
    (void)snprintf(out, cap, "%s: log-loss %.4f %s, guessing the mean rate gives %.4f%s%s",
                   watch_diverges(v->best, v->base) ? "training diverges"
                   : chance                         ? "perhaps nothing is learned"
                                                    : "nothing is learned",
                   v->best, at, v->base, chance ? "; so few rows cannot tell" : "", shown);
}
