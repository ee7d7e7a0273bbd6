#include "learn/objective/calibration.h"
#include "learn/objective/logistic.h"

#include <math.h>
#include <string.h>

#define NEWTON_STEPS 100   /* at most; arbitrary, as the next two */
#define HALVINGS     40    /* of a step, at most */
#define SMALL        1e-10 /* of the gradient, for each row */

static const char *const names[CALIBRATION_KINDS] = {"none", "platt", "isotonic"};

const char *calibration_name(enum calibration_kind kind)
{
    return names[kind];
}

int calibration_find(const char *name)
{
    for (int i = 0; i < CALIBRATION_KINDS; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

int calibration_valid(const struct calibration *c)
{
    if (c->kind == CALIBRATION_PLATT)
        return isfinite(c->a) && isfinite(c->b) && c->a >= 0;
    if (c->kind != CALIBRATION_ISOTONIC)
        return c->kind == CALIBRATION_NONE;
    int valid = c->knots >= 1 && c->knots <= CALIBRATION_BINS;
    for (uint32_t i = 0; valid && i < c->knots; i++)
        valid = isfinite(c->from[i]) && isfinite(c->to[i]) &&
                (i == 0 || (c->from[i - 1] < c->from[i] && c->to[i - 1] <= c->to[i]));
    return valid;
}

/* ---- sums ---- */

void calibration_add(double sums[CALIBRATION_SUMS], const float *margin, const float *label,
                     const float *weight, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const double m = (double)margin[i], w = weight ? (double)weight[i] : 1;
        const double place = (m + CALIBRATION_MARGIN) * (CALIBRATION_BINS / (2 * CALIBRATION_MARGIN));
        const size_t bin = !(place > 0) ? 0 : place < CALIBRATION_BINS ? (size_t)place : CALIBRATION_BINS - 1;
        double *at = sums + bin * CALIBRATION_COLUMNS;
        at[CALIBRATION_ROWS] += w;
        at[CALIBRATION_POSITIVES] += label[i] > 0.5f ? w : 0;
        at[CALIBRATION_SUM] += w * m;
    }
}

/* Rows of one bin or several. */
struct rows {
    double all, positives, margin; /* margin: their mean */
};

/* The bins that have rows, in the order of their margins. Returns how many. */
static size_t take_bins(const double *sums, struct rows bin[CALIBRATION_BINS], struct rows *total)
{
    size_t n = 0;
    *total = (struct rows){0};
    for (size_t i = 0; i < CALIBRATION_BINS; i++) {
        const double *at = sums + i * CALIBRATION_COLUMNS;
        if (!(at[CALIBRATION_ROWS] > 0))
            continue;
        bin[n++] = (struct rows){at[CALIBRATION_ROWS], at[CALIBRATION_POSITIVES],
                                 at[CALIBRATION_SUM] / at[CALIBRATION_ROWS]};
        total->all += at[CALIBRATION_ROWS];
        total->positives += at[CALIBRATION_POSITIVES];
    }
    return n;
}

/* ---- platt ---- */

/* Summed loss at (a, b), with Platt's targets: `high` for label 1, `low` for label 0. */
static double platt_loss(const struct rows *bin, size_t n, double high, double low, double a, double b)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double m = a * bin[i].margin + b, p = bin[i].positives, q = bin[i].all - p;
        const double target = p * high + q * low; /* sum over the bin's rows */
        /* log(1 + exp(m)) - t m of each row */
        const double soft = m > 0 ? m + link_log(1 + link_exp(-m)) : link_log(1 + link_exp(m));
        sum += bin[i].all * soft - target * m;
    }
    return sum;
}

