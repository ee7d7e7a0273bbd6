/*
 * paramo inspect: shows what is in a model. Tests: test/e2e/explain.sh, test/learn/test_inspect.c.
 */
#include "cmd/exitcode.h"
#include "cmd/metrics_json.h"
#include "cmd/model_names.h"
#include "cmd/options.h"
#include "cmd/verbs.h"
#include "learn/explain/inspect.h"
#include "learn/io/progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char usage[] =
    "usage: paramo inspect MODEL [--top N] [--json]\n"
    "\n"
    "Shows what is in a model, the folder that 'paramo train' saved: its settings and fields, and of each\n"
    "table the rows, the values that are not 0, the sum of magnitudes (L1), the root of the sum of squares\n"
    "(L2), the greatest magnitude and the size of the file. The bias is shown separately. The N largest "
    "weights follow, with the length of the feature's row in the other tables. Features have names if the "
    "model\n"
    "was trained with --keep-names. Weights of scaled features (train --scale) are those of the scaled\n"
    "values, so they can be compared; the column 'a unit' has the weight for the values in the data.\n";

static const char more[] = CODE_HELP "\n"
                                     "  paramo inspect model --top 50\n";

enum { NAME_WIDTH = 80 };

static uint64_t bytes_of(const struct model_table *t)
{
    struct stat st;
    return t->path && stat(t->path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* ---- text ---- */

static void print_settings(const struct model_info *info)
{
    char rows[16];
    (void)printf("model       %s, %s; objective %s", info->ops->name, info->ops->help,
                 info->objective.ops->name);
    if (info->objective.ops->many)
        (void)printf(", %" PRIu32 " classes", info->objective.classes);
    (void)printf("\ntrained     %s rows, %" PRIu64 " epoch%s, batches of %" PRIu64 ", seed %" PRIu64 "\n",
                 progress_count(rows, sizeof rows, (double)info->rows), info->epochs,
                 info->epochs == 1 ? "" : "s", info->batch, info->seed);
    (void)printf("data        format %s, scale %s, ", info->data_format, scale_name(info->scale));
    (void)printf(info->hash_bits > 0 ? "keys hashed to %" PRIu32 " bits\n" : "keys as they are\n",
                 info->hash_bits);
    for (size_t i = 0; i < info->ops->settings; i++)
        (void)printf("%-11s %s %g\n", i == 0 ? "settings" : "", info->ops->setting[i].option,
                     info->setting[i]);
    if (info->factor_after > 0)
        (void)printf("%-11s factor-after %" PRIu32 "\n", "", info->factor_after);
    for (size_t t = 0; t < info->ops->tables; t++) {
        const struct model_optimizer *o = &info->optimizer[t];
        (void)printf("%-11s %s: %s, alpha %g, beta %g, l1 %g, l2 %g\n", t == 0 ? "optimizers" : "",
                     info->ops->table[t].name, o->name, o->alpha, o->beta, o->l1, o->l2);
    }
}

/* Prints the fields: their number, or for a table a line for each column that is a feature. */
static void print_fields(const struct model_info *info)
{
    const uint32_t fields = model_fields(info);
    if (fields > 0 && !info->columns)
        (void)printf("fields      %" PRIu32 ": 0 to %" PRIu32 "\n", fields, fields - 1);
    for (size_t i = 0, first = 1; info->columns && i < columns_count(info->columns); i++) {
        const struct column *c = columns_at(info->columns, i);
        if (c->role != COLUMN_CATEGORY && c->role != COLUMN_NUMBER)
            continue;
        (void)printf("%-11s %u %s (%s)\n", first ? "fields" : "", c->field, c->name,
                     column_role_name(c->role));
        first = 0;
    }
}

static void print_tables(const struct model *m, const struct inspection *in)
{
    char a[16], b[16], c[16], d[16], e[16];
    (void)printf("\ntable    rows   not 0   values   not 0        L1        L2   largest      file\n");
    for (size_t t = 0; t < m->n; t++) {
        const struct inspect_table *x = &in->table[t];
        (void)printf("%-5s %7s %7s  %7s %7s %9.4g %9.4g %9.4g %9s\n", m->table[t].name,
                     progress_count(a, sizeof a, (double)x->rows),
                     progress_count(b, sizeof b, (double)x->nonzero_rows),
                     progress_count(c, sizeof c, (double)x->values),
                     progress_count(d, sizeof d, (double)x->nonzero), x->l1, x->l2, x->most,
                     progress_bytes(e, sizeof e, (double)bytes_of(&m->table[t])));
    }
    if (m->scale.file)
        (void)printf("%-5s %7s                                                       %9s\n", SCALE_TABLE,
                     progress_count(a, sizeof a, (double)m->scale.n),
                     progress_bytes(e, sizeof e, (double)bytes_of(&m->scale)));
    for (uint32_t o = 0; in->bias && o < m->table[0].dim; o++)
        (void)printf("%s%.6g%s", o == 0 ? "bias   " : " ", (double)in->bias[o],
                     o + 1 == m->table[0].dim ? "\n" : "");
}

/* The number of tables, besides the first (w), whose rows belong to features. */
static size_t feature_tables(const struct model *m)
{
    size_t n = 0;
    for (size_t t = 1; t < m->n; t++)
        n += model_fixed_rows(&m->info, t) == 0;
    return n;
}

static void print_weights(const struct model *m, const struct inspection *in, const struct names *names)
{
    const int many = m->info.objective.ops->many, scaled = m->scale.file != NULL;
    const size_t others = feature_tables(m);
    char name[NAME_WIDTH];
    if (in->top == 0)
        return;
    (void)printf("\n    weight%s", scaled ? "     a unit" : "");
    for (size_t t = 1; t < m->n; t++)
        if (model_fixed_rows(&m->info, t) == 0)
            (void)printf("       |%s|", m->table[t].name);
    (void)printf("%s  feature\n", many ? "  class" : "");
    const size_t left = (size_t)(80 - 12 - (scaled ? 11 : 0) - (many ? 7 : 0)) - 10 * others;
    for (size_t i = 0; i < in->top; i++) {
        const struct inspect_weight *w = &in->weight[i];
        (void)printf("%+10.5g", (double)w->weight);
        if (scaled)
            (void)printf(" %+10.4g", (double)(w->weight / w->divisor));
        for (size_t t = 1; t < m->n; t++)
            if (model_fixed_rows(&m->info, t) == 0)
                (void)printf(" %9.4g", w->norm[t]);
        if (many)
            (void)printf(" %6" PRIu32, w->output);
        (void)printf("  %s\n",
                     model_names_text(names, w->key, -1, name, left < sizeof name ? left + 1 : sizeof name));
    }
}

/* ---- JSON ---- */

static int put(json_t *object, const char *name, json_t *value)
{
    return json_object_set_new(object, name, value) == 0;
}

static json_t *key_json(uint64_t key)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, key);
    return json_string(text);
}

