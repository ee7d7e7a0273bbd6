#include "learn/model/scale.h"

#include <math.h>
#include <string.h>

#define STD_SIGHTINGS 0x1p20f  /* floats count exactly up to here, and a sum of this many loses little */
#define STD_SQUARE    0x1p100f /* a square counts as no more, so that no sum is infinite */

enum { SEEN, SQUARES, MEAN }; /* values of a row of std; a row of centred has a mean, too */

static const char *const names[SCALE_KINDS] = {[SCALE_NONE] = "none",
                                               [SCALE_MAXABS] = "maxabs",
                                               [SCALE_STD] = "std",
                                               [SCALE_AUTO] = "auto",
                                               [SCALE_CENTRED] = "centred"};

const char *scale_name(enum scale_kind kind)
{
    return names[kind];
}

int scale_find(const char *name)
{
    for (int i = 0; i < SCALE_KINDS; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static int by_max(enum scale_kind kind)
{
    return kind == SCALE_MAXABS;
}

uint32_t scale_dim(enum scale_kind kind)
{
    return by_max(kind) ? 1 : kind == SCALE_CENTRED ? 3 : 2;
}

paramo_optimizer scale_optimizer(enum scale_kind kind)
{
    return by_max(kind) ? PARAMO_OPT_MAX : PARAMO_OPT_ADD;
}

static size_t features(const struct batch *b)
{
    return b->start[b->rows] - b->start[0];
}

int scale_wanted(const struct batch *b)
{
    for (size_t i = 0, n = !b->value ? 0 : features(b); i < n; i++)
        if (b->value[i] != 0.0f && b->value[i] != 1.0f)
            return 1;
    return 0;
}

static void measure_std(enum scale_kind kind, const struct batch *b, const float *known, float *own)
{
    const size_t dim = scale_dim(kind);
    for (size_t i = 0, n = features(b); i < n; i++) {
        const size_t at = (size_t)b->index[i] * dim;
        const float mean = b->index[i] + 1 < b->unique ? scale_mean(kind, known + at) : 0;
        const float x = (!b->value ? 1.0f : b->value[i]) - mean, square = x * x;
        float *row = own + at;
        row[SEEN] += x != 0.0f || mean != 0.0f;
        row[SQUARES] += square < STD_SQUARE ? square : STD_SQUARE;
    }
}

static void measure_max(const struct batch *b, float *own)
{
    for (size_t i = 0, n = features(b); i < n; i++) {
        const float x = !b->value ? 1.0f : fabsf(b->value[i]);
        float *most = own + b->index[i];
        *most = x > *most ? x : *most;
    }
}

void scale_measure(enum scale_kind kind, const struct batch *b, const float *known, float *own)
{
    memset(own, 0, b->unique * scale_dim(kind) * sizeof *own);
    if (by_max(kind))
        measure_max(b, own);
    else
        measure_std(kind, b, known, own);
}

size_t scale_join(enum scale_kind kind, size_t keys, const float *own, float *known, uint32_t *changed)
{
    size_t n = 0;
    for (size_t i = 0; i < keys; i++) {
        if (by_max(kind)) {
            changed[n] = (uint32_t)i;
            n += own[i] > known[i];
            known[i] = own[i] > known[i] ? own[i] : known[i];
            continue;
        }
        const size_t at = i * scale_dim(kind);
        if (known[at + SEEN] < STD_SIGHTINGS) {
            changed[n] = (uint32_t)i;
            n += own[at + SEEN] > 0;
            known[at + SEEN] += own[at + SEEN];
            known[at + SQUARES] += own[at + SQUARES];
        }
    }
    return n;
}

float scale_mean(enum scale_kind kind, const float *row)
{
    return kind == SCALE_CENTRED ? row[MEAN] : 0;
}

float scale_divisor(enum scale_kind kind, const float *row)
{
    const float s = by_max(kind) ? row[0] : row[SEEN] > 0 ? sqrtf(row[SQUARES] / row[SEEN]) : 0;
    return s > 0 ? s : 1.0f;
}

/* Subtracts their means from the values. */
static const float *centre(const struct batch *b, float *rows, float *value)
{
    for (size_t i = 0, n = features(b); i < n; i++) {
        const size_t at = b->index[i];
        value[i] = (!b->value ? 1.0f : b->value[i]) -
                   (at + 1 < b->unique ? scale_mean(SCALE_CENTRED, rows + at * scale_dim(SCALE_CENTRED)) : 0);
    }
    return value;
}

void scale_divide(enum scale_kind kind, const struct batch *b, float *rows, float *value)
{
    const float *own = kind == SCALE_CENTRED ? centre(b, rows, value) : b->value;
    for (size_t i = 0; i + 1 < b->unique; i++)
        rows[i] = scale_divisor(kind, rows + i * scale_dim(kind));
    rows[b->unique - 1] = 1.0f; /* a feature with the bias's id */
    for (size_t i = 0, n = features(b); i < n; i++)
        value[i] = (!own ? 1.0f : own[i]) / rows[b->index[i]];
    for (size_t i = 0, n = by_max(kind) ? 0 : features(b); i < n; i++)
        value[i] = fminf(fmaxf(value[i], -SCALE_MOST), SCALE_MOST);
}
