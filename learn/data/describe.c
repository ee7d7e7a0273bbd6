#include "learn/data/describe.h"
#include "learn/data/holdout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* HyperLogLog (Flajolet, Fusy, Gandouet, Meunier, AofA 2007): registers of the greatest rank, with linear counting for
 * small numbers. */
#define ALL_BITS   14
#define FIELD_BITS 10

struct describing {
    struct describe_result *to;
    uint8_t all[1 << ALL_BITS];
    uint8_t *by_field; /* [fields << FIELD_BITS] */
};

static inline void note(uint8_t *registers, unsigned bits, uint64_t hash)
{
    const uint8_t rank = (uint8_t)(__builtin_clzll(hash << bits | 1) + 1);
    uint8_t *at = &registers[hash >> (64 - bits)];
    *at = rank > *at ? rank : *at;
}

static double estimate(const uint8_t *registers, unsigned bits)
{
    const double m = (double)(1u << bits), alpha = 0.7213 / (1 + 1.079 / m);
    double sum = 0, zeros = 0;
    for (size_t i = 0; i < (size_t)1 << bits; i++) {
        sum += ldexp(1, -registers[i]);
        zeros += registers[i] == 0;
    }
    const double raw = alpha * m * m / sum;
    return raw <= 2.5 * m && zeros > 0 ? m * log(m / zeros) : raw;
}

static paramo_err grow_fields(struct describing *d, size_t fields)
{
    struct describe_result *to = d->to;
    struct describe_field *field = realloc(to->field, fields * sizeof *field);
    to->field = field ? field : to->field;
    uint8_t *by_field = realloc(d->by_field, fields << FIELD_BITS);
    d->by_field = by_field ? by_field : d->by_field;
    if (!field || !by_field)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for %zu fields", fields);
    memset(field + to->fields, 0, (fields - to->fields) * sizeof *field);
    memset(by_field + (to->fields << FIELD_BITS), 0, (fields - to->fields) << FIELD_BITS);
    to->fields = fields;
    return PARAMO_OK;
}

static void add_label(struct describe_result *to, float label)
{
    to->label_min = to->labelled == 0 || label < to->label_min ? label : to->label_min;
    to->label_max = to->labelled == 0 || label > to->label_max ? label : to->label_max;
    to->label_sum += (double)label;
    to->labelled++;
    size_t i = 0;
    while (i < to->labels && i < DESCRIBE_LABELS && to->label[i] != label)
        i++;
    if (i == DESCRIBE_LABELS) {
        to->labels = DESCRIBE_LABELS + 1;
        return;
    }
    if (i == to->labels) {
        to->label[i] = label;
        to->label_rows[i] = 0;
        to->labels++;
    }
    to->label_rows[i]++;
}

static paramo_err add_block(struct describing *d, const struct block *b)
{
    struct describe_result *to = d->to;
    for (size_t r = 0; r < b->rows; r++) {
        const uint64_t n = b->offset[r + 1] - b->offset[r];
        to->row_min = to->rows + r == 0 || n < to->row_min ? n : to->row_min;
        to->row_max = n > to->row_max ? n : to->row_max;
        to->empty += n == 0;
        to->weight_sum += b->weight ? (double)b->weight[r] : 1;
        if (!isnan(b->label[r]))
            add_label(to, b->label[r]);
    }
    to->has_weight |= b->weight != NULL;
    to->has_field |= b->field != NULL;
    for (size_t i = 0; i < b->features; i++) {
        const float v = b->value ? b->value[i] : 1.0f;
        const uint64_t hash = holdout_mix(b->key[i]);
        to->value_min = to->features + i == 0 || v < to->value_min ? v : to->value_min;
        to->value_max = to->features + i == 0 || v > to->value_max ? v : to->value_max;
        note(d->all, ALL_BITS, hash);
        if (!b->field)
            continue;
        const size_t f = b->field[i];
        if (f >= to->fields) {
            paramo_err err = grow_fields(d, f + 1);
            if (err != PARAMO_OK)
                return err;
        }
        to->field[f].features++;
        note(d->by_field + (f << FIELD_BITS), FIELD_BITS, hash);
    }
    to->rows += b->rows;
    to->features += b->features;
    return PARAMO_OK;
}

paramo_err describe_reader(struct reader *reader, struct describe_result *result)
{
    struct describing *d = calloc(1, sizeof *d);
    const struct block *b = NULL;
    if (!d)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for statistics");
    *result = (struct describe_result){0};
    d->to = result;
    paramo_err err;
    while ((err = reader_next(reader, &b)) == PARAMO_OK && b) {
        err = add_block(d, b);
        reader_release(reader, b);
        if (err != PARAMO_OK)
            break;
    }
    struct reader_stats stats;
    reader_get_stats(reader, &stats);
    result->bad_lines = stats.bad_lines;
    result->different = estimate(d->all, ALL_BITS);
    for (size_t f = 0; f < result->fields; f++)
        result->field[f].different = estimate(d->by_field + (f << FIELD_BITS), FIELD_BITS);
    free(d->by_field);
    free(d);
    if (err != PARAMO_OK)
        describe_free(result);
    return err;
}

void describe_free(struct describe_result *result)
{
    free(result->field);
    result->field = NULL;
}
