#include "learn/train/first_rows.h"
#include "paramo/paramo.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 8 /* at most; arbitrary: some milliseconds of parsing each */

/* Labels and weights of the rows, one behind the other. */
struct sample {
    size_t n, cap;
    float *label, *weight;
};

static void sample_free(struct sample *s)
{
    free(s->label);
    free(s->weight);
}

static paramo_err reserve(struct sample *s, size_t n)
{
    if (n <= s->cap)
        return PARAMO_OK;
    float *label = realloc(s->label, n * sizeof *label);
    s->label = label != NULL ? label : s->label;
    float *weight = realloc(s->weight, n * sizeof *weight);
    s->weight = weight != NULL ? weight : s->weight;
    if (label == NULL || weight == NULL)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the labels of %zu rows", n);
    s->cap = n;
    return PARAMO_OK;
}

static paramo_err add(struct sample *s, const struct block *b)
{
    paramo_err err = reserve(s, s->n + b->rows);
    for (size_t r = 0; err == PARAMO_OK && r < b->rows; r++, s->n++) {
        s->label[s->n] = b->label[r];
        s->weight[s->n] = b->weight == NULL ? 1.0f : b->weight[r];
    }
    return err;
}

/* Reads the first rows. */
static paramo_err read_rows(struct reader *reader, struct sample *s)
{
    const uint64_t all = reader_parts(reader), parts = all == 0 ? 1 : all < PARTS ? all : PARTS;
    paramo_err err = PARAMO_OK;
    for (uint64_t i = 0; err == PARAMO_OK && i < parts; i++) {
        const struct block *block = NULL;
        uint32_t stream = 0;
        uint64_t index = 0;
        int ended;
        if (all > 0)
            reader_place(reader, i * all / parts, &stream, &index);
        err = reader_peek(reader, stream, index, &block, &ended);
        if (err == PARAMO_OK && block != NULL)
            err = add(s, block);
        reader_release(reader, block);
    }
    return err;
}

static paramo_err put_bias(struct customer *c, const float *margin)
{
    const struct model_info *info = &c->job->info;
    const uint32_t outputs = model_outputs(info);
    const uint64_t key = BATCH_BIAS_KEY;
    const float offset = info->ops->offset == NULL ? 0 : (float)info->ops->offset(info);
    float bias[OBJECTIVE_CLASSES_MAX];
    assert(outputs == model_row_values(info, 0));
    for (uint32_t i = 0; i < outputs; i++)
        bias[i] = margin[i] - offset;
    paramo_rows put = {.size = sizeof put, .keys = &key, .n = 1, .vals = bias, .row_values = outputs};
    return paramo_table_put(c->worker, c->table[0], 0, &put);
}

paramo_err first_rows_begin(struct customer *c)
{
    struct objective *o = &c->job->info.objective;
    struct sample s = {0};
    struct label_sums sums = {0};
    double constants[OBJECTIVE_CLASSES_MAX] = {0};
    float margin[OBJECTIVE_CLASSES_MAX];
    paramo_err err = read_rows(c->job->reader, &s);
    if (err == PARAMO_OK && s.n > 0) {
        objective_add_labels(&sums, s.label, s.weight, s.n);
        o->label_scale = objective_label_scale(o, &sums);
        if (!o->ops->tally(o, s.label, s.weight, s.n, constants))
            err = paramo_error_set(PARAMO_E_MEMORY, "out of memory for the labels of the first rows");
    }
    sample_free(&s);
    if (err != PARAMO_OK)
        return err;
    o->ops->constant(o, sums.weight, constants, margin);
    return put_bias(c, margin);
}
