/* Reads the text form (form_text.c). */
#include "learn/export/forms.h"
#include "learn/io/input.h"
#include "learn/store/manifest.h"
#include "learn/store/table_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES (64u << 20) /* arbitrary */

/* A table to which rows are added. */
struct grown {
    uint64_t *key;
    float *value;
    size_t n, cap;
    uint32_t dim;
};

struct importing {
    const char *path;
    uint64_t line;
    struct model_info info;
    int has_info, scaled;
    size_t tables;
    struct grown table[MODEL_MAX_TABLES + 1]; /* the last is that of scales */
};

static paramo_err no_memory(void)
{
    return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a model");
}

static paramo_err wrong(const struct importing *m, const char *what)
{
    return paramo_error_set(PARAMO_E_FORMAT, "%s:%" PRIu64 ": %s", m->path, m->line, what);
}

/* ---- lines ---- */

/* Makes room for one more row, which the caller fills in. */
static paramo_err grow(struct grown *t)
{
    if (t->n < t->cap)
        return PARAMO_OK;
    const size_t cap = 2 * t->cap + 1024;
    uint64_t *key = realloc(t->key, cap * sizeof *key);
    t->key = key ? key : t->key;
    float *value = key ? realloc(t->value, cap * t->dim * sizeof *value) : NULL;
    t->value = value ? value : t->value;
    t->cap = value ? cap : t->cap;
    return value ? PARAMO_OK : no_memory();
}

static paramo_err take_info(struct importing *m, const struct model_info *info)
{
    m->info = *info;
    m->has_info = 1;
    m->tables = info->ops->tables;
    for (size_t t = 0; t < m->tables; t++)
        m->table[t].dim = model_row_values(info, t);
    m->table[MODEL_MAX_TABLES].dim = scale_dim(info->scale);
    return PARAMO_OK;
}

/* "# {...}". */
static paramo_err take_settings(struct importing *m, const char *text)
{
    json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const char *format = json_string_value(json_object_get(j, "format"));
    const json_int_t version = json_integer_value(json_object_get(j, "version"));
    char entry[MANIFEST_ENTRY_MAX], what[MANIFEST_ENTRY_MAX + 64];
    struct model_info info = {0};
    if (!format || strcmp(format, MODEL_FORMAT) != 0 || version < 1 || version > MODEL_VERSION) {
        json_decref(j);
        return wrong(m, "not the settings of a model of this program (paramo export --settings)");
    }
    const char *missing = manifest_info(j, &info, entry);
    (void)snprintf(what, sizeof what, "the settings' entry '%s' is missing or not valid",
                   missing ? missing : "");
    json_decref(j);
    if (missing) {
        columns_release(info.columns);
        return wrong(m, what);
    }
    return take_info(m, &info);
}

/* Reads the next number between tabs, and moves *at after it. */
static paramo_err take_value(const struct importing *m, char **at, float *value)
{
    char *end;
    if (**at != '\t')
        return wrong(m, "too few values for a row of this model");
    errno = 0;
    *value = strtof(*at + 1, &end);
    if (end == *at + 1 || (*end != '\t' && *end != '\0') || !isfinite(*value))
        return wrong(m, "expected a finite number after the tab");
    *at = end;
    return PARAMO_OK;
}

static paramo_err take_row(const struct importing *m, struct grown *t, uint64_t key, char **at)
{
    paramo_err err = grow(t);
    if (err == PARAMO_OK && t->n > 0 && t->key[t->n - 1] >= key)
        err = wrong(m, "the keys are not in ascending order");
    for (uint32_t k = 0; err == PARAMO_OK && k < t->dim; k++)
        err = take_value(m, at, &t->value[t->n * t->dim + k]);
    if (err == PARAMO_OK)
        t->key[t->n++] = key;
    return err;
}

/* "key<TAB>...": the values of each table of features, or a dash for a table without such a row. */
static paramo_err take_feature(struct importing *m, uint64_t key, char *at)
{
    paramo_err err = PARAMO_OK;
    for (size_t t = 0; err == PARAMO_OK && t < m->tables; t++) {
        if (model_fixed_rows(&m->info, t) > 0)
            continue;
        if (strncmp(at, "\t-", 2) == 0 && (at[2] == '\t' || at[2] == '\0'))
            at += 2;
        else
            err = take_row(m, &m->table[t], key, &at);
    }
    return err == PARAMO_OK && *at != '\0' ? wrong(m, "too many values for a row of this model") : err;
}

