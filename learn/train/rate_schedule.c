#include "learn/train/rate_schedule.h"
#include "learn/objective/logistic.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI         3.14159265358979323846
#define POWER_MAX  4.0 /* arbitrary, as the next two */
#define LEAST      1e-30
#define EPOCHS_MIN 1e-6

/* What a schedule is called, and which numbers stand after its name. */
static const struct word {
    const char *name;
    enum rate_kind kind;
    int valued;           /* its first number is `value`; otherwise it has `epochs` only */
    int needed;           /* `value` must be given */
    double value, epochs; /* where they are not given */
    double most;          /* of value */
    int zero;             /* `value` may be 0; otherwise it is above 0 */
    int timed;            /* it has `epochs` */
} words[] = {
    {.name = "constant", .kind = RATE_CONSTANT},
    {.name = "invsqrt", .kind = RATE_POWER, .value = 0.5, .epochs = 1, .timed = 1},
    {.name = "power",
     .kind = RATE_POWER,
     .valued = 1,
     .needed = 1,
     .epochs = 1,
     .most = POWER_MAX,
     .timed = 1},
    {.name = "linear", .kind = RATE_LINEAR, .valued = 1, .most = 1, .zero = 1},
    {.name = "cosine", .kind = RATE_COSINE, .valued = 1, .most = 1, .zero = 1},
    {.name = "step", .kind = RATE_STEP, .valued = 1, .needed = 1, .epochs = 1, .most = 1, .timed = 1},
};

/* Reads the number after ":" at *text, and moves *text after it. 1: there is one; 0: there is none; -1: it is not a
 * number. */
static int read_number(const char **text, double *out)
{
    char *end;
    if (**text == '\0')
        return 0;
    const char *from = *text + 1;
    if (**text != ':' || !((*from >= '0' && *from <= '9') || *from == '.'))
        return -1;
    *out = strtod(from, &end);
    *text = end;
    return end > from && isfinite(*out) ? 1 : -1;
}

static int read_numbers(const struct word *w, const char *text, struct rate_schedule *s)
{
    if (w->valued) {
        const int found = read_number(&text, &s->value);
        if (found < 0 || (found == 0 && w->needed) || s->value > w->most ||
            (s->value < LEAST && !(w->zero && s->value == 0)))
            return -1;
    }
    if (w->timed && (read_number(&text, &s->epochs) < 0 || s->epochs < EPOCHS_MIN))
        return -1;
    return *text == '\0' ? 0 : -1;
}

int rate_schedule_parse(const char *text, struct rate_schedule *schedule)
{
    const size_t len = strcspn(text, ":");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const struct word *w = &words[i];
        struct rate_schedule s = {
            .kind = w->kind, .value = w->value, .epochs = w->epochs, .warmup = schedule->warmup};
        if (strlen(w->name) != len || strncmp(text, w->name, len) != 0)
            continue;
        if (read_numbers(w, text + len, &s) != 0)
            return -1;
        *schedule = s;
        return 0;
    }
    return -1;
}

int rate_schedule_varies(const struct rate_schedule *s)
{
    return s->kind != RATE_CONSTANT || s->warmup > 0;
}

/* cos(x) for 0 <= x <= pi / 2, by its Taylor series to x^22: the rest is below 1e-16. */
static double cos_quarter(double x)
{
    const double q = x * x;
    double p = 1;
    for (int n = 22; n > 0; n -= 2)
        p = 1 - p * q / (double)(n * (n - 1));
    return p;
}

static double cosine(double share)
{
    return share <= 0.5 ? cos_quarter(PI * share) : -cos_quarter(PI * (1 - share));
}

static double power(double base, double exponent)
{
    return exponent == 0.5 ? sqrt(base) : link_exp(exponent * link_log(base));
}

double rate_schedule_at(const struct rate_schedule *s, double epoch, double epochs)
{
    assert(epoch >= 0);
    if (epoch < s->warmup)
        return epoch / s->warmup;
    const double t = epoch - s->warmup, all = epochs - s->warmup, share = all > t ? t / all : 1;
    switch (s->kind) {
    case RATE_CONSTANT:
        return 1;
    case RATE_POWER:
        return power(s->epochs / (s->epochs + t), s->value);
    case RATE_LINEAR:
        return 1 + (s->value - 1) * share;
    case RATE_COSINE:
        return s->value + (1 - s->value) * (1 + cosine(share)) / 2;
    case RATE_STEP:
        return power(s->value, floor(t / s->epochs));
    }
    return 1;
}
