#include "learn/store/manifest.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MANIFEST "manifest.json"

static paramo_err no_memory(void)
{
    return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a model's manifest");
}

char *manifest_path(const char *dir, const char *name)
{
    char *path;
    return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

static json_t *optimizer_json(const struct model_optimizer *o)
{
    return json_pack("{s:s, s:f, s:f, s:f, s:f}", "name", o->name, "alpha", o->alpha, "beta", o->beta, "l1",
                     o->l1, "l2", o->l2);
}

/* Each manifest has "dim": 0 for a model without this setting. */
static const char dim_entry[] = "dim";

/* Adds the settings, and the optimizers of the tables after the first. Returns 0 if there is no memory. */
static int put_settings(json_t *m, const struct model_info *info)
{
    const struct model_ops *ops = info->ops;
    int done = 1;
    for (size_t i = 0; i < ops->settings; i++) {
        double value = info->setting[i];
        json_t *number = ops->setting[i].whole ? json_integer((json_int_t)value) : json_real(value);
        done &= json_object_set_new(m, ops->setting[i].manifest, number) == 0;
    }
    json_t *optimizers = json_object_get(m, "optimizers");
    for (size_t t = 1; t < ops->tables; t++)
        done &= json_object_set_new(optimizers, ops->table[t].name, optimizer_json(&info->optimizer[t])) == 0;
    return done;
}

/* Logistic models have no entry "objective", so that older programs read them. */
static int is_plain(const struct objective *o)
{
    return o->ops == objective_at(0);
}

static json_t *objective_json(const struct objective *o)
{
    return json_pack("{s:s, s:i, s:f, s:f}", "name", o->ops->name, "classes", (int)o->classes, "quantile",
                     o->quantile, "label_scale", o->label_scale);
}

/* [[0, 3], [1, 2]] */
static json_t *interactions_json(const struct interactions *in)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < in->n; i++)
        (void)json_array_append_new(list, json_pack("[i, i]", in->pair[i].a, in->pair[i].b));
    return list;
}

static json_t *reals_json(const float *value, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++)
        (void)json_array_append_new(list, json_real((double)value[i]));
    return list;
}

static json_t *calibration_json(const struct calibration *c)
{
    if (c->kind == CALIBRATION_PLATT)
        return json_pack("{s:s, s:f, s:f}", "method", calibration_name(c->kind), "a", c->a, "b", c->b);
    return json_pack("{s:s, s:o, s:o}", "method", calibration_name(c->kind), "margins",
                     reals_json(c->from, c->knots), "calibrated", reals_json(c->to, c->knots));
}