/* "r:3<TAB>...". */
static paramo_err take_fixed(struct importing *m, const char *name, uint64_t key, char *at)
{
    struct grown *to = NULL;
    for (size_t t = 0; t < m->tables; t++)
        if (model_fixed_rows(&m->info, t) > 0 && strcmp(m->info.ops->table[t].name, name) == 0) {
            if (key >= model_fixed_rows(&m->info, t))
                return wrong(m, "the model has no row of that number in this table");
            to = &m->table[t];
        }
    if (!to && strcmp(name, SCALE_TABLE) == 0 && m->info.scale != SCALE_NONE) {
        to = &m->table[MODEL_MAX_TABLES];
        m->scaled = 1;
    }
    if (!to)
        return wrong(m, "the model has no table of that name");
    paramo_err err = take_row(m, to, key, &at);
    return err == PARAMO_OK && *at != '\0' ? wrong(m, "too many values for a row of this table") : err;
}

static paramo_err take_line(struct importing *m, char *line)
{
    char *colon = strchr(line, ':'), *tab = strchr(line, '\t'), *end;
    m->line++;
    if (m->line == 1 && strncmp(line, "# ", 2) == 0 && !m->has_info)
        return take_settings(m, line + 2);
    if (!m->has_info)
        return wrong(m, "the text has no settings: export it with --settings, or give --model");
    if (*line == '#' || *line == '\0')
        return PARAMO_OK;
    const int named = colon && (!tab || colon < tab);
    char *number = named ? colon + 1 : line;
    errno = 0;
    const uint64_t key = strtoull(number, &end, 10);
    if (*number < '0' || *number > '9' || errno != 0 || *end != '\t')
        return wrong(m, "expected a key and a tab");
    if (!named)
        return take_feature(m, key, end);
    *colon = '\0';
    return take_fixed(m, line, key, end);
}

/* Calls take_line with each line of the input. */
static paramo_err read_lines(struct importing *m, struct input *in)
{
    size_t cap = 1 << 16, len = 0, got = 1;
    char *text = malloc(cap + 1);
    paramo_err err = text ? PARAMO_OK : no_memory();
    while (err == PARAMO_OK && got > 0) {
        if (len == cap) {
            char *more = cap < LINE_MAX_BYTES ? realloc(text, 2 * cap + 1) : NULL;
            if (!more) {
                m->line++;
                err = cap < LINE_MAX_BYTES ? no_memory() : wrong(m, "the line is too long");
                break;
            }
            text = more;
            cap *= 2;
        }
        err = input_read(in, text + len, cap - len, &got);
        len += err == PARAMO_OK ? got : 0;
        size_t from = 0;
        for (char *newline; err == PARAMO_OK && (newline = memchr(text + from, '\n', len - from));) {
            *newline = '\0';
            err = take_line(m, text + from);
            from = (size_t)(newline - text) + 1;
        }
        if (err == PARAMO_OK && got == 0 && len > from) { /* a last line without its newline */
            text[len] = '\0';
            err = take_line(m, text + from);
        }
        memmove(text, text + from, len - from);
        len -= from;
    }
    free(text);
    return err;
}

/* ---- the model ---- */

static paramo_err write_table(void *arg, size_t table, const char *path)
{
    const struct importing *m = arg;
    const struct grown *t = &m->table[table < m->tables ? table : MODEL_MAX_TABLES];
    return table_file_write(path, t->key, t->value, t->n, t->dim);
}

static paramo_err check_rows(const struct importing *m)
{
    if (!m->has_info || m->table[0].n == 0)
        return paramo_error_set(PARAMO_E_FORMAT, "%s: has no rows of a model", m->path);
    for (size_t t = 0; t < m->tables; t++) {
        const size_t fixed = model_fixed_rows(&m->info, t);
        if (fixed > 0 && m->table[t].n != fixed)
            return paramo_error_set(PARAMO_E_FORMAT, "%s: has %zu rows of table %s, and the model has %zu",
                                    m->path, m->table[t].n, m->info.ops->table[t].name, fixed);
    }
    return PARAMO_OK;
}

static paramo_err save(struct importing *m, const char *dir)
{
    const struct modelio_writer writer = {.table = write_table, .arg = m, .scaled = m->scaled};
    paramo_err err = check_rows(m);
    if (err == PARAMO_OK)
        err = modelio_prepare(dir);
    return err == PARAMO_OK ? modelio_save(dir, &m->info, &writer) : err;
}

paramo_err import_text(const char *path, const struct model_info *info, const char *dir)
{
    struct importing m = {.path = path};
    struct input *in = NULL;
    paramo_err err = input_open(path, -1, &in);
    if (err == PARAMO_OK && info)
        err = take_info(&m, info);
    if (err == PARAMO_OK)
        err = read_lines(&m, in);
    if (err == PARAMO_OK)
        err = save(&m, dir);
    input_close(in);
    for (size_t t = 0; t <= MODEL_MAX_TABLES; t++) {
        free(m.table[t].key);
        free(m.table[t].value);
    }
    if (!info)
        columns_release(m.info.columns);
    return err;
}
