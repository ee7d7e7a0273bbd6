#include "learn/store/shared_model.h"
#include "learn/model/scale.h"
#include "learn/store/manifest.h"
#include "learn/store/modelio.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t the_key = 0;

paramo_err shared_model_put(paramo_worker *worker, const struct model_info *info)
{
    paramo_table_options o;
    paramo_table *table;
    paramo_table_options_init(&o);
    o.kind = PARAMO_TABLE_VAR;
    o.dtype = PARAMO_U8;
    o.optimizer = PARAMO_OPT_ASSIGN;
    json_t *manifest = manifest_of(info, 0);
    char *text = manifest ? json_dumps(manifest, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(manifest);
    if (!text)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the model's settings");
    uint32_t len = (uint32_t)strlen(text);
    uint64_t ts;
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = &the_key;
    kv.n = 1;
    kv.vals = text;
    kv.vals_len = len;
    kv.lens = &len;
    paramo_err err = paramo_table_open(worker, SHARED_MODEL_TABLE, &o, &table);
    if (err == PARAMO_OK) {
        err = paramo_push(worker, table, &kv, NULL, &ts);
        if (err == PARAMO_OK)
            err = paramo_wait(worker, ts, 0);
        paramo_table_close(table);
    }
    free(text);
    return err;
}

/* The caller frees it. */
static paramo_err get_text(paramo_worker *reader, paramo_table *table, char **text, uint32_t *len)
{
    uint64_t ts;
    paramo_kv kv;
    paramo_kv_init(&kv);
    *text = malloc(MANIFEST_MAX);
    if (!*text)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the model's settings");
    kv.keys = &the_key;
    kv.n = 1;
    kv.vals = *text;
    kv.vals_len = MANIFEST_MAX;
    kv.lens = len;
    paramo_err err = paramo_pull(reader, table, &kv, NULL, &ts);
    if (err == PARAMO_OK)
        err = paramo_wait(reader, ts, 0);
    if (err == PARAMO_OK && *len == 0)
        err = paramo_error_set(PARAMO_E_NOT_FOUND, "the job has not begun to train");
    return err;
}

static paramo_err get_info(paramo_worker *reader, struct model_info *info)
{
    paramo_table *table;
    char *text = NULL, entry[MANIFEST_ENTRY_MAX];
    uint32_t len = 0;
    json_t *manifest = NULL;
    paramo_err err = paramo_table_open(reader, SHARED_MODEL_TABLE, NULL, &table);
    if (err != PARAMO_OK)
        return err;
    err = get_text(reader, table, &text, &len);
    if (err == PARAMO_OK)
        err = manifest_parse(text, len, "the job's table " SHARED_MODEL_TABLE, &manifest);
    const char *wrong = err == PARAMO_OK ? manifest_info(manifest, info, entry) : NULL;
    if (wrong) {
        columns_release(info->columns);
        err = paramo_error_set(PARAMO_E_CORRUPT,
                               "the job's table " SHARED_MODEL_TABLE ": '%s' is missing or not valid", wrong);
    }
    json_decref(manifest);
    free(text);
    paramo_table_close(table);
    return err;
}

struct copy {
    paramo_worker *reader;
    paramo_table *table[MODEL_MAX_TABLES + 1]; /* the last one: of scales, or NULL */
};

static paramo_err write_table(void *arg, size_t table, const char *path)
{
    const struct copy *c = arg;
    return paramo_table_save(c->reader, c->table[table], path, 0);
}

paramo_err shared_model_save(paramo_worker *reader, const char *dir)
{
    struct model_info info;
    struct copy copy = {.reader = reader};
    size_t opened = 0;
    paramo_err err = get_info(reader, &info);
    if (err != PARAMO_OK)
        return err;
    while (err == PARAMO_OK && opened < info.ops->tables) {
        err = paramo_table_open(reader, info.ops->table[opened].name, NULL, &copy.table[opened]);
        opened += err == PARAMO_OK;
    }
    paramo_table **scale = &copy.table[info.ops->tables];
    if (err == PARAMO_OK && info.scale != SCALE_NONE) {
        err = paramo_table_open(reader, SCALE_TABLE, NULL, scale);
        if (err == PARAMO_E_NO_TABLE) /* so far nothing had to be scaled */
            err = PARAMO_OK;
    }
    const struct modelio_writer writer = {.table = write_table, .arg = &copy, .scaled = *scale != NULL};
    if (err == PARAMO_OK)
        err = modelio_save(dir, &info, &writer);
    for (size_t i = 0; i < opened; i++)
        paramo_table_close(copy.table[i]);
    paramo_table_close(*scale);
    columns_release(info.columns);
    return err;
}
