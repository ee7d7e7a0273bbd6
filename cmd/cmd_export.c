/*
 * paramo export: a model as text. Tests: test/e2e/train.sh, cli.sh.
 */
#include "cmd/exitcode.h"
#include "cmd/model_names.h"
#include "cmd/options.h"
#include "cmd/verbs.h"
#include "learn/io/output.h"
#include "learn/store/modelio.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: paramo export --model-in DIR --text [--out FILE|-]\n"
    "\n"
    "Writes a model as text, sorted by key: a line 'key<TAB>w' for each feature whose weight is not 0,\n"
    "for a factorization machine 'key<TAB>w<TAB>v1<TAB>...<TAB>vK' (ffm: K for each field in turn). The\n"
    "last key, 18446744073709551615, is the bias. Rows that belong to fields follow, as 'r:3<TAB>...' for\n"
    "row 3 of table r. Numbers have nine digits, which give the same floats back.\n"
    "--names adds the feature's name: '<TAB>column<TAB>value', or '<TAB>column' of a number.\n"
    "Weights of scaled features (train --scale) are for the values in the data. They are not exact for\n"
    "values that std holds at four times their root mean square.\n";

static const char more[] = CODE_HELP "\n"
                                     "  paramo export --model-in model --text --out weights.tsv.gz\n";

/* What the weights of a key are divided by, so that they belong to values as they are in the data. *at as in
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

/* The values of a row of t, divided by scale, or zeros where it has none. *at is the first row that is not below key, from the one
 * that the last call, with a lower key, left there. */
static paramo_err write_row(struct output *out, const struct model_table *t, uint64_t key, float scale,
                            uint64_t *at)
{
    paramo_err err = PARAMO_OK;
    while (*at < t->n && t->keys[*at] < key)
        ++*at;
    int has = *at < t->n && t->keys[*at] == key;
    for (uint32_t f = 0; err == PARAMO_OK && f < t->dim; f++)
        err = write_value(out, has ? t->values[*at * t->dim + f] / scale : 0.0f);
    return err;
}

/* w's rows that are not 0, each with the values of the same key in the other tables. */
static paramo_err write_model(const struct model *m, const struct names *names, struct output *out)
{
    const struct model_table *w = &m->table[0];
    uint64_t at[MODEL_MAX_TABLES] = {0}, scale_at = 0;
    for (uint64_t i = 0; i < w->n; i++) {
        if (w->values[i] == 0)
            continue;
        char key[32];
        int len = snprintf(key, sizeof key, "%" PRIu64, w->keys[i]);
        paramo_err err = output_write(out, key, (size_t)len);
        const float scale = scale_of(m, w->keys[i], &scale_at);
        for (size_t t = 0; err == PARAMO_OK && t < m->n; t++)
            if (model_fixed_rows(&m->info, t) == 0)
                err = write_row(out, &m->table[t], w->keys[i], scale, &at[t]);
        const char *name = names ? names_find(names, w->keys[i]) : NULL;
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

/* The tables whose rows are not those of features: "r:3<TAB>..." is row 3 of table r. */
static paramo_err write_fixed(const struct model *m, struct output *out)
{
    paramo_err err = PARAMO_OK;
    for (size_t t = 0; t < m->n; t++) {
        const struct model_table *table = &m->table[t];
        uint64_t at = 0;
        for (uint64_t i = 0; err == PARAMO_OK && model_fixed_rows(&m->info, t) > 0 && i < table->n; i++) {
            char key[MODEL_NAME_MAX + 32];
            int len = snprintf(key, sizeof key, "%s:%" PRIu64, m->info.ops->table[t].name, table->keys[i]);
            err = output_write(out, key, (size_t)len);
            if (err == PARAMO_OK)
                err = write_row(out, table, table->keys[i], 1.0f, &at);
            if (err == PARAMO_OK)
                err = output_write(out, "\n", 1);
        }
    }
    return err;
}

static paramo_err export_model(const char *dir, int with_names, const char *path)
{
    struct model model;
    struct output *out;
    struct names *names = NULL;
    paramo_err err = modelio_open(dir, &model);
    if (err != PARAMO_OK)
        return err;
    if (with_names)
        err = model_names_open(dir, &names);
    if (err == PARAMO_OK)
        err = output_open(path, &out);
    if (err == PARAMO_OK) {
        err = write_model(&model, names, out);
        if (err == PARAMO_OK)
            err = write_fixed(&model, out);
        if (err == PARAMO_OK)
            err = output_commit(out);
        else
            output_abort(out);
    }
    names_free(names);
    modelio_close(&model);
    return err;
}

int cmd_export(int argc, char **argv)
{
    struct options o;
    int code = options_parse(&o, VERB_EXPORT, argc, argv, usage, more);
    const char *model = option_text(&o, OPT_MODEL_IN);
    if (code < 0 && !model)
        code = options_wrong(&o, "--model-in is missing");
    if (code < 0 && !option_flag(&o, OPT_TEXT_FORM))
        code = options_wrong(&o, "--text is missing");
    if (code < 0) {
        paramo_err err =
            export_model(model, option_flag(&o, OPT_EXPORT_NAMES), option_text(&o, OPT_EXPORT_OUT));
        code = err ? code_fail("export", err, paramo_last_error()) : CODE_DONE;
    }
    options_free(&o);
    return code;
}
