/* Tables as files: iterate, save, load. A file is safetensors (paramo/tensors.h): "keys" U64 [n] ascending,
 * "values" [n, dim], and "state" [n, s] if asked for. Tables of variable lengths: "lens" U32 [n], "values"
 * [sum]. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env/file.h"
#include "node/api_worker.h"
#include "node/node.h"
#include "paramo/tensors.h"
#include "table/table_options.h"
#include "worker/scan.h"

enum {
    HEADER_BYTES = 1024, /* before the tensors, filled with spaces */
    LOAD_ROWS_BYTES = 4 << 20
};

struct iteration {
    paramo_rows_fn fn;
    void *arg;
};

static int iterate_rows(void *arg, const struct scan_rows *rows)
{
    const struct iteration *it = arg;
    paramo_rows given = {.size = sizeof given,
                         .keys = rows->keys,
                         .n = rows->n,
                         .vals = rows->vals,
                         .lens = rows->lens,
                         .row_values = rows->row_values};
    return it->fn(it->arg, &given);
}

static paramo_err table_usable(const paramo_worker *worker, const paramo_table *table)
{
    paramo_err err = worker_check(worker);
    if (!err && (!table || table->worker != worker))
        err = err_set(PARAMO_E_NO_TABLE, "table is NULL, or was opened by another worker");
    if (!err && !atomic_load(&table->users))
        err = err_set(PARAMO_E_CLOSED, "table %s is closed", table->spec.name);
    return err;
}

paramo_err paramo_table_iterate(paramo_worker *worker, paramo_table *table, int with_state, paramo_rows_fn fn,
                                void *arg)
{
    paramo_err err = table_usable(worker, table);
    if (!err && !fn)
        err = err_set(PARAMO_E_INVALID, "fn is NULL");
    if (err)
        return err;
    struct iteration it = {fn, arg};
    return scan_run(worker->client, &table->spec, with_state != 0, 0, iterate_rows, &it);
}

static const char *dtype_name(paramo_dtype dtype)
{
    static const char *const names[] = {[PARAMO_F32] = "F32",
                                        [PARAMO_F64] = "F64",
                                        [PARAMO_I32] = "I32",
                                        [PARAMO_I64] = "I64",
                                        [PARAMO_U8] = "U8"};
    return names[dtype];
}

/* ---- save --------------------------------------------------------------------------------------------- */

/* The header says how many rows there are, so each tensor is first gathered in a file of its own. */
struct saving {
    const paramo_table *table;
    struct file_out *out;
    struct file_spool *keys, *values, *state, *lens;
    uint32_t dim, state_values;
    size_t value_bytes;
    uint64_t rows, values_count;
    paramo_err err;
    char text[ERR_TEXT_MAX];
};

static paramo_err save_batch(struct saving *s, const struct scan_rows *rows)
{
    paramo_err err = file_spool_write(s->keys, rows->keys, rows->n * sizeof *rows->keys);
    s->rows += rows->n;
    if (rows->lens || !s->state) {
        s->values_count += rows->vals_len;
        if (!err)
            err = file_spool_write(s->values, rows->vals, rows->vals_len * s->value_bytes);
        if (!err && rows->lens)
            err = file_spool_write(s->lens, rows->lens, rows->n * sizeof *rows->lens);
        return err;
    }
    const char *row = rows->vals;
    for (size_t i = 0; i < rows->n && !err; i++, row += rows->row_values * s->value_bytes) {
        err = file_spool_write(s->values, row, s->dim * s->value_bytes);
        if (!err)
            err = file_spool_write(s->state, row + s->dim * s->value_bytes, s->state_values * s->value_bytes);
    }
    s->values_count += rows->n * s->dim;
    return err;
}

static int save_rows(void *arg, const struct scan_rows *rows)
{
    struct saving *s = arg;
    s->err = save_batch(s, rows);
    if (s->err)
        err_text_copy(s->text);
    return s->err != PARAMO_OK;
}

/* The header's JSON, padded to HEADER_BYTES. Tensors are in descending order of element size, so that each is
 * aligned. */