static json_t *tables_json(const struct model *m, const struct inspection *in)
{
    json_t *list = json_array();
    for (size_t t = 0; t < m->n; t++) {
        const struct inspect_table *x = &in->table[t];
        const struct model_optimizer *o = &m->info.optimizer[t];
        (void)json_array_append_new(
            list,
            json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:I, s:{s:s, s:f, s:f, s:f, s:f}}",
                      "name", m->table[t].name, "rows", (json_int_t)x->rows, "nonzero_rows",
                      (json_int_t)x->nonzero_rows, "dim", (json_int_t)m->table[t].dim, "values",
                      (json_int_t)x->values, "nonzero", (json_int_t)x->nonzero, "l1", x->l1, "l2", x->l2,
                      "largest", x->most, "bytes", (json_int_t)bytes_of(&m->table[t]), "optimizer", "name",
                      o->name, "alpha", o->alpha, "beta", o->beta, "l1", o->l1, "l2", o->l2));
    }
    return list;
}

static json_t *weights_json(const struct model *m, const struct inspection *in, const struct names *names)
{
    json_t *list = json_array();
    for (size_t i = 0; i < in->top; i++) {
        const struct inspect_weight *w = &in->weight[i];
        const char *name = names ? names_find(names, w->key) : NULL;
        char text[4096];
        json_t *j = json_pack("{s:o, s:s?, s:f, s:f}", "key", key_json(w->key), "name",
                              name ? model_names_text(names, w->key, -1, text, sizeof text) : NULL, "weight",
                              (double)w->weight, "unit_weight", (double)(w->weight / w->divisor));
        if (j && m->info.objective.ops->many)
            (void)put(j, "class", json_integer((json_int_t)w->output));
        json_t *norms = json_object();
        for (size_t t = 1; t < m->n; t++)
            if (model_fixed_rows(&m->info, t) == 0)
                (void)put(norms, m->table[t].name, json_real(w->norm[t]));
        (void)put(j, "norms", norms);
        (void)json_array_append_new(list, j);
    }
    return list;
}