/* The columns of tables: [{"name": "site", "role": "cat"}, ...]. */
static json_t *columns_json(const struct columns *columns)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < columns_count(columns); i++) {
        const struct column *c = columns_at(columns, i);
        json_t *entry = json_pack("{s:s%, s:s}", "name", c->name, c->len, "role", column_role_name(c->role));
        if (!entry || json_array_append_new(list, entry) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

json_t *manifest_of(const struct model_info *info, int scaled)
{
    json_t *m = json_pack(
        "{s:s, s:i, s:s, s:i, s:i, s:s, s:I, s:I, s:I, s:s, s:{s:o}}", "format", MODEL_FORMAT, "version",
        info->calibration.kind != CALIBRATION_NONE || info->interactions.n > 0 ? 4
        : !is_plain(&info->objective)                                          ? 3
        : scaled                                                               ? 2
                                                                               : 1,
        "model", info->ops->name, dim_entry, 0, "hash_bits", (int)info->hash_bits, "data_format",
        info->data_format, "batch", (json_int_t)info->batch, "epochs", (json_int_t)info->epochs, "rows",
        (json_int_t)info->rows, "bias_key", "18446744073709551615", "optimizers", info->ops->table[0].name,
        optimizer_json(&info->optimizer[0]));
    char seed[24];
    (void)snprintf(seed, sizeof seed, "%llu", (unsigned long long)info->seed);
    if (!m || json_object_set_new(m, "seed", json_string(seed)) != 0 ||
        json_object_set_new(m, "scale", json_string(scale_name(info->scale))) != 0 ||
        json_object_set_new(m, "tables", json_array()) != 0 || !put_settings(m, info) ||
        (!is_plain(&info->objective) &&
         json_object_set_new(m, "objective", objective_json(&info->objective)) != 0) ||
        (info->factor_after > 0 &&
         json_object_set_new(m, "factor_after", json_integer((json_int_t)info->factor_after)) != 0) ||
        (info->interactions.n > 0 &&
         json_object_set_new(m, "interactions", interactions_json(&info->interactions)) != 0) ||
        (info->class_weight.n > 0 &&
         json_object_set_new(m, "class_weight",
                             reals_json(info->class_weight.weight, info->class_weight.n)) != 0) ||
        (info->calibration.kind != CALIBRATION_NONE &&
         json_object_set_new(m, "calibration", calibration_json(&info->calibration)) != 0) ||
        (info->columns && json_object_set_new(m, "columns", columns_json(info->columns)) != 0)) {
        json_decref(m);
        return NULL;
    }
    return m;
}

/* Reads one file of bounded size; the caller frees it. */
static paramo_err slurp(const char *path, char **text, size_t *len)
{
    FILE *file = fopen(path, "re");
    struct stat st;
    if (file && fstat(fileno(file), &st) == 0 && S_ISDIR(st.st_mode)) {
        (void)fclose(file);
        return paramo_error_set(PARAMO_E_FORMAT, "%s: is a directory", path);
    }
    if (!file)
        return paramo_error_set(errno == ENOENT || errno == ENOTDIR ? PARAMO_E_NOT_FOUND : PARAMO_E_IO,
                                "%s: %s", path, strerror(errno));
    char *buffer = malloc(MANIFEST_MAX + 1);
    paramo_err err = !buffer ? no_memory() : PARAMO_OK;
    if (err == PARAMO_OK) {
        *len = fread(buffer, 1, MANIFEST_MAX + 1, file);
        if (ferror(file))
            err = paramo_error_set(PARAMO_E_IO, "%s: %s", path, strerror(errno));
        else if (*len > MANIFEST_MAX)
            err = paramo_error_set(PARAMO_E_FORMAT, "%s: too long for the manifest of a Paramo model", path);
    }
    (void)fclose(file);
    if (err != PARAMO_OK) {
        free(buffer);
        return err;
    }
    *text = buffer;
    return PARAMO_OK;
}

paramo_err manifest_parse(const char *text, size_t len, const char *from, json_t **manifest)
{
    json_error_t where;
    json_t *m = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
    const char *format = json_string_value(json_object_get(m, "format"));
    json_t *version = json_object_get(m, "version");
    paramo_err err = PARAMO_OK;
    if (!m)
        err = paramo_error_set(PARAMO_E_CORRUPT, "%s:%d: damaged: %s", from, where.line, where.text);
    else if (!format || strcmp(format, MODEL_FORMAT) != 0)
        err = paramo_error_set(PARAMO_E_FORMAT, "%s: not the manifest of a Paramo model", from);
    else if (!json_is_integer(version) || json_integer_value(version) < 1)
        err = paramo_error_set(PARAMO_E_CORRUPT, "%s: damaged: no version", from);
    else if (json_integer_value(version) > MODEL_VERSION)
        err = paramo_error_set(
            PARAMO_E_FORMAT,
            "%s: the model's format is version %lld, newer than this program's %d: use a newer paramo", from,
            (long long)json_integer_value(version), MODEL_VERSION);
    if (err == PARAMO_OK)
        *manifest = m;
    else
        json_decref(m);
    return err;
}

paramo_err manifest_load(const char *dir, json_t **manifest)
{
    char *path = manifest_path(dir, MANIFEST), *text = NULL;
    size_t len = 0;
    if (!path)
        return no_memory();
    paramo_err err = slurp(path, &text, &len);
    if (err == PARAMO_OK)
        err = manifest_parse(text, len, path, manifest);
    free(text);
    free(path);
    return err;
}

int manifest_uint(json_t *object, const char *name, uint64_t most, uint64_t *out)
{
    json_t *value = json_object_get(object, name);
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > most)
        return 0;
    *out = (uint64_t)json_integer_value(value);
    return 1;
}

static int get_name(json_t *object, const char *name, char out[MODEL_NAME_MAX + 1])
{
    const char *text = json_string_value(json_object_get(object, name));
    if (!text || strlen(text) > MODEL_NAME_MAX)
        return 0;
    memcpy(out, text, strlen(text) + 1);
    return 1;
}

static int get_real(json_t *object, const char *name, double *out)
{
    json_t *value = json_object_get(object, name);
    *out = json_number_value(value);
    return json_is_number(value) && isfinite(*out) && *out >= 0;
}

static int get_optimizer(json_t *optimizers, const char *table, struct model_optimizer *o)
{
    json_t *object = json_object_get(optimizers, table);
    return get_name(object, "name", o->name) && get_real(object, "alpha", &o->alpha) &&
           get_real(object, "beta", &o->beta) && get_real(object, "l1", &o->l1) &&
           get_real(object, "l2", &o->l2);
}

/* Returns 0 if the entry is not valid. */
static int get_objective(json_t *m, struct objective *o)
{
    json_t *object = json_object_get(m, "objective");
    char name[MODEL_NAME_MAX + 1];
    uint64_t classes;
    *o = objective_of(objective_at(0));
    if (!object)
        return 1;
    const struct objective_ops *ops = get_name(object, "name", name) ? objective_find(name) : NULL;
    if (!ops)
        return 0;
    *o = objective_of(ops);
    if (!manifest_uint(object, "classes", OBJECTIVE_CLASSES_MAX, &classes) ||
        !get_real(object, "quantile", &o->quantile) || !get_real(object, "label_scale", &o->label_scale))
        return 0;
    o->classes = (uint32_t)classes;
    return objective_valid(o) == NULL;
}

/* Reads the numbers of an array into out[most]. Returns how many there are; 0: they are not valid. */
static uint32_t get_reals(json_t *list, float *out, size_t most)
{
    const size_t n = json_array_size(list);
    for (size_t i = 0; i < n && n <= most; i++) {
        if (!json_is_number(json_array_get(list, i)))
            return 0;
        out[i] = (float)json_number_value(json_array_get(list, i));
    }
    return n <= most ? (uint32_t)n : 0;
}

/* Returns 0 if the entry is not valid. */
static int get_interactions(json_t *m, struct interactions *in)
{
    json_t *list = json_object_get(m, "interactions");
    memset(in, 0, sizeof *in);
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *pair = json_array_get(list, i), *a = json_array_get(pair, 0), *b = json_array_get(pair, 1);
        if (json_array_size(pair) != 2 || !json_is_integer(a) || !json_is_integer(b) ||
            json_integer_value(a) < 0 || json_integer_value(a) > UINT16_MAX || json_integer_value(b) < 0 ||
            json_integer_value(b) > UINT16_MAX ||
            !interactions_add(in, (uint16_t)json_integer_value(a), (uint16_t)json_integer_value(b)))
            return 0;
    }
    return !list || in->n > 0;
}

