/*
 * libffm's model as text: the numbers of features n, of fields m and of factors k, then for each feature j and field
 * f a line "wj,f v1 ... vk". libffm has no weights and no bias. So rows need two more features of value 1: n - 2 of
 * field m - 2, and n - 1 of field m - 1, as in the last line of this comment. The products of the first with the other
 * features are the weights, and the product of the two is the bias:
 *   w_i = <v_i,m-2 , v_n-2,f_i> with v_n-2,f = (1, 0, ...)
 *   rows: "label 0:3:1 ... m-2:n-2:1 m-1:n-1:1", scored without normalisation
 */
#include "learn/export/forms.h"
#include "learn/model/factors.h"
#include "learn/model/model.h"

#include <inttypes.h>
#include <string.h>

#define NUMBERS_MAX (UINT64_C(1) << 30) /* arbitrary: a text of some 10 GB */

struct shape {
    uint64_t features;    /* of the model: 1 + the greatest key */
    uint32_t fields, dim; /* of the model */
    int own;              /* a row has factors for each field */
};

static paramo_err shape_of(const struct model *m, struct shape *s)
{
    const struct model_table *w = &m->table[0];
    const struct model_ops *ops = m->info.ops;
    if ((ops != &model_lr && ops != &model_fm && ops != &model_ffm) || model_outputs(&m->info) > 1)
        return paramo_error_set(PARAMO_E_UNSUPPORTED,
                                "libffm's form is that of ffm, fm and lr with one output: use --to text");
    if (m->scale.file)
        return paramo_error_set(PARAMO_E_UNSUPPORTED, "libffm's form has no scales: train with --scale none");
    s->own = ops == &model_ffm;
    s->fields = s->own ? model_fields(&m->info) : 1;
    s->dim = ops == &model_lr ? 1 : model_shape(&m->info, 1).dim;
    s->features = w->n > 1 ? w->keys[w->n - 2] + 1 : 0; /* the last key is the bias */
    if (s->own)
        s->dim /= s->fields;
    if (s->features > NUMBERS_MAX / ((uint64_t)s->dim * (s->fields + 2)))
        return paramo_error_set(PARAMO_E_UNSUPPORTED,
                                "libffm numbers features from 0 on, and this model has keys up to %" PRIu64
                                ": train with fewer --hash-bits",
                                s->features - 1);
    return PARAMO_OK;
}

/* "w3,1 first 0 0 ... \n", or the numbers of v. */
static paramo_err write_line(struct output *out, uint64_t feature, uint32_t field, uint32_t dim,
                             const float *v, float first)
{
    paramo_err err = export_print(out, "w%" PRIu64 ",%" PRIu32 " ", feature, field);
    for (uint32_t k = 0; err == PARAMO_OK && k < dim; k++) {
        const float x = v ? v[k] : k == 0 ? first : 0.0f;
        err = x == 0 ? output_write(out, "0 ", 2) : export_print(out, "%.9g ", (double)x);
    }
    return err == PARAMO_OK ? output_write(out, "\n", 1) : err;
}

/* A feature: its factors for each field, its weight for field m - 2, zeros for m - 1. A feature with weight 0 has no
 * factors. */
static paramo_err write_feature(struct output *out, const struct shape *s, uint64_t j, float w,
                                const float *v)
{
    paramo_err err = PARAMO_OK;
    for (uint32_t f = 0; err == PARAMO_OK && f < s->fields; f++)
        err = write_line(out, j, f, s->dim, w == 0 || !v ? NULL : v + (s->own ? (size_t)f * s->dim : 0), 0);
    if (err == PARAMO_OK)
        err = write_line(out, j, s->fields, s->dim, NULL, w);
    return err == PARAMO_OK ? write_line(out, j, s->fields + 1, s->dim, NULL, 0) : err;
}

/* The two features of value 1. */
static paramo_err write_constants(struct output *out, const struct shape *s, float bias)
{
    paramo_err err = PARAMO_OK;
    for (uint32_t f = 0; err == PARAMO_OK && f < s->fields + 2; f++)
        err = write_line(out, s->features, f, s->dim, NULL,
                         f < s->fields        ? 1.0f
                         : f == s->fields + 1 ? bias
                                              : 0.0f);
    for (uint32_t f = 0; err == PARAMO_OK && f < s->fields + 2; f++)
        err = write_line(out, s->features + 1, f, s->dim, NULL, f == s->fields ? 1.0f : 0.0f);
    return err;
}

paramo_err export_libffm(const struct model *m, const struct export_options *o, struct output *out)
{
    const struct model_table *w = &m->table[0];
    struct shape s = {0};
    uint64_t at = 0;
    (void)o;
    paramo_err err = export_plain(m);
    if (err == PARAMO_OK)
        err = shape_of(m, &s);
    if (err == PARAMO_OK)
        err = export_print(out, "n %" PRIu64 "\nm %" PRIu32 "\nk %" PRIu32 "\nnormalization 0\n",
                           s.features + 2, s.fields + 2, s.dim);
    for (uint64_t j = 0; err == PARAMO_OK && j < s.features; j++) {
        const int has = at < w->n && w->keys[at] == j;
        err = write_feature(out, &s, j, has ? w->values[at] : 0.0f,
                            has && m->n > 1 ? modelio_row(&m->table[1], j) : NULL);
        at += (uint64_t)has;
    }
    const float *bias = modelio_row(w, BATCH_BIAS_KEY);
    return err == PARAMO_OK ? write_constants(out, &s, bias ? *bias : 0.0f) : err;
}