static paramo_err save_header(struct saving *s)
{
    char header[HEADER_BYTES];
    memset(header, ' ', sizeof header);
    const char *dtype = dtype_name(s->table->options.dtype);
    uint64_t keys_end = s->rows * 8;
    uint64_t values_bytes = s->values_count * s->value_bytes;
    char json[HEADER_BYTES - 8];
    int n;
    if (s->lens) {
        uint64_t lens_bytes = s->rows * 4;
        uint64_t values_at = keys_end + (s->value_bytes > 4 ? 0 : lens_bytes);
        uint64_t lens_at = keys_end + (s->value_bytes > 4 ? values_bytes : 0);
        n = snprintf(json, sizeof json,
                     "{\"keys\":{\"dtype\":\"U64\",\"shape\":[%" PRIu64 "],\"data_offsets\":[0,%" PRIu64 "]},"
                     "\"lens\":{\"dtype\":\"U32\",\"shape\":[%" PRIu64 "],\"data_offsets\":[%" PRIu64
                     ",%" PRIu64 "]},"
                     "\"values\":{\"dtype\":\"%s\",\"shape\":[%" PRIu64 "],\"data_offsets\":[%" PRIu64
                     ",%" PRIu64 "]}}",
                     s->rows, keys_end, s->rows, lens_at, lens_at + lens_bytes, dtype, s->values_count,
                     values_at, values_at + values_bytes);
    } else {
        uint64_t values_end = keys_end + values_bytes;
        n = snprintf(json, sizeof json,
                     "{\"keys\":{\"dtype\":\"U64\",\"shape\":[%" PRIu64 "],\"data_offsets\":[0,%" PRIu64 "]},"
                     "\"values\":{\"dtype\":\"%s\",\"shape\":[%" PRIu64 ",%u],\"data_offsets\":[%" PRIu64
                     ",%" PRIu64 "]}",
                     s->rows, keys_end, dtype, s->rows, s->dim, keys_end, values_end);
        if (s->state)
            n += snprintf(json + n, sizeof json - (size_t)n,
                          ",\"state\":{\"dtype\":\"%s\",\"shape\":[%" PRIu64 ",%u],\"data_offsets\":[%" PRIu64
                          ",%" PRIu64 "]}",
                          dtype, s->rows, s->state_values, values_end,
                          values_end + s->rows * s->state_values * s->value_bytes);
        n += snprintf(json + n, sizeof json - (size_t)n, "}");
    }
    uint64_t len = HEADER_BYTES - 8;
    for (unsigned i = 0; i < 8; i++)
        header[i] = (char)(len >> (8 * i));
    memcpy(header + 8, json, (size_t)n);
    return file_out_write(s->out, header, sizeof header);
}

static paramo_err save_all(struct saving *s, paramo_worker *worker, const char *path, bool with_state)
{
    paramo_err err = file_spool_open(path, &s->keys);
    if (!err)
        err = file_spool_open(path, &s->values);
    if (!err && s->table->options.kind == PARAMO_TABLE_VAR)
        err = file_spool_open(path, &s->lens);
    else if (!err && with_state && s->state_values)
        err = file_spool_open(path, &s->state);
    if (!err)
        err = scan_run(worker->client, &s->table->spec, s->state != NULL, 0, save_rows, s);
    if (s->err)
        err = err_set(s->err, "%s", s->text);
    if (!err)
        err = file_out_open(path, &s->out);
    if (!err)
        err = save_header(s);
    if (!err)
        err = file_out_append_spool(s->out, s->keys);
    if (!err && s->lens && s->value_bytes <= 4)
        err = file_out_append_spool(s->out, s->lens);
    if (!err)
        err = file_out_append_spool(s->out, s->values);
    if (!err && s->lens && s->value_bytes > 4)
        err = file_out_append_spool(s->out, s->lens);
    if (!err && s->state)
        err = file_out_append_spool(s->out, s->state);
    if (!err) {
        err = file_out_commit(s->out);
        s->out = NULL;
    }
    return err;
}

paramo_err paramo_table_save(paramo_worker *worker, paramo_table *table, const char *path, int with_state)
{
    paramo_err err = table_usable(worker, table);
    if (!err && !path)
        err = err_set(PARAMO_E_INVALID, "path is NULL");
    if (err)
        return err;
    struct saving s = {.table = table,
                       .dim = table->spec.row_values,
                       .state_values = table->spec.state_values,
                       .value_bytes = table->spec.value_bytes};
    err = save_all(&s, worker, path, with_state != 0);
    char text[ERR_TEXT_MAX];
    err_text_copy(text);
    file_spool_close(s.keys);
    file_spool_close(s.values);
    file_spool_close(s.state);
    file_spool_close(s.lens);
    file_out_abort(s.out);
    return err ? err_set(err, "%s", text) : PARAMO_OK;
}

/* ---- load --------------------------------------------------------------------------------------------- */

struct loading {
    const char *path;
    const uint64_t *keys;
    uint64_t n;
    paramo_tensor values, state, lens;
    bool with_state, with_lens;
};

static paramo_err load_sizes(const struct loading *l, const paramo_table *table)
{
    if (l->with_lens) {
        const uint32_t *lens = l->lens.data;
        uint64_t sum = 0;
        for (uint64_t i = 0; i < l->n; i++)
            sum += lens[i];
        if (l->lens.shape[0] != l->n || sum != l->values.shape[0])
            return err_set(PARAMO_E_CORRUPT, "%s: keys, lens and values do not agree", l->path);
        return PARAMO_OK;
    }
    if (l->values.shape[0] != l->n || l->values.shape[1] != table->spec.row_values)
        return err_set(
            PARAMO_E_FORMAT, "%s: values are %" PRIu64 " x %" PRIu64 ", table %s takes %" PRIu64 " x %u",
            l->path, l->values.shape[0], l->values.shape[1], table->spec.name, l->n, table->spec.row_values);
    if (l->with_state && (l->state.shape[0] != l->n || l->state.shape[1] != table->spec.state_values))
        return err_set(
            PARAMO_E_FORMAT, "%s: state is %" PRIu64 " x %" PRIu64 ", table %s takes %" PRIu64 " x %u",
            l->path, l->state.shape[0], l->state.shape[1], table->spec.name, l->n, table->spec.state_values);
    return PARAMO_OK;
}

