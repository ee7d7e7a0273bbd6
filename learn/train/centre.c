#include "learn/train/centre.h"
#include "learn/model/scale.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define LOOKED_AT  64 /* rows of the first block in which candidates are looked for; arbitrary */
#define ROWS_LEAST 16 /* arbitrary: the mean of fewer rows says little */
/* At least this share of the rows has the column; arbitrary. The others get the mean instead of 0. */
#define SHARE 0.95
#define FAR   0.5 /* standard deviations; arbitrary: a mean nearer to 0 slows learning little */

enum { DIM = 3 };

struct column {
    uint64_t key;
    double first, n, sum, squares; /* sums of value - first, so that large values lose few digits */
};

struct centre {
    double rows;
    size_t n;
    struct column column[CENTRE_COLUMNS]; /* by key */
    uint64_t key[CENTRE_COLUMNS];
    float row[CENTRE_COLUMNS * DIM];
};

paramo_err centre_new(struct centre **centre)
{
    assert(scale_dim(SCALE_CENTRED) == DIM);
    *centre = calloc(1, sizeof **centre);
    return *centre ? PARAMO_OK : paramo_error_set(PARAMO_E_MEMORY, "out of memory for the first rows");
}

void centre_free(struct centre *c)
{
    free(c);
}

static int by_key(const void *a, const void *b)
{
    const uint64_t x = ((const struct column *)a)->key, y = ((const struct column *)b)->key;
    return (x > y) - (x < y);
}

static struct column *find(struct centre *c, uint64_t key)
{
    const struct column wanted = {.key = key};
    return c->n > 0 ? bsearch(&wanted, c->column, c->n, sizeof wanted, by_key) : NULL;
}

static int is_number(const struct block *b, size_t i)
{
    return b->value[i] != 0.0f && b->value[i] != 1.0f && b->key[i] != BATCH_BIAS_KEY;
}

int centre_wanted(const struct block *b)
{
    const size_t rows = b->rows < LOOKED_AT ? b->rows : LOOKED_AT;
    for (size_t i = 0; b->value && i < b->offset[rows]; i++)
        if (is_number(b, i))
            return 1;
    return 0;
}

/* The candidates: the columns with a number among the first rows of a block. */
static void choose(struct centre *c, const struct block *b)
{
    const size_t rows = b->rows < LOOKED_AT ? b->rows : LOOKED_AT;
    size_t n = 0;
    for (size_t i = 0; b->value && i < b->offset[rows] && n < CENTRE_COLUMNS; i++)
        if (is_number(b, i))
            c->column[n++] = (struct column){.key = b->key[i], .first = (double)b->value[i]};
    qsort(c->column, n, sizeof *c->column, by_key);
    for (size_t i = 0; i < n; i++)
        if (c->n == 0 || c->column[c->n - 1].key != c->column[i].key)
            c->column[c->n++] = c->column[i];
}

void centre_add(struct centre *c, const struct block *b)
{
    assert(b->key || b->features == 0);
    if (c->rows == 0)
        choose(c, b);
    c->rows += (double)b->rows;
    for (size_t i = 0; c->n > 0 && i < b->features; i++) {
        struct column *column = find(c, b->key[i]);
        if (!column)
            continue;
        const double x = (!b->value ? 1.0 : (double)b->value[i]) - column->first;
        column->n++;
        column->sum += x;
        column->squares += x * x;
    }
}

size_t centre_rows(struct centre *c, const uint64_t **keys, const float **rows)
{
    size_t n = 0;
    for (size_t i = 0; c->rows >= ROWS_LEAST && i < c->n; i++) {
        const struct column *x = &c->column[i];
        const double shift = x->sum / x->n, var = fmax(x->squares / x->n - shift * shift, 0);
        const float mean = (float)(x->first + shift);
        const double off = x->first + shift - (double)mean; /* lost by the rounding to a float */
        if (x->n < SHARE * c->rows || x->n > c->rows || !isfinite(mean) || !isfinite(x->squares) ||
            (double)mean * (double)mean < FAR * FAR * var)
            continue;
        c->key[n] = x->key;
        float *row = c->row + n++ * DIM;
        row[0] = (float)x->n;
        row[1] = (float)fmin(x->n * (var + off * off), 0x1p100);
        row[2] = mean;
    }
    *keys = c->key;
    *rows = c->row;
    return n;
}
