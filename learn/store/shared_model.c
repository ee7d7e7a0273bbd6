#include "learn/store/shared_model.h"
#include "learn/model/scale.h"
#include "learn/store/manifest.h"
#include "learn/store/modelio.h"

#include <stdlib.h>
#include <string.h>

enum { TRIES = 3 }; /* arbitrary: a snapshot may be replaced while it is read */

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

paramo_err shared_model_snapshot(paramo_worker *worker, const struct model_info *info, int scaled)
{
    const char *names[MODEL_MAX_TABLES + 2] = {SHARED_MODEL_TABLE};
    size_t n = 1;
    for (size_t i = 0; i < info->ops->tables; i++)
        names[n++] = info->ops->table[i].name;
    if (scaled)
        names[n++] = SCALE_TABLE;
    return paramo_snapshot_take(worker, SHARED_MODEL_SNAPSHOT, names, n, NULL, NULL);
}

/* ---- a reader's copy ---- */

struct copy {
    paramo_worker *reader;
    paramo_snapshot *snapshot;                 /* NULL: the copy is of the tables themselves */
    paramo_table *table[MODEL_MAX_TABLES + 1]; /* the last one: of scales, or NULL */
};

static paramo_err open_table(const struct copy *c, const char *name, paramo_table **table)
{
    return c->snapshot ? paramo_snapshot_table(c->snapshot, name, table)
                       : paramo_table_open(c->reader, name, NULL, table);
}

/* The tables of a snapshot belong to it. */
static void close_table(const struct copy *c, paramo_table *table)
{
    if (!c->snapshot)
        paramo_table_close(table);
}

/* Pulls the text of the manifest. The caller frees it, also after an error. */
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

static paramo_err get_info(const struct copy *c, struct model_info *info)
{
    paramo_table *table;
    char *text = NULL, entry[MANIFEST_ENTRY_MAX];
    uint32_t len = 0;
    json_t *manifest = NULL;
    paramo_err err = open_table(c, SHARED_MODEL_TABLE, &table);
    if (err != PARAMO_OK)
        return err;
    err = get_text(c->reader, table, &text, &len);
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
    close_table(c, table);
    return err;
}

static paramo_err write_table(void *arg, size_t table, const char *path)
{
    const struct copy *c = arg;
    return paramo_table_save(c->reader, c->table[table], path, 0);
}

static paramo_err is_whole(void *arg)
{
    const struct copy *c = arg;
    return c->snapshot ? paramo_snapshot_check(c->snapshot) : PARAMO_OK;
}

static paramo_err save(struct copy *copy, const char *dir)
{
    struct model_info info;
    size_t opened = 0;
    paramo_err err = get_info(copy, &info);
    if (err != PARAMO_OK)
        return err;
    while (err == PARAMO_OK && opened < info.ops->tables) {
        err = open_table(copy, info.ops->table[opened].name, &copy->table[opened]);
        opened += err == PARAMO_OK;
    }
    paramo_table **scale = &copy->table[info.ops->tables];
    if (err == PARAMO_OK && info.scale != SCALE_NONE) {
        err = open_table(copy, SCALE_TABLE, scale);
        if (err == PARAMO_E_NO_TABLE) /* no value had to be scaled so far */
            err = PARAMO_OK;
    }
    const struct modelio_writer writer = {
        .table = write_table, .may_commit = is_whole, .arg = copy, .scaled = *scale != NULL};
    if (err == PARAMO_OK)
        err = modelio_save(dir, &info, &writer);
    for (size_t i = 0; i < opened; i++)
        close_table(copy, copy->table[i]);
    if (*scale)
        close_table(copy, *scale);
    columns_release(info.columns);
    return err;
}

paramo_err shared_model_save(paramo_worker *reader, const char *dir)
{
    paramo_err err = PARAMO_E_NOT_FOUND;
    for (unsigned tries = 0; tries < TRIES && err == PARAMO_E_NOT_FOUND; tries++) {
        struct copy copy = {.reader = reader};
        err = paramo_snapshot_open(reader, SHARED_MODEL_SNAPSHOT, &copy.snapshot);
        if (err == PARAMO_E_NOT_FOUND)
            return save(&copy, dir); /* the job takes no snapshots, or has taken none yet */
        if (err == PARAMO_OK)
            err = save(&copy, dir); /* NOT_FOUND: it was replaced while it was read */
        paramo_snapshot_close(copy.snapshot);
    }
    return err;
}
