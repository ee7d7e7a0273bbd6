#include "learn/data/synth.h"
#include "learn/io/output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FIELDS      1000
#define MAX_FEATURES    (1u << 24)
#define MAX_FACTORS     64
#define MAX_WEIGHTS     (1u << 28) /* 1 GiB of floats */
#define CRITEO_INTEGERS 13
#define CRITEO_RANKS    100 /* distinct integers: missing, 0, 1, 2, and one of each bucket from 1 */
#define AUC_BINS        65536

struct model {
    const struct synth_options *o;
    double *popular; /* [features]: probability of rank <= i */
    float *weight;   /* [fields][features] */
    float *factor;   /* [fields][features][factors] */
};

/* Draws are numbered, not taken from a running generator: each is a function of its seed and place. (Steele,
 * Lea and Flood, "Fast splittable pseudorandom number generators", 2014: the finalizer of splitmix64.) */
static uint64_t draw(uint64_t seed, uint64_t a, uint64_t b)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15u + a;
    for (int i = 0; i < 2; i++) {
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        x = (x ^ (x >> 31)) + b * 0xd1342543de82ef95u + 0x9e3779b97f4a7c15u;
    }
    return x ^ (x >> 32);
}

/* In (0, 1). */
static double draw_unit(uint64_t seed, uint64_t a, uint64_t b)
{
    return ((double)(draw(seed, a, b) >> 11) + 0.5) * 0x1p-53;
}

static double draw_normal(uint64_t seed, uint64_t a, uint64_t b)
{
    double r = sqrt(-2 * log(draw_unit(seed, a, 2 * b)));
    return r * cos(6.283185307179586 * draw_unit(seed, a, 2 * b + 1));
}

void synth_options_init(struct synth_options *o)
{
    *o = (struct synth_options){.rows = 100000,
                                .fields = 10,
                                .features = 1000,
                                .zipf = 1.1,
                                .spread = 1.2,
                                .bias = -1.0,
                                .factors = 0,
                                .factor_spread = 1.0,
                                .seed = 1,
                                .model_seed = 1,
                                .format = PARSE_LIBFFM};
}

static paramo_err check(const struct synth_options *o)
{
    if (o->rows == 0)
        return paramo_error_set(PARAMO_E_INVALID, "rows: must be at least 1");
    if (o->fields == 0 || o->fields > MAX_FIELDS)
        return paramo_error_set(PARAMO_E_INVALID, "fields: %u is not in 1..%d", o->fields, MAX_FIELDS);
    if (o->features == 0 || o->features > MAX_FEATURES)
        return paramo_error_set(PARAMO_E_INVALID, "features: %u is not in 1..%u", o->features, MAX_FEATURES);
    if (o->factors > MAX_FACTORS)
        return paramo_error_set(PARAMO_E_INVALID, "factors: %u is above %d", o->factors, MAX_FACTORS);
    if ((uint64_t)o->fields * o->features * (1 + o->factors) > MAX_WEIGHTS)
        return paramo_error_set(PARAMO_E_INVALID, "fields * features * (1 + factors): above %u", MAX_WEIGHTS);
    if (!(o->zipf >= 0 && o->zipf <= 10))
        return paramo_error_set(PARAMO_E_INVALID, "zipf: %g is not in 0..10", o->zipf);
    if (!(o->spread >= 0 && o->spread <= 100) || !(o->factor_spread >= 0 && o->factor_spread <= 100))
        return paramo_error_set(PARAMO_E_INVALID, "spread: not in 0..100");
    if (!(o->bias >= -20 && o->bias <= 20))
        return paramo_error_set(PARAMO_E_INVALID, "bias: %g is not in -20..20", o->bias);
    if (o->format != PARSE_LIBSVM && o->format != PARSE_LIBFFM && o->format != PARSE_CRITEO)
        return paramo_error_set(PARAMO_E_INVALID, "format: must be libsvm, libffm or criteo");
    if (o->format == PARSE_CRITEO && o->fields != PARSE_CRITEO_FIELDS)
        return paramo_error_set(PARAMO_E_INVALID, "fields: criteo has %d, not %u", PARSE_CRITEO_FIELDS,
                                o->fields);
    return PARAMO_OK;
}

