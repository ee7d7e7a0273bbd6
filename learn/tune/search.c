#include "learn/tune/search.h"

#include "learn/data/holdout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Each rung keeps one trial in KEPT, so a round has KEPT^(RUNGS - 1) trials. */
enum { RUNGS = 3, KEPT = TUNE_KEPT };

/* The epochs of a rung: a part of all epochs, rounded up. If epochs grow, three more of them have about KEPT times as
 * many passes. */
static uint64_t budget_of(const struct tune_search *s, int rung)
{
    uint64_t part = 1;
    const uint64_t less = 3 * (uint64_t)(RUNGS - 1 - rung);
    if (s->growing)
        return s->epochs > less ? s->epochs - less : 1;
    for (int i = rung; i < RUNGS - 1; i++)
        part *= KEPT;
    return (s->epochs + part - 1) / part;
}

/* Is trial a better than b? Of equal ones, the first is better. */
static int is_better(const struct tune_search *s, size_t a, size_t b)
{
    const double x = s->trial[a].outcome.loss, y = s->trial[b].outcome.loss;
    return x != y ? x < y : a < b;
}

/* The place of the k-th best trial so far, from 0; of the last one if there are fewer. */
static size_t good(const struct tune_search *s, size_t k)
{
    size_t best[KEPT] = {0}, n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->trial[i].budget == 0)
            continue;
        size_t at = n < KEPT ? n++ : KEPT;
        for (; at > 0 && is_better(s, i, best[at - 1]); at--)
            if (at < KEPT)
                best[at] = best[at - 1];
        if (at < KEPT)
            best[at] = i;
    }
    return best[k < n ? k : n - 1];
}

/* Chooses the point of a trial (search.h). */
static void choose(const struct tune_search *s, size_t number, double *point)
{
    if (number == 0)
        tune_usual(s->space, point);
    else if (number < TUNE_ROUND || number % 3 == 0)
        tune_draw(s->space, s->seed, number, point);
    else
        tune_near(s->space,
                  s->trial[good(s, number % 3 == 1 ? 0 : holdout_mix(s->seed + number) % KEPT)].point,
                  s->seed, number, point);
}

static paramo_err train(struct tune_search *s, size_t number, uint64_t epochs)
{
    struct tune_trial *t = &s->trial[number];
    struct tune_outcome outcome = {0};
    if (t->budget > 0 && (t->outcome.ended || t->budget >= epochs))
        return PARAMO_OK;
    paramo_err err = s->train(s->arg, number, t->point, epochs, &outcome);
    if (err != PARAMO_OK)
        return err;
    outcome.loss = isfinite(outcome.loss) ? outcome.loss : (double)INFINITY;
    s->trained += t->budget == 0;
    t->budget = epochs;
    t->outcome = outcome;
    s->best = good(s, 0);
    return PARAMO_OK;
}

/* Moves the best `keep` of place[0..n) to the front, the best one first. */
static void select_best(const struct tune_search *s, size_t *place, size_t n, size_t keep)
{
    for (size_t i = 0; i < keep; i++)
        for (size_t k = i + 1; k < n; k++)
            if (is_better(s, place[k], place[i])) {
                const size_t swap = place[i];
                place[i] = place[k];
                place[k] = swap;
            }
}

/* place[0..n) are the trials that a rung has trained so far. Drops those that are not among the best `keep`, or have
 * ended. */
static void drop_others(const struct tune_search *s, const size_t *place, size_t n, size_t keep)
{
    for (size_t i = 0; s->drop && i < n; i++) {
        size_t better = 0;
        for (size_t k = 0; k < n; k++)
            better += is_better(s, place[k], place[i]) ? 1 : 0;
        if (better >= keep || s->trial[place[i]].outcome.ended)
            s->drop(s->arg, place[i]);
    }
}

static paramo_err run_round(struct tune_search *s, size_t from, size_t n)
{
    size_t place[TUNE_ROUND];
    paramo_err err = PARAMO_OK;
    for (size_t i = 0; i < n; i++) {
        choose(s, from + i, s->trial[from + i].point);
        place[i] = from + i;
    }
    s->n = from + n;
    for (int rung = 0; err == PARAMO_OK && rung < RUNGS; rung++) {
        const size_t keep = (n + KEPT - 1) / KEPT;
        for (size_t i = 0; err == PARAMO_OK && i < n; i++) {
            err = train(s, place[i], budget_of(s, rung));
            if (err == PARAMO_OK)
                drop_others(s, place, i + 1, rung == RUNGS - 1 ? 0 : keep);
        }
        if (err != PARAMO_OK)
            break;
        select_best(s, place, n, keep);
        n = keep;
    }
    return err;
}

paramo_err tune_search_run(struct tune_search *s)
{
    paramo_err err = PARAMO_OK;
    s->trial = NULL;
    s->n = s->trained = s->best = 0;
    for (size_t from = 0; err == PARAMO_OK && from < s->most; from += TUNE_ROUND) {
        const size_t n = s->most - from < TUNE_ROUND ? s->most - from : TUNE_ROUND;
        struct tune_trial *trial = realloc(s->trial, (from + n) * sizeof *trial);
        if (!trial)
            return paramo_error_set(PARAMO_E_MEMORY, "out of memory for %zu trials", from + n);
        s->trial = trial;
        memset(trial + from, 0, n * sizeof *trial);
        err = run_round(s, from, n);
    }
    return err;
}

void tune_search_free(struct tune_search *s)
{
    free(s->trial);
    s->trial = NULL;
    s->n = s->trained = 0;
}
