/* A line for each feature whose weight is not 0: key, the values of its row in each table, its name. */
#include "learn/export/forms.h"
#include "learn/store/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The divisor of a key's weights: divided by it, they belong to the values as they are in the data. *at as in
 * write_row. */
static float scale_of(const struct model *m, uint64_t key, uint64_t *at)
{
    const struct model_table *t = &m->scale;
    while (*at < t->n && t->keys[*at] < key)
        ++*at;
    return *at < t->n && t->keys[*at] == key ? scale_divisor(m->info.scale, t->values + *at * t->dim) : 1.0f;
}

static paramo_err write_value(struct output *out, float value)
{
    char text[32];
    int len = snprintf(text, sizeof text, "\t%.9g", (double)value);
    return output_write(out, text, (size_t)len);
}

/* Writes the values of key's row in t, divided by scale; if there is no row, zeros or (settings) a dash. Keys ascend
 * from call to call: *at, 0 at first, becomes the first row that is not below key. */
static paramo_err write_row(struct output *out, const struct model_table *t, uint64_t key, float scale,
                            int settings, uint64_t *at)
{
    paramo_err err = PARAMO_OK;
    while (*at < t->n && t->keys[*at] < key)
        ++*at;
    int has = *at < t->n && t->keys[*at] == key;
    if (!has && settings)
        return output_write(out, "\t-", 2);
    for (uint32_t f = 0; err == PARAMO_OK && f < t->dim; f++)
        err = write_value(out, has ? t->values[*at * t->dim + f] / scale : 0.0f);
    return err;
}

static int is_zero(const struct model_table *t, uint64_t row)
{
    for (uint32_t c = 0; c < t->dim; c++)
        if (t->values[row * t->dim + c] != 0)
            return 0;
    return 1;
}

/* Moves the subtracted means into the bias: w mean / scale of each centred column is subtracted from it. */
struct shift {
    double *value; /* [dim of w]; NULL: no column is centred */
    uint64_t scale_at;
};

static void shift_add(struct shift *s, const struct model *m, uint64_t row, float scale)
{
    const struct model_table *w = &m->table[0], *t = &m->scale;
    while (s->scale_at < t->n && t->keys[s->scale_at] < w->keys[row])
        s->scale_at++;
    if (s->scale_at == t->n || t->keys[s->scale_at] != w->keys[row])
        return;
    const float mean = scale_mean(m->info.scale, t->values + s->scale_at * t->dim);
    for (uint32_t f = 0; f < w->dim; f++)
        s->value[f] += (double)w->values[row * w->dim + f] / (double)scale * (double)mean;
}

/* Writes the bias without the shift. Its key is the greatest, so the shift is complete. */
static paramo_err write_bias(struct output *out, const struct shift *s, const struct model_table *w,
                             uint64_t row)
{
    paramo_err err = PARAMO_OK;
    for (uint32_t f = 0; err == PARAMO_OK && f < w->dim; f++)
        err = write_value(out, (float)((double)w->values[row * w->dim + f] - s->value[f]));
    return err;
}

static paramo_err write_lines(const struct model *m, const struct export_options *o, struct shift *shift,
                              struct output *out)
{
    const struct model_table *w = &m->table[0];
    uint64_t at[MODEL_MAX_TABLES] = {0}, scale_at = 0;
    for (uint64_t i = 0; i < w->n; i++) {
        const int shifted = shift->value && w->keys[i] == BATCH_BIAS_KEY;
        if (!o->settings && is_zero(w, i) && !shifted)
            continue;
        paramo_err err = export_print(out, "%" PRIu64, w->keys[i]);
        const float scale = o->settings ? 1.0f : scale_of(m, w->keys[i], &scale_at);
        if (shift->value && !shifted)
            shift_add(shift, m, i, scale);
        if (err == PARAMO_OK && shifted)
            err = write_bias(out, shift, w, i);
        for (size_t t = 0; err == PARAMO_OK && t < m->n && !shifted; t++)
            if (model_fixed_rows(&m->info, t) == 0)
                err = write_row(out, &m->table[t], w->keys[i], scale, o->settings, &at[t]);
        const char *name = o->names ? names_find(o->names, w->keys[i]) : NULL;
        if (err == PARAMO_OK && name)
            err = output_write(out, "\t", 1);
        if (err == PARAMO_OK && name)
            err = output_write(out, name, strlen(name));
        if (err == PARAMO_OK)
            err = output_write(out, "\n", 1);
        if (err != PARAMO_OK)
            return err;
    }
    return PARAMO_OK;
}

static int is_centred(const struct model *m)
{
    for (uint64_t i = 0; i < m->scale.n; i++)
        if (scale_mean(m->info.scale, m->scale.values + i * m->scale.dim) != 0)
            return 1;
    return 0;
}

static paramo_err write_features(const struct model *m, const struct export_options *o, struct output *out)
{
    struct shift shift = {0};
    if (!o->settings && m->scale.file && is_centred(m)) {
        if (m->n > 1)
            return paramo_error_set(
                PARAMO_E_UNSUPPORTED,
                "this model has centred columns, which weights and factors alone cannot express: "
                "use --settings, --to c, or train with --scale std");
        shift.value = calloc(m->table[0].dim, sizeof *shift.value);
        if (!shift.value)
            return paramo_error_set(PARAMO_E_MEMORY, "out of memory");
    }
    paramo_err err = write_lines(m, o, &shift, out);
    free(shift.value);
    return err;
}

/* Writes a table whose rows are not features: "r:3<TAB>..." is row 3 of table r. */
static paramo_err write_table(const struct model_table *t, const char *name, struct output *out)
{
    paramo_err err = PARAMO_OK;
    uint64_t at = 0;
    for (uint64_t i = 0; err == PARAMO_OK && i < t->n; i++) {
        err = export_print(out, "%s:%" PRIu64, name, t->keys[i]);
        if (err == PARAMO_OK)
            err = write_row(out, t, t->keys[i], 1.0f, 0, &at);
        if (err == PARAMO_OK)
            err = output_write(out, "\n", 1);
    }
    return err;
}

/* "# {...}": the model's manifest without its tables. */
static paramo_err write_settings(const struct model *m, struct output *out)
{
    json_t *manifest = manifest_of(&m->info, m->scale.file != NULL);
    char *text = manifest ? json_dumps(manifest, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(manifest);
    paramo_err err = text ? output_write(out, "# ", 2) : paramo_error_set(PARAMO_E_MEMORY, "out of memory");
    if (err == PARAMO_OK)
        err = output_write(out, text, strlen(text));
    if (err == PARAMO_OK)
        err = output_write(out, "\n", 1);
    free(text);
    return err;
}

paramo_err export_text(const struct model *m, const struct export_options *o, struct output *out)
{
    paramo_err err = o->settings ? write_settings(m, out) : PARAMO_OK;
    if (err == PARAMO_OK)
        err = write_features(m, o, out);
    for (size_t t = 0; err == PARAMO_OK && t < m->n; t++)
        if (model_fixed_rows(&m->info, t) > 0)
            err = write_table(&m->table[t], m->info.ops->table[t].name, out);
    return err == PARAMO_OK && o->settings && m->scale.file ? write_table(&m->scale, SCALE_TABLE, out) : err;
}
