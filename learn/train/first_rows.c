#include "learn/train/first_rows.h"
#include "learn/train/centre.h"
#include "paramo/paramo.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 8 /* at most; arbitrary: some milliseconds of parsing each */

/* Labels and weights of the rows, one after the other. */
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
    s->label = label ? label : s->label;
    float *weight = realloc(s->weight, n * sizeof *weight);
    s->weight = weight ? weight : s->weight;
    if (!label || !weight)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the labels of %zu rows", n);
    s->cap = n;
    return PARAMO_OK;
}

static paramo_err add_labels(void *arg, const struct block *b)
{
    struct sample *s = arg;
    paramo_err err = reserve(s, s->n + b->rows);
    for (size_t r = 0; err == PARAMO_OK && r < b->rows; r++, s->n++) {
        s->label[s->n] = b->label[r];
        s->weight[s->n] = !b->weight ? 1.0f : b->weight[r];
    }
    return err;
}

/* Calls `take` with each block of the first rows. */
static paramo_err read_rows(struct reader *reader, paramo_err (*take)(void *arg, const struct block *b),
                            void *arg)
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
        if (err == PARAMO_OK && block)
            err = take(arg, block);
        reader_release(reader, block);
    }
    return err;
}

static paramo_err put_bias(struct customer *c, const float *margin)
{
    const struct model_info *info = &c->job->info;
    const uint32_t outputs = model_outputs(info);
    const uint64_t key = BATCH_BIAS_KEY;
    const float offset = !info->ops->offset ? 0 : (float)info->ops->offset(info);
    float bias[OBJECTIVE_CLASSES_MAX];
    assert(outputs == model_row_values(info, 0));
    for (uint32_t i = 0; i < outputs; i++)
        bias[i] = margin[i] - offset;
    paramo_rows put = {.size = sizeof put, .keys = &key, .n = 1, .vals = bias, .row_values = outputs};
    return paramo_table_put(c->worker, c->table[0], 0, &put);
}

static paramo_err put_means(struct customer *c)
{
    paramo_rows put = {.size = sizeof put, .row_values = scale_dim(SCALE_CENTRED)};
    if (!c->job->centre || c->job->info.scale != SCALE_CENTRED)
        return PARAMO_OK;
    const float *rows;
    put.n = centre_rows(c->job->centre, &put.keys, &rows);
    put.vals = rows;
    paramo_err err = scaling_look(&c->scaling);
    return err == PARAMO_OK && put.n > 0 ? paramo_table_put(c->worker, c->scaling.table, 0, &put) : err;
}

paramo_err first_rows_begin(struct customer *c)
{
    struct objective *o = &c->job->info.objective;
    struct sample s = {0};
    struct label_sums sums = {0};
    double constants[OBJECTIVE_CLASSES_MAX] = {0};
    float margin[OBJECTIVE_CLASSES_MAX];
    const struct class_weights *w = &c->job->info.class_weight;
    paramo_err err = read_rows(c->job->reader, add_labels, &s);
    for (size_t i = 0; i < s.n && w->n > 0; i++)
        s.weight[i] *= label_weight(w->weight, w->n, s.label[i]);
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
    err = put_bias(c, margin);
    return err == PARAMO_OK ? put_means(c) : err;
}

/* ---- columns far from 0 ---- */

static paramo_err add_values(void *arg, const struct block *b)
{
    centre_add(arg, b);
    return PARAMO_OK;
}

paramo_err first_rows_centre(struct job *job)
{
    enum scale_kind *scale = &job->info.scale;
    const uint64_t *keys;
    const float *rows;
    const struct block *b = NULL;
    int ended, numbers;
    if ((*scale != SCALE_AUTO && *scale != SCALE_CENTRED) || job->o->model_in || job->o->darlin.on ||
        reader_size(job->reader) == 0)
        return PARAMO_OK;
    paramo_err err = reader_peek(job->reader, 0, 0, &b, &ended);
    numbers = err == PARAMO_OK && b && centre_wanted(b);
    reader_release(job->reader, b);
    if (err != PARAMO_OK || !numbers)
        return err;
    err = centre_new(&job->centre);
    if (err == PARAMO_OK)
        err = read_rows(job->reader, add_values, job->centre);
    if (err == PARAMO_OK && centre_rows(job->centre, &keys, &rows) > 0)
        *scale = SCALE_CENTRED;
    return err;
}