/* Returns 0 if the entry is not valid. */
static int get_class_weight(json_t *m, struct class_weights *c)
{
    json_t *list = json_object_get(m, "class_weight");
    memset(c, 0, sizeof *c);
    if (!list)
        return 1;
    c->n = get_reals(list, c->weight, OBJECTIVE_CLASSES_MAX);
    for (uint32_t i = 0; i < c->n; i++)
        if (!isfinite(c->weight[i]) || c->weight[i] <= 0)
            return 0;
    return c->n > 0;
}

/* Returns 0 if the entry is not valid. */
static int get_calibration(json_t *m, struct calibration *c)
{
    json_t *object = json_object_get(m, "calibration"), *a, *b;
    char name[MODEL_NAME_MAX + 1];
    memset(c, 0, sizeof *c);
    if (!object)
        return 1;
    const int kind = get_name(object, "method", name) ? calibration_find(name) : -1;
    if (kind <= CALIBRATION_NONE)
        return 0;
    c->kind = (enum calibration_kind)kind;
    if (c->kind == CALIBRATION_PLATT) {
        a = json_object_get(object, "a");
        b = json_object_get(object, "b");
        c->a = (double)(float)json_number_value(a); /* calibration_fit rounds them to floats, too */
        c->b = (double)(float)json_number_value(b);
        return json_is_number(a) && json_is_number(b) && calibration_valid(c);
    }
    c->knots = get_reals(json_object_get(object, "margins"), c->from, CALIBRATION_BINS);
    return c->knots == get_reals(json_object_get(object, "calibrated"), c->to, CALIBRATION_BINS) &&
           calibration_valid(c);
}

