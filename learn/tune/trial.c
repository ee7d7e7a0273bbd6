#include "learn/tune/trial.h"

#include "learn/io/progress.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*             trial_run              epochs are learned
 *     WAITS ------------> RUNS ----------------------------> WAITS
 *       | trial_free        | the job is over
 *       v                   v
 *     ENDS --------------> OVER
 */
enum state { WAITS, RUNS, ENDS, OVER };

struct trial {
    struct train_options options;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    enum state state;
    uint64_t until; /* epochs */
    struct tune_outcome outcome;
    double guess; /* 0: not known */
    double held_out[MSUMS];
    paramo_err err;
    char message[PARAMO_ERROR_MAX];
};

static void take(struct trial *t, const struct train_result *r)
{
    const struct train_epoch *last = r->epochs > 0 ? &r->epoch[r->epochs - 1] : NULL;
    t->outcome.loss = r->best_epoch > 0 ? r->best_loss : (double)INFINITY;
    t->outcome.epochs = r->best_epoch;
    t->outcome.ended = r->stopped_early;
    memcpy(t->held_out, r->held_out, sizeof t->held_out);
    if (last && last->has_valid && last->valid.base > 0)
        t->guess = last->valid.base;
}

/* Waits until the trial must run or end. The lock is held on entry and return. */
static void wait_for_order(struct trial *t)
{
    while (t->state == WAITS)
        (void)pthread_cond_wait(&t->changed, &t->lock);
    assert(t->state == RUNS || t->state == ENDS);
}

/* train_options.continues */
static int continues(void *arg, const struct train_result *so_far)
{
    struct trial *t = arg;
    (void)pthread_mutex_lock(&t->lock);
    if (t->state == RUNS && so_far->epochs >= t->until) {
        take(t, so_far);
        t->state = WAITS;
        (void)pthread_cond_broadcast(&t->changed);
        wait_for_order(t);
    }
    const int on = t->state == RUNS;
    (void)pthread_mutex_unlock(&t->lock);
    return on;
}

static void *trial_main(void *arg)
{
    struct trial *t = arg;
    struct train_result result = {0};
    (void)pthread_mutex_lock(&t->lock);
    wait_for_order(t);
    const int begins = t->state == RUNS;
    (void)pthread_mutex_unlock(&t->lock);
    paramo_err err = begins ? train_run(&t->options, &result) : PARAMO_OK;
    (void)pthread_mutex_lock(&t->lock);
    if (err == PARAMO_E_NUMERIC) {
        t->outcome = (struct tune_outcome){.loss = (double)INFINITY, .ended = 1};
    } else if (err == PARAMO_OK) {
        take(t, &result);
    } else {
        t->err = err;
        (void)snprintf(t->message, sizeof t->message, "%s", paramo_last_error());
    }
    t->state = OVER;
    (void)pthread_cond_broadcast(&t->changed);
    (void)pthread_mutex_unlock(&t->lock);
    train_result_free(&result);
    return NULL;
}

paramo_err trial_new(const struct train_options *options, struct trial **trial)
{
    struct trial *t = calloc(1, sizeof *t);
    if (!t)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a trial");
    t->options = *options;
    t->options.continues = continues;
    t->options.continues_arg = t;
    (void)pthread_mutex_init(&t->lock, NULL);
    (void)pthread_cond_init(&t->changed, NULL);
    const int failed = pthread_create(&t->thread, NULL, trial_main, t);
    if (failed != 0) {
        (void)pthread_cond_destroy(&t->changed);
        (void)pthread_mutex_destroy(&t->lock);
        free(t);
        return paramo_error_set(PARAMO_E_SYSTEM, "the thread of a trial cannot be started: %s",
                                strerror(failed));
    }
    *trial = t;
    return PARAMO_OK;
}

paramo_err trial_run(struct trial *t, uint64_t epochs, struct tune_outcome *outcome, double *guess)
{
    const double began = progress_now();
    assert(epochs > 0 && epochs <= t->options.epochs);
    (void)pthread_mutex_lock(&t->lock);
    if (t->state == WAITS && t->until < epochs) {
        t->until = epochs;
        t->state = RUNS;
        (void)pthread_cond_broadcast(&t->changed);
        while (t->state == RUNS)
            (void)pthread_cond_wait(&t->changed, &t->lock);
    }
    assert(t->state == WAITS || t->state == OVER);
    const paramo_err err = t->err == PARAMO_OK ? PARAMO_OK : paramo_error_set(t->err, "%s", t->message);
    if (err == PARAMO_OK) {
        *outcome = t->outcome;
        outcome->seconds = progress_now() - began;
        *guess = t->guess > 0 ? t->guess : *guess;
    }
    (void)pthread_mutex_unlock(&t->lock);
    return err;
}

void trial_held_out(struct trial *t, double *sums)
{
    (void)pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < MSUMS; i++)
        sums[i] += t->held_out[i];
    (void)pthread_mutex_unlock(&t->lock);
}

void trial_free(struct trial *t)
{
    if (!t)
        return;
    (void)pthread_mutex_lock(&t->lock);
    if (t->state == WAITS)
        t->state = ENDS;
    (void)pthread_cond_broadcast(&t->changed);
    (void)pthread_mutex_unlock(&t->lock);
    (void)pthread_join(t->thread, NULL);
    (void)pthread_cond_destroy(&t->changed);
    (void)pthread_mutex_destroy(&t->lock);
    free(t);
}