/* ---- weights of classes ---- */

paramo_err first_rows_balance(struct job *job)
{
    struct class_weights *w = &job->info.class_weight;
    double of_class[OBJECTIVE_CLASSES_MAX] = {0}, all = 0;
    struct sample s = {0};
    if (!job->o->balance)
        return PARAMO_OK;
    w->n = job->info.objective.ops->many ? job->info.objective.classes : 2;
    paramo_err err = read_rows(job->reader, add_labels, &s);
    for (size_t i = 0; i < s.n; i++) {
        of_class[(uint32_t)s.label[i]] += (double)s.weight[i];
        all += (double)s.weight[i];
    }
    for (uint32_t k = 0; k < w->n; k++)
        w->weight[k] = of_class[k] > 0 ? (float)(all / (w->n * of_class[k])) : 1.0f;
    sample_free(&s);
    return err;
}

/* ---- how long rows are ---- */

/* Is a learning rate given for each table? */
static int has_rates(const struct model_info *info)
{
    size_t t = 0;
    while (t < info->ops->tables && info->optimizer[t].alpha > 0)
        t++;
    return t == info->ops->tables;
}

paramo_err first_rows_length(struct job *job)
{
    const struct block *b = NULL;
    size_t present = 0;
    int ended;
    if (reader_size(job->reader) == 0 || (has_rates(&job->info) && job->o->batch > 0))
        return PARAMO_OK;
    paramo_err err = reader_peek(job->reader, 0, 0, &b, &ended);
    if (err != PARAMO_OK || !b)
        return err;
    for (size_t i = 0; i < b->features; i++)
        present += !b->value || b->value[i] != 0;
    job->info.row_features = b->rows > 0 ? (double)present / (double)b->rows : 0;
    reader_release(job->reader, b);
    return PARAMO_OK;
}

/* ---- fields ---- */

struct seen_fields {
    uint32_t n; /* 1 + the greatest; 0: none */
    uint8_t seen[UINT16_MAX + 1];
};

static paramo_err add_fields(void *arg, const struct block *b)
{
    struct seen_fields *s = arg;
    for (size_t i = 0; i < b->features; i++) {
        s->seen[b->field[i]] = 1;
        s->n = b->field[i] >= s->n ? b->field[i] + 1u : s->n;
    }
    return PARAMO_OK;
}

static paramo_err check_fields(struct job *job, const struct seen_fields *seen)
{
    const struct model_ops *ops = job->info.ops;
    const char *data = reader_stream_name(job->reader, 0);
    for (size_t i = 0; i < ops->settings; i++) {
        const struct model_setting *s = &ops->setting[i];
        double *value = &job->info.setting[i];
        if (s->field == FIELD_NUMBER && !seen->seen[(size_t)*value])
            return paramo_error_set(PARAMO_E_FORMAT,
                                    "%s: no feature of the first rows has field %g: name the field with --%s",
                                    data, *value, s->option);
        if (s->field != FIELD_COUNT || *value > 0)
            continue;
        if (seen->n > s->max)
            return paramo_error_set(
                PARAMO_E_FORMAT,
                "%s: has field %u, and model %s takes at most %u of them: number the fields "
                "from 0 on",
                data, seen->n - 1, ops->name, s->max);
        *value = seen->n > 0 ? seen->n : 1;
    }
    return PARAMO_OK;
}

paramo_err first_rows_fields(struct job *job)
{
    if (job->info.ops->fields == MODEL_NO_FIELDS)
        return PARAMO_OK;
    struct seen_fields *seen = calloc(1, sizeof *seen);
    if (!seen)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the fields of the first rows");
    paramo_err err = read_rows(job->reader, add_fields, seen);
    if (err == PARAMO_OK)
        err = check_fields(job, seen);
    free(seen);
    return err;
}
