#include "learn/model/optimizers.h"

#include <math.h>
#include <string.h>

/* FTRL's state is z and then the sums of squares. Its weight is -(z - sign(z) l1) / ((beta + sqrt n) / alpha + l2), so
 * the same z gives another weight with another alpha. z is set to the value that gives w. A weight of 0 keeps its z,
 * which is within l1. The old l1 and l2 are used: new ones are a new objective, and may change the weight. */
static void ftrl_retune(const struct optimizer_rates *old, const struct optimizer_rates *now, const float *w,
                        float *state, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double x = (double)w[i], slope = (now->beta + sqrt((double)state[n + i])) / now->alpha + old->l2;
        if (x != 0)
            state[i] = (float)-(x * slope + copysign(old->l1, x));
    }
}

/* FTRL's rates were chosen by bench/defaults.py. A high alpha learns dense columns quickly; beta / alpha acts as an L2
 * penalty, which holds the weights of rare features back. */
static const struct optimizer_choice choices[] = {
    {.name = "ftrl", .code = PARAMO_OPT_FTRL, .alpha = 0.25, .beta = 5, .retune = ftrl_retune},
    {.name = "adagrad", .code = PARAMO_OPT_ADAGRAD, .alpha = 0.1, .beta = 1},
    {.name = "sgd", .code = PARAMO_OPT_SGD, .alpha = 0.002, .beta = 1, .stateless = 1},
};

const struct optimizer_choice *optimizers_at(size_t i)
{
    return i < sizeof choices / sizeof *choices ? &choices[i] : NULL;
}

const struct optimizer_choice *optimizers_find(const char *name)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (strcmp(choices[i].name, name) == 0)
            return &choices[i];
    return NULL;
}