static void model_free(struct model *m)
{
    free(m->popular);
    free(m->weight);
    free(m->factor);
}

static paramo_err model_make(const struct synth_options *o, struct model *m)
{
    const size_t n = (size_t)o->fields * o->features;
    const double pairs = o->fields * (o->fields - 1.0) / 2;
    *m = (struct model){.o = o};
    m->popular = malloc(o->features * sizeof *m->popular);
    m->weight = malloc(n * sizeof *m->weight);
    m->factor = malloc((n * o->factors + 1) * sizeof *m->factor);
    if (!m->popular || !m->weight || !m->factor) {
        model_free(m);
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a model of %zu features", n);
    }
    double sum = 0;
    for (uint32_t i = 0; i < o->features; i++) {
        sum += pow(i + 1.0, -o->zipf);
        m->popular[i] = sum;
    }
    for (uint32_t i = 0; i < o->features; i++)
        m->popular[i] /= sum;
    const double spread = o->spread / sqrt(o->fields);
    for (size_t i = 0; i < n; i++)
        m->weight[i] = (float)(spread * draw_normal(o->model_seed, i, 0));
    /* the variance of the sum over pairs of <v_a, v_b> is pairs * factors * s^4 */
    const double s = pairs > 0 && o->factors > 0 ? sqrt(o->factor_spread / sqrt(pairs * o->factors)) : 0;
    for (size_t i = 0; i < n * o->factors; i++)
        m->factor[i] = (float)(s * draw_normal(o->model_seed, i / o->factors, 1 + i % o->factors));
    return PARAMO_OK;
}