static json_t *fields_json(const struct model_info *info)
{
    json_t *list = json_array();
    for (size_t i = 0; info->columns && i < columns_count(info->columns); i++) {
        const struct column *c = columns_at(info->columns, i);
        if (c->role == COLUMN_CATEGORY || c->role == COLUMN_NUMBER)
            (void)json_array_append_new(list, json_pack("{s:i, s:s, s:s}", "field", (int)c->field, "name",
                                                        c->name, "role", column_role_name(c->role)));
    }
    return list;
}

static json_t *inspection_json(const struct model *m, const struct inspection *in, const struct names *names)
{
    const struct model_info *info = &m->info;
    json_t *settings = json_object(), *bias = json_array();
    for (size_t i = 0; i < info->ops->settings; i++)
        (void)put(settings, info->ops->setting[i].manifest,
                  info->ops->setting[i].whole ? json_integer((json_int_t)info->setting[i])
                                              : json_real(info->setting[i]));
    for (uint32_t o = 0; in->bias && o < m->table[0].dim; o++)
        (void)json_array_append_new(bias, metrics_number((double)in->bias[o]));
    char seed[24];
    (void)snprintf(seed, sizeof seed, "%" PRIu64, info->seed);
    return json_pack("{s:i, s:s, s:s, s:i, s:o, s:I, s:I, s:I, s:s, s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o}",
                     "version", 1, "model", info->ops->name, "objective", info->objective.ops->name,
                     "classes", (int)info->objective.classes, "settings", settings, "rows",
                     (json_int_t)info->rows, "epochs", (json_int_t)info->epochs, "batch",
                     (json_int_t)info->batch, "seed", seed, "data_format", info->data_format, "scale",
                     scale_name(info->scale), "hash_bits", (int)info->hash_bits, "fields",
                     (int)model_fields(info), "columns", fields_json(info), "bias", bias, "tables",
                     tables_json(m, in), "weights", weights_json(m, in, names));
}

/* ---- the verb ---- */

static int print(const struct model *m, const struct inspection *in, const struct names *names, int json)
{
    int bad = 0;
    if (json) {
        json_t *j = inspection_json(m, in, names);
        bad = !j || json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0;
        json_decref(j);
        (void)putchar('\n');
    } else {
        print_settings(&m->info);
        print_fields(&m->info);
        print_tables(m, in);
        print_weights(m, in, names);
    }
    return !bad && fflush(stdout) == 0 && !ferror(stdout);
}

static paramo_err inspect(const char *dir, size_t most, int json)
{
    struct model model;
    struct inspection in = {0};
    struct names *names = NULL;
    paramo_err err = modelio_open(dir, &model);
    if (err != PARAMO_OK)
        return err;
    err = model_names_try(dir, &names);
    if (err == PARAMO_OK)
        err = inspect_model(&model, most, &in);
    if (err == PARAMO_OK && !print(&model, &in, names, json))
        err = paramo_error_set(PARAMO_E_IO, "standard output cannot be written");
    inspect_free(&in);
    names_free(names);
    modelio_close(&model);
    return err;
}

int cmd_inspect(int argc, char **argv)
{
    struct options o;
    int code = options_parse(&o, VERB_INSPECT, argc, argv, usage, more);
    if (code < 0 && o.words == 0)
        code = options_wrong(&o, "MODEL is missing: a folder that 'paramo train' saved");
    if (code < 0) {
        paramo_err err = inspect(o.word[0], (size_t)option_number(&o, OPT_TOP), option_flag(&o, OPT_JSON));
        code = err ? code_fail("inspect", err, paramo_last_error()) : CODE_DONE;
    }
    options_free(&o);
    return code;
}
