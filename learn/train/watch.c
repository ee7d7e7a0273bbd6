#include "learn/train/watch.h"

#include <math.h>
#include <stdio.h>

#define DIVERGED    1.5  /* arbitrary: times the guess's loss */
#define TURNS_LEAST 50   /* arbitrary: with fewer, sorted labels are chance */
#define TURNS_USUAL 10   /* arbitrary: users' rows often stand together, which halves the turns or so */
#define LEAST_GAIN  0.01 /* arbitrary: share of the guess's loss; a smaller gain is hardly worth a model */
#define ONE_PERCENT 2.326347874 /* standard deviations below the mean of a normal distribution */
#define SKIP_MARK   1000        /* in bad: the next window is a fresh model's first */

/* The name of the best guess. */
static const char *guess_of(const struct objective *o)
{
    return o->ops->labels == LABEL_BINARY ? "guessing the mean rate" : "guessing the same for each row";
}

int watch_diverges(const struct objective *o, double loss, double guess)
{
    return guess > 0 && loss > DIVERGED * guess && loss > objective_toss(o);
}

static int is_class(const struct objective *o)
{
    return o->ops->labels == LABEL_BINARY || o->ops->labels == LABEL_CLASS;
}

void watch_order_add(struct watch_order *w, const struct objective *o, const float *label, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float up = w->begun ? label[i] - w->before : 0;
        w->begun = 1;
        w->before = label[i];
        if (up == 0)
            continue;
        w->changes++;
        w->turns += is_class(o) || (up > 0) != (w->up > 0);
        w->up = up;
    }
}

static double usual_turns(const struct objective *o, double rows, double positives, const double *count,
                          double changes)
{
    const double p = rows > 0 ? positives / rows : 0;
    double sum = 0, squares = 0;
    if (o->ops->labels == LABEL_BINARY)
        return 2 * p * (1 - p) * rows;
    if (o->ops->labels != LABEL_CLASS)
        return changes * 2 / 3;
    for (uint32_t c = 0; c < o->classes; c++) {
        sum += count[c];
        squares += count[c] * count[c];
    }
    return sum > 0 ? (1 - squares / (sum * sum)) * rows : 0;
}

int watch_sorted(const struct objective *o, uint64_t rows, uint64_t positives, const double *count,
                 double turns, double changes, double *usual)
{
    *usual = usual_turns(o, (double)rows, (double)positives, count, changes);
    return *usual >= TURNS_LEAST && turns < *usual / TURNS_USUAL;
}

static double mean_of(const struct watch_sums *s)
{
    return s->labels.weight > 0 ? s->loss / s->labels.weight : 0;
}

void watch_begin(struct watch *w, const struct objective *o, int fresh)
{
    *w = (struct watch){.objective = o, .bad = fresh ? SKIP_MARK : 0};
}

int watch_step(struct watch *w, const struct watch_sums *sums, struct watch_sums *window)
{
    const struct watch_sums *began = &w->began;
    if (sums->rows - began->rows < WATCH_ROWS)
        return 0;
    *window = (struct watch_sums){.rows = sums->rows - began->rows,
                                  .labels = {.weight = sums->labels.weight - began->labels.weight,
                                             .label = sums->labels.label - began->labels.label,
                                             .square = sums->labels.square - began->labels.square},
                                  .loss = sums->loss - began->loss};
    w->began = *sums;
    if (w->bad == SKIP_MARK)
        w->bad = 0;
    else
        w->bad = watch_epoch(w->objective, window) ? w->bad + 1 : 0;
    return w->bad == WATCH_WINDOWS;
}

int watch_epoch(const struct objective *o, const struct watch_sums *sums)
{
    return watch_diverges(o, mean_of(sums), objective_spread(o, &sums->labels));
}

void watch_text(char *out, size_t cap, const struct objective *o, const struct watch_sums *s, const char *at)
{
    (void)snprintf(out, cap, "training diverges: %s %.4f %s, %s gives %.4f", o->ops->loss,
                   objective_shown(o, mean_of(s)), at, guess_of(o),
                   objective_shown(o, objective_spread(o, &s->labels)));
}

/* Nats that a model gains on a row if its mean loss is `loss` and that of the guess is `base`. */
static double gain_of(const struct objective *o, double loss, double base)
{
    if (o->ops->nats == 0)
        return base - loss;
    return loss > 0 ? o->ops->nats * log(base / loss) : INFINITY;
}

int watch_by_chance(const struct objective *o, double best, double base, uint64_t rows)
{
    const double n = (double)rows, expected = gain_of(o, (1 - LEAST_GAIN) * base, base) * n;
    return expected - gain_of(o, best, base) * n < ONE_PERCENT * sqrt(2 * expected) &&
           !watch_diverges(o, best, base);
}

void watch_judge(char *out, size_t cap, const struct objective *o, const struct watch_verdict *v,
                 const char *at)
{
    char shown[96] = "";
    out[0] = '\0';
    if (v->best < v->base)
        return;
    if (v->epochs > 1 && v->best_epoch == v->epochs)
        (void)snprintf(shown, sizeof shown,
                       "; it still fell in epoch %zu, from %.4f at first: more --epochs help", v->epochs,
                       objective_shown(o, v->first));
    else if (v->epochs > 1 && v->best_epoch == 1)
        (void)snprintf(shown, sizeof shown, "; it rose with further epochs");
    const int chance = watch_by_chance(o, v->best, v->base, v->rows);
    (void)snprintf(out, cap, "%s: %s %.4f %s, %s gives %.4f%s%s",
                   watch_diverges(o, v->best, v->base) ? "training diverges"
                   : chance                            ? "perhaps nothing is learned"
                                                       : "nothing is learned",
                   o->ops->loss, objective_shown(o, v->best), at, guess_of(o), objective_shown(o, v->base),
                   chance ? "; so few rows cannot tell" : "", shown);
}