/* The rank that u, drawn from (0, 1), stands for. */
static uint32_t pick(const struct model *m, double u)
{
    uint32_t low = 0, high = m->o->features - 1;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (m->popular[mid] < u)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Draws a row's ranks and returns its true probability. */
static double draw_row(const struct model *m, uint64_t row, uint32_t *rank)
{
    const struct synth_options *o = m->o;
    double z = o->bias;
    for (uint32_t f = 0; f < o->fields; f++) {
        rank[f] = pick(m, draw_unit(o->seed, row, f + 1));
        if (o->format == PARSE_CRITEO && f < CRITEO_INTEGERS)
            rank[f] %= CRITEO_RANKS;
        z += (double)m->weight[(size_t)f * o->features + rank[f]];
    }
    /* sum over pairs = half of (square of the sum - sum of the squares), for each factor */
    for (uint32_t k = 0; k < o->factors; k++) {
        double sum = 0, squares = 0;
        for (uint32_t f = 0; f < o->fields; f++) {
            double v = (double)m->factor[((size_t)f * o->features + rank[f]) * o->factors + k];
            sum += v;
            squares += v * v;
        }
        z += (sum * sum - squares) / 2;
    }
    return 1 / (1 + exp(-z));
}

/* ---- text ---------------------------------------------------------------------------------------------- */

static char *put_number(char *p, uint64_t v)
{
    char digits[20];
    int n = 0;
    do {
        digits[n++] = (char)('0' + v % 10);
        v /= 10;
    } while (v != 0);
    while (n > 0)
        *p++ = digits[--n];
    return p;
}

/* One to one on 32 bits (odd multipliers and shifts can be undone), so that ranks stay distinct. */
static uint32_t scramble(uint32_t x, uint32_t field)
{
    x += field * 0x9e3779b9u;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

static char *put_criteo(char *p, uint32_t field, uint32_t rank)
{
    static const char hex[] = "0123456789abcdef";
    *p++ = '\t';
    if (field >= CRITEO_INTEGERS) {
        uint32_t x = scramble(rank, field);
        for (int shift = 28; shift >= 0; shift -= 4)
            *p++ = hex[(x >> shift) & 15];
        return p;
    }
    if (rank == CRITEO_RANKS - 1)
        return p; /* missing */
    /* 0, 1, 2, then the least integer of bucket floor(ln(v)^2) = 1, 2, ... (learn/data/parse_criteo.c) */
    return put_number(p, rank < 3 ? rank : (uint64_t)ceil(exp(sqrt(rank - 2.0))));
}

static size_t put_row(const struct synth_options *o, const uint32_t *rank, int label, char *text)
{
    char *p = text;
    *p++ = (char)('0' + label);
    for (uint32_t f = 0; f < o->fields; f++) {
        if (o->format == PARSE_CRITEO) {
            p = put_criteo(p, f, rank[f]);
            continue;
        }
        *p++ = ' ';
        if (o->format == PARSE_LIBFFM) {
            p = put_number(p, f);
            *p++ = ':';
        }
        p = put_number(p, (uint64_t)f * o->features + rank[f]);
        *p++ = ':';
        *p++ = '1';
    }
    *p++ = '\n';
    return (size_t)(p - text);
}

/* ---- the log ------------------------------------------------------------------------------------------- */

static double entropy(double p)
{
    return p <= 0 || p >= 1 ? 0 : -(p * log(p) + (1 - p) * log1p(-p));
}

/* Clicks and non-clicks expected at each probability, in bins. */
struct bins {
    double click[AUC_BINS], no_click[AUC_BINS];
};

/* The probability that a click ranks above a non-click, in expectation over the labels. */
static double expected_auc(const struct bins *b)
{
    double below = 0, won = 0, clicks = 0;
    for (int i = 0; i < AUC_BINS; i++) {
        won += b->click[i] * (below + b->no_click[i] / 2);
        below += b->no_click[i];
        clicks += b->click[i];
    }
    return clicks > 0 && below > 0 ? won / (clicks * below) : 0.5;
}

static paramo_err write_rows(const struct model *m, struct output *out, const volatile int *stop,
                             struct bins *bins, struct synth_report *report)
{
    uint32_t rank[MAX_FIELDS];
    char text[MAX_FIELDS * 40];
    double best = 0, drawn = 0;
    for (uint64_t row = 0; row < m->o->rows; row++) {
        if (row % 1024 == 0 && stop && *stop)
            return paramo_error_set(PARAMO_E_INTERRUPTED,
                                    "interrupted: the data has not been written to its end");
        double p = draw_row(m, row, rank);
        int label = draw_unit(m->o->seed, row, 0) < p;
        paramo_err err = output_write(out, text, put_row(m->o, rank, label, text));
        if (err != PARAMO_OK)
            return err;
        best += entropy(p);
        drawn -= label ? log(p) : log1p(-p);
        report->positives += (uint64_t)label;
        int bin = (int)(p * AUC_BINS);
        bin = bin < AUC_BINS ? bin : AUC_BINS - 1;
        bins->click[bin] += p;
        bins->no_click[bin] += 1 - p;
    }
    const double rows = (double)m->o->rows;
    report->rows = m->o->rows;
    report->best_logloss = best / rows;
    report->drawn_logloss = drawn / rows;
    report->best_auc = expected_auc(bins);
    report->base_logloss = entropy((double)report->positives / rows);
    return PARAMO_OK;
}

paramo_err synth_write(const struct synth_options *o, const char *path, const volatile int *stop,
                       struct synth_report *report)
{
    struct model model;
    struct output *out;
    struct synth_report result = {0};
    paramo_err err = check(o);
    if (err != PARAMO_OK || (err = model_make(o, &model)) != PARAMO_OK)
        return err;
    struct bins *bins = calloc(1, sizeof *bins);
    err = bins ? output_open(path, &out)
               : paramo_error_set(PARAMO_E_MEMORY, "out of memory for synthetic data");
    if (err == PARAMO_OK) {
        err = write_rows(&model, out, stop, bins, &result);
        if (err == PARAMO_OK)
            err = output_commit(out);
        else
            output_abort(out);
    }
    free(bins);
    model_free(&model);
    if (err == PARAMO_OK)
        *report = result;
    return err;
}
