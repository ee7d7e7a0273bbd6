#include "learn/darlin/design.h"
#include "learn/objective/logistic.h"
#include "learn/objective/vector_math.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void design_free(struct design *d)
{
    free(d->key);
    free(d->start);
    free(d->row);
    free(d->value);
    free(d->label);
    free(d->weight);
    free(d->margin);
    free(d->before);
    free(d->slope);
    free(d->bend);
    free(d->stamp);
    free(d->touched);
    *d = (struct design){0};
}

static int allocate(struct design *d, int has_value, int has_weight)
{
    d->key = malloc(d->keys * sizeof *d->key);
    d->start = calloc(d->keys + 2, sizeof *d->start);
    d->row = malloc(d->entries * sizeof *d->row);
    d->value = has_value ? malloc(d->entries * sizeof *d->value) : NULL;
    d->label = malloc(d->rows * sizeof *d->label);
    d->weight = has_weight ? malloc(d->rows * sizeof *d->weight) : NULL;
    d->margin = calloc(d->rows, sizeof *d->margin);
    d->before = calloc(d->rows, sizeof *d->before);
    d->slope = calloc(d->rows, sizeof *d->slope);
    d->bend = calloc(d->rows, sizeof *d->bend);
    d->stamp = calloc(d->rows, sizeof *d->stamp);
    d->touched = malloc(d->rows * sizeof *d->touched);
    return d->key && d->start && d->row && d->label && d->margin && d->before && d->slope && d->bend &&
           d->stamp && d->touched && (d->value || !has_value) && (d->weight || !has_weight);
}

/* Counts the entries of each column into start[c + 2], sums them, and places the entries by start[c + 1], which then
 * is the column's end. Rows come in ascending order, so columns have them ascending. */
static void transpose(struct design *d, const struct batch *b, int bias)
{
    const size_t last = d->keys - 1, features = b->start[b->rows] - b->start[0];
    for (size_t i = 0; i < features; i++)
        d->start[b->index[i] + 2]++;
    if (bias)
        d->start[last + 2] += (uint32_t)b->rows;
    for (size_t c = 2; c < d->keys + 2; c++)
        d->start[c] += d->start[c - 1];
    for (size_t r = 0; r < b->rows; r++) {
        for (size_t i = b->start[r] - b->start[0]; i < b->start[r + 1] - b->start[0]; i++) {
            const uint32_t at = d->start[b->index[i] + 1]++;
            d->row[at] = (uint32_t)r;
            if (d->value)
                d->value[at] = b->value[i];
        }
        if (bias) {
            const uint32_t at = d->start[last + 1]++;
            d->row[at] = (uint32_t)r;
            if (d->value)
                d->value[at] = 1;
        }
    }
}

/* Is the last key, the bias's, one of the data? */
static int has_last(const struct batch *b)
{
    for (size_t i = 0, n = b->start[b->rows] - b->start[0]; i < n; i++)
        if (b->index[i] == b->unique - 1)
            return 1;
    return 0;
}

paramo_err design_new(struct batcher *batcher, const struct block *block, int bias, struct design *d)
{
    struct batch_list list = {0};
    *d = (struct design){0};
    if (block->rows == 0)
        return PARAMO_OK;
    paramo_err err = batcher_cut(batcher, block, block->rows, &list);
    if (err == PARAMO_OK) {
        const struct batch *b = &list.batch[0];
        d->rows = b->rows;
        d->keys = bias || has_last(b) ? b->unique : b->unique - 1;
        d->entries = b->start[b->rows] - b->start[0] + (bias ? b->rows : 0);
        if (!allocate(d, b->value != NULL, b->weight != NULL)) {
            err = paramo_error_set(PARAMO_E_MEMORY, "out of memory for %zu rows of the data", d->rows);
        } else {
            memcpy(d->key, b->key, d->keys * sizeof *d->key);
            memcpy(d->label, b->label, d->rows * sizeof *d->label);
            if (d->weight)
                memcpy(d->weight, b->weight, d->rows * sizeof *d->weight);
            if (d->keys > 0)
                transpose(d, b, bias);
        }
    }
    batch_list_free(&list);
    if (err != PARAMO_OK)
        design_free(d);
    return err;
}

/* p = 1 / (1 + e^-m), from e^-|m|, which does not overflow. */
static void derive(struct design *d, size_t r)
{
    const double m = d->margin[r], e = link_exp(-fabs(m)), p = (m < 0 ? e : 1.0) / (1.0 + e);
    const double weight = d->weight ? (double)d->weight[r] : 1.0;
    d->slope[r] = weight * (p - (double)d->label[r]);
    d->bend[r] = e / ((1.0 + e) * (1.0 + e));
}

static void add_column(struct design *d, size_t c, double change)
{
    for (size_t i = d->start[c]; i < d->start[c + 1]; i++)
        d->margin[d->row[i]] += change * (d->value ? (double)d->value[i] : 1.0);
}

void design_set(struct design *d, const double *weight)
{
    memset(d->margin, 0, d->rows * sizeof *d->margin);
    for (size_t c = 0; c < d->keys; c++)
        if (weight[c] != 0)
            add_column(d, c, weight[c]);
    for (size_t r = 0; r < d->rows; r++)
        derive(d, r);
}

uint32_t design_turn(struct design *d)
{
    if (++d->turn == 0) { /* after 2^32 turns old stamps would count again */
        memset(d->stamp, 0, d->rows * sizeof *d->stamp);
        d->turn = 1;
    }
    return d->turn;
}

void design_add(struct design *d, size_t from, size_t end, const double *change)
{
    size_t n = 0;
    const uint32_t turn = design_turn(d);
    for (size_t c = from; c < end; c++) {
        if (change[c - from] == 0)
            continue;
        add_column(d, c, change[c - from]);
        for (size_t i = d->start[c]; i < d->start[c + 1]; i++) {
            const uint32_t r = d->row[i];
            if (d->stamp[r] != turn) {
                d->stamp[r] = turn;
                d->touched[n++] = r;
            }
        }
    }
    for (size_t i = 0; i < n; i++)
        derive(d, d->touched[i]);
}

void design_mark(struct design *d)
{
    memcpy(d->before, d->margin, d->rows * sizeof *d->before);
}

void design_go(struct design *d, double way)
{
    for (size_t r = 0; r < d->rows; r++) {
        d->margin[r] += way * (d->margin[r] - d->before[r]);
        derive(d, r);
    }
}

double design_loss(const struct design *d, double way)
{
    double sum = 0;
    for (size_t r = 0; r < d->rows; r++) {
        const double m = d->margin[r] + way * (d->margin[r] - d->before[r]),
                     weight = d->weight ? (double)d->weight[r] : 1.0,
                     loss = (m > 0 ? m : 0) + log1p_unit(link_exp(-fabs(m))) - (double)d->label[r] * m;
        sum += weight * loss;
    }
    return sum;
}
