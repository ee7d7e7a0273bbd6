/*
 * Learning-rate schedules: what the gradient of a batch is multiplied by, as a function of its place.
 *
 * The place of a batch is the number of epochs that lie before its middle. So the rate depends on the data and the
 * settings only. It is the same for every worker, in every run, and there is no state to keep in a checkpoint or to
 * hand to another leader. With a warm-up of W epochs the rate rises from 0 to 1 over them, and the schedule begins
 * after them.
 *
 * t is the number of epochs since the warm-up, and T the number of all epochs after it:
 *
 *     power    (T0 / (T0 + t))^P      Vowpal Wabbit's --power_t P and --initial_t; scikit-learn's 'invscaling'
 *     linear   1 + (E - 1) t / T      PyTorch's LinearLR
 *     cosine   E + (1 - E) (1 + cos(pi t / T)) / 2     CosineAnnealingLR: Loshchilov and Hutter, SGDR, ICLR 2017
 *     step     F^floor(t / N)         StepLR; with N = 1 Vowpal Wabbit's --decay_learning_rate F
 *
 * Numbers have the same bits on every machine: no libm function is called but sqrt. It never knows batches or workers.
 * Tests: test/learn/test_rate_schedule.c, test/e2e/schedule.sh.
 */
#ifndef LEARN_TRAIN_RATE_SCHEDULE_H
#define LEARN_TRAIN_RATE_SCHEDULE_H

enum rate_kind {
    RATE_CONSTANT, /* the rate is 1, except in a warm-up */
    RATE_POWER,
    RATE_LINEAR,
    RATE_COSINE,
    RATE_STEP
};

#define RATE_SCHEDULE_WORDS "constant|invsqrt[:T0]|power:P[:T0]|linear[:E]|cosine[:E]|step:F[:N]"

/* All zeros: the rate is always 1. */
struct rate_schedule {
    enum rate_kind kind;
    double value;  /* P, E or F */
    double epochs; /* T0 or N */
    double warmup; /* epochs */
};

/* Reads one of RATE_SCHEDULE_WORDS into *schedule, except the warm-up. invsqrt is power:0.5. If they are left out, T0
 * is 1, E is 0 and N is 1. P is above 0 and at most 4, E from 0 to 1, F above 0 and at most 1; T0 and N are at least
 * 1e-6. Returns 0, or -1 if text is none of them. */
int rate_schedule_parse(const char *text, struct rate_schedule *schedule);
/* Is there a rate other than 1? */
int rate_schedule_varies(const struct rate_schedule *schedule);
/* The rate at `epoch` of a job that has at most `epochs`: from 0 to 1. */
double rate_schedule_at(const struct rate_schedule *schedule, double epoch, double epochs);

#endif