/* Returns 0 if the entry is not valid. */
static int get_columns(json_t *m, struct columns **columns)
{
    json_t *list = json_object_get(m, "columns");
    if (!list) /* the model was not trained on a table */
        return 1;
    if (!json_is_array(list) || columns_new(columns) != PARAMO_OK)
        return 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *entry = json_array_get(list, i), *name = json_object_get(entry, "name");
        const char *word = json_string_value(json_object_get(entry, "role"));
        const enum column_role role = word ? column_role_find(word, strlen(word)) : COLUMN_ROLES;
        if (!json_is_string(name) || role == COLUMN_ROLES ||
            columns_add(*columns, role, json_string_value(name), json_string_length(name)) != PARAMO_OK)
            return 0;
    }
    return columns_of_role(*columns, COLUMN_LABEL) != NULL;
}

/* Reads the settings and optimizers of info->ops. Returns as manifest_info. */
static const char *get_settings(json_t *m, struct model_info *info, char entry[MANIFEST_ENTRY_MAX])
{
    const struct model_ops *ops = info->ops;
    json_t *optimizers = json_object_get(m, "optimizers");
    int has_dim = 0;
    uint64_t whole;
    for (size_t i = 0; i < ops->settings; i++) {
        const struct model_setting *s = &ops->setting[i];
        has_dim |= strcmp(s->manifest, dim_entry) == 0;
        if (!s->whole && !get_real(m, s->manifest, &info->setting[i]))
            return s->manifest;
        if (s->whole && (!manifest_uint(m, s->manifest, s->max, &whole) || whole < s->min))
            return s->manifest;
        if (s->whole)
            info->setting[i] = (double)whole;
    }
    if (!has_dim && !manifest_uint(m, dim_entry, 0, &whole))
        return dim_entry;
    for (size_t t = 0; t < ops->tables; t++)
        if (!get_optimizer(optimizers, ops->table[t].name, &info->optimizer[t])) {
            (void)snprintf(entry, MANIFEST_ENTRY_MAX, "optimizers.%s", ops->table[t].name);
            return entry;
        }
    return NULL;
}

const char *manifest_info(json_t *m, struct model_info *info, char entry[MANIFEST_ENTRY_MAX])
{
    char name[MODEL_NAME_MAX + 1];
    uint64_t hash_bits, factor_after = 0;
    int scale;
    const char *seed = json_string_value(json_object_get(m, "seed"));
    *info = (struct model_info){0};
    if (!get_name(m, "model", name) || !(info->ops = model_find(name)))
        return "model";
    if (!manifest_uint(m, "hash_bits", 63, &hash_bits))
        return "hash_bits";
    if (!get_name(m, "data_format", info->data_format))
        return "data_format";
    if (!manifest_uint(m, "batch", UINT32_MAX, &info->batch))
        return "batch";
    if (!manifest_uint(m, "epochs", INT64_MAX, &info->epochs))
        return "epochs";
    if (!manifest_uint(m, "rows", INT64_MAX, &info->rows))
        return "rows";
    if (!seed)
        return "seed";
    if (json_object_get(m, "scale") != NULL) { /* manifests of older programs have none */
        if (!get_name(m, "scale", name) || (scale = scale_find(name)) < 0)
            return "scale";
        info->scale = (enum scale_kind)scale;
    }
    if (json_object_get(m, "factor_after") && !manifest_uint(m, "factor_after", UINT16_MAX, &factor_after))
        return "factor_after";
    info->factor_after = (uint32_t)factor_after;
    if (!get_objective(m, &info->objective))
        return "objective";
    if (!get_interactions(m, &info->interactions))
        return "interactions";
    if (!get_class_weight(m, &info->class_weight))
        return "class_weight";
    if (!get_calibration(m, &info->calibration))
        return "calibration";
    if (!get_columns(m, &info->columns))
        return "columns";
    info->hash_bits = (uint32_t)hash_bits;
    info->seed = strtoull(seed, NULL, 10);
    return get_settings(m, info, entry);
}