static void fit_platt(const struct rows *bin, size_t n, const struct rows *total, struct calibration *c)
{
    const double high = (total->positives + 1) / (total->positives + 2),
                 low = 1 / (total->all - total->positives + 2);
    double a = 1, b = 0, loss = platt_loss(bin, n, high, low, a, b);
    for (int step = 0; step < NEWTON_STEPS; step++) {
        /* 1. gradient and Hessian, with a little on its diagonal: one bin alone does not determine a and b */
        double ga = 0, gb = 0, haa = 1e-9 * total->all, hab = 0, hbb = 1e-9 * total->all;
        for (size_t i = 0; i < n; i++) {
            const double x = bin[i].margin, m = a * x + b, e = link_exp(m > 0 ? -m : m);
            const double p = (m > 0 ? 1 : e) / (1 + e);
            const double d =
                bin[i].all * p - (bin[i].positives * high + (bin[i].all - bin[i].positives) * low);
            const double h = bin[i].all * e / ((1 + e) * (1 + e));
            ga += d * x;
            gb += d;
            haa += h * x * x;
            hab += h * x;
            hbb += h;
        }
        if (fabs(ga) <= SMALL * total->all && fabs(gb) <= SMALL * total->all)
            break;
        /* 2. Newton's step, halved until the loss falls */
        const double det = haa * hbb - hab * hab, da = (hab * gb - hbb * ga) / det,
                     db = (hab * ga - haa * gb) / det;
        double share = 1, next = loss;
        int halvings = 0;
        for (; halvings < HALVINGS; halvings++, share /= 2) {
            next = platt_loss(bin, n, high, low, a + share * da, b + share * db);
            if (next < loss)
                break;
        }
        if (halvings == HALVINGS || !isfinite(next))
            break;
        a += share * da;
        b += share * db;
        loss = next;
    }
    /* If the model ranks rows in the wrong order, all rows get the mean rate. */
    const double mean = link_margin(total->positives, total->all - total->positives);
    /* Rounded to floats: the 15 digits of a manifest keep them exactly. */
    c->a = a >= 0 ? (double)(float)a : 0;
    c->b = (double)(float)(a >= 0 ? b : mean);
}

/* ---- isotonic ---- */

static double rate(const struct rows *r)
{
    return r->positives / r->all;
}

static void fit_isotonic(struct rows *step, size_t n, struct calibration *c)
{
    size_t steps = 0;
    for (size_t i = 0; i < n; i++) { /* pools a step with those before it until rates ascend */
        struct rows last = step[i];
        while (steps > 0 && rate(&step[steps - 1]) >= rate(&last)) {
            const struct rows *before = &step[--steps];
            last.margin = (before->margin * before->all + last.margin * last.all) / (before->all + last.all);
            last.all += before->all;
            last.positives += before->positives;
        }
        step[steps++] = last;
    }
    c->knots = 0;
    for (size_t i = 0; i < steps; i++) {
        const float from = (float)step[i].margin;
        float to = (float)link_margin(step[i].positives, step[i].all - step[i].positives);
        if (c->knots > 0 && from <= c->from[c->knots - 1]) /* bins are apart, so this is rounding */
            continue;
        if (c->knots > 0 && to < c->to[c->knots - 1]) /* the added rows draw a step of few rows to 1/2 */
            to = c->to[c->knots - 1];
        c->from[c->knots] = from;
        c->to[c->knots++] = to;
    }
}

/* ---- all ---- */

int calibration_fit(enum calibration_kind kind, const double sums[CALIBRATION_SUMS], struct calibration *c)
{
    struct rows bin[CALIBRATION_BINS], total;
    const size_t n = take_bins(sums, bin, &total);
    memset(c, 0, sizeof *c);
    if (kind == CALIBRATION_NONE || !(total.positives > 0) || !(total.positives < total.all))
        return 0;
    c->kind = kind;
    if (kind == CALIBRATION_PLATT)
        fit_platt(bin, n, &total, c);
    else
        fit_isotonic(bin, n, c);
    if (calibration_valid(c))
        return 1;
    memset(c, 0, sizeof *c);
    return 0;
}

static float isotonic(const struct calibration *c, float margin)
{
    uint32_t low = 0, high = c->knots; /* from[low - 1] <= margin < from[high], where they are */
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (c->from[middle] <= margin)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return c->to[0];
    if (low == c->knots)
        return c->to[c->knots - 1];
    const float share = (margin - c->from[low - 1]) / (c->from[low] - c->from[low - 1]);
    return c->to[low - 1] + share * (c->to[low] - c->to[low - 1]);
}

void calibration_apply(const struct calibration *c, float *margin, size_t n)
{
    if (c->kind == CALIBRATION_PLATT)
        for (size_t i = 0; i < n; i++)
            margin[i] = (float)(c->a * (double)margin[i] + c->b);
    else if (c->kind == CALIBRATION_ISOTONIC)
        for (size_t i = 0; i < n; i++)
            margin[i] = isotonic(c, margin[i]);
}

double calibration_loss(const struct calibration *c, const double sums[CALIBRATION_SUMS])
{
    struct rows bin[CALIBRATION_BINS], total;
    const size_t n = take_bins(sums, bin, &total);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        float margin = (float)bin[i].margin;
        if (c)
            calibration_apply(c, &margin, 1);
        sum +=
            bin[i].positives * link_loss(margin, 1) + (bin[i].all - bin[i].positives) * link_loss(margin, 0);
    }
    return total.all > 0 ? sum / total.all : 0;
}