/* Everything is checked before the first row is stored. */
static paramo_err load_check(struct loading *l, const paramo_tensors *file, const paramo_table *table)
{
    const char *dtype = dtype_name(table->options.dtype);
    paramo_tensor keys;
    paramo_err err = paramo_tensors_get(file, "keys", "U64", 1, &keys);
    l->with_lens = table->options.kind == PARAMO_TABLE_VAR;
    if (!err)
        err = paramo_tensors_get(file, "values", dtype, l->with_lens ? 1 : 2, &l->values);
    if (!err && l->with_lens)
        err = paramo_tensors_get(file, "lens", "U32", 1, &l->lens);
    l->with_state = !err && !l->with_lens && table->spec.state_values && paramo_tensors_has(file, "state");
    if (!err && l->with_state)
        err = paramo_tensors_get(file, "state", dtype, 2, &l->state);
    if (err)
        return err == PARAMO_E_CORRUPT ? PARAMO_E_FORMAT : err;
    l->keys = keys.data;
    l->n = keys.shape[0];
    err = load_sizes(l, table);
    if (err)
        return err;
    for (uint64_t i = 1; i < l->n; i++)
        if (l->keys[i] <= l->keys[i - 1])
            return err_set(PARAMO_E_CORRUPT, "%s: keys are not ascending at row %" PRIu64, l->path, i);
    if (l->n && table->options.kind == PARAMO_TABLE_DENSE && l->keys[l->n - 1] >= table->options.rows)
        return err_set(PARAMO_E_FORMAT, "%s: key %" PRIu64 " is beyond the table's %" PRIu64 " rows", l->path,
                       l->keys[l->n - 1], table->options.rows);
    return PARAMO_OK;
}

static paramo_err load_lens(const struct loading *l, paramo_worker *worker, paramo_table *table)
{
    const uint32_t *lens = l->lens.data;
    const char *vals = l->values.data;
    for (uint64_t first = 0; first < l->n;) {
        uint64_t n = 0, sum = 0;
        while (first + n < l->n &&
               (n == 0 || (sum + lens[first + n]) * table->spec.value_bytes <= LOAD_ROWS_BYTES))
            sum += lens[first + n++];
        paramo_rows rows = {
            .size = sizeof rows, .keys = l->keys + first, .n = (size_t)n, .vals = vals, .lens = lens + first};
        paramo_err err = paramo_table_put(worker, table, 0, &rows);
        if (err)
            return err;
        first += n;
        vals += sum * table->spec.value_bytes;
    }
    return PARAMO_OK;
}

static paramo_err load_rows(const struct loading *l, paramo_worker *worker, paramo_table *table)
{
    size_t dim_bytes = table->spec.row_values * (size_t)table->spec.value_bytes;
    size_t state_bytes = l->with_state ? table->spec.state_values * (size_t)table->spec.value_bytes : 0;
    size_t row_bytes = dim_bytes + state_bytes;
    size_t most = LOAD_ROWS_BYTES / row_bytes ? LOAD_ROWS_BYTES / row_bytes : 1;
    char *joined = l->with_state ? malloc(most * row_bytes) : NULL;
    if (l->with_state && !joined)
        return err_memory(most * row_bytes);
    paramo_err err = PARAMO_OK;
    for (uint64_t first = 0; first < l->n && !err;) {
        size_t n = l->n - first < most ? (size_t)(l->n - first) : most;
        const char *vals = (const char *)l->values.data + first * dim_bytes;
        const char *state = (const char *)l->state.data + first * state_bytes;
        for (size_t i = 0; i < n && l->with_state; i++) {
            memcpy(joined + i * row_bytes, vals + i * dim_bytes, dim_bytes);
            memcpy(joined + i * row_bytes + dim_bytes, state + i * state_bytes, state_bytes);
        }
        paramo_rows rows = {.size = sizeof rows,
                            .keys = l->keys + first,
                            .n = n,
                            .vals = l->with_state ? joined : vals,
                            .row_values =
                                table->spec.row_values + (l->with_state ? table->spec.state_values : 0)};
        err = paramo_table_put(worker, table, l->with_state, &rows);
        first += n;
    }
    free(joined);
    return err;
}

paramo_err paramo_table_load(paramo_worker *worker, paramo_table *table, const char *path)
{
    paramo_err err = table_usable(worker, table);
    if (!err && (!path || table->options.kind == PARAMO_TABLE_USER))
        err = err_set(PARAMO_E_INVALID, "path is NULL, or the table has no rows of its own");
    if (err)
        return err;
    paramo_tensors *file;
    err = paramo_tensors_open(path, &file);
    if (err)
        return err;
    struct loading l = {.path = path};
    err = load_check(&l, file, table);
    if (!err)
        err = l.with_lens ? load_lens(&l, worker, table) : load_rows(&l, worker, table);
    paramo_tensors_close(file);
    return err;
}
