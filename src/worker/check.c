#include "worker/check.h"

#include <inttypes.h>

#include "base/transform.h"
#include "table/keyset.h"
#include "wire/data.h"
#include "worker/check_other.h"
#include "worker/check_page.h"
#include "worker/reduction_request.h"

paramo_err check_keys(const uint64_t *keys, size_t n)
{
    size_t i = data_keys_ascend(keys, n);
    if (i >= n)
        return PARAMO_OK;
    if (keys[i - 1] == keys[i])
        return err_set(PARAMO_E_KEYS_REPEATED, "key %" PRIu64 " is at positions %zu and %zu", keys[i], i - 1,
                       i);
    return err_set(PARAMO_E_KEYS_UNSORTED, "key %" PRIu64 " at position %zu follows the greater key %" PRIu64,
                   keys[i], i, keys[i - 1]);
}

void check_sum(const uint32_t *lens, size_t n, uint64_t *sum)
{
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += lens[i];
    *sum = total;
}

static paramo_err check_places(const paramo_kv *kv)
{
    const struct keyset_part part = {.set = kv->keyset, .places = kv->places, .n = kv->n};
    return keyset_part_fits(&part, kv->keys)
               ? PARAMO_OK
               : err_set(PARAMO_E_INVALID, "a key is not that of its place in the keyset");
}

static paramo_err check_fixed(const struct client_call *call, const char *verb, size_t row_values)
{
    const struct client_table *t = call->table;
    const paramo_kv *kv = call->kv;
    if (kv->lens)
        return err_set(PARAMO_E_SIZE_MISMATCH, "%s: lens given, but each key of table %s has %zu values",
                       verb, t->name, row_values);
    if (kv->vals_len / row_values != kv->n || kv->vals_len % row_values)
        return err_set(PARAMO_E_SIZE_MISMATCH,
                       "%s: %zu keys of table %s have %zu values each, not %zu in all", verb, kv->n, t->name,
                       row_values, kv->vals_len);
    return PARAMO_OK;
}

/* The table has these columns, and its optimizer can change them alone. */
static paramo_err check_columns(const struct client_call *call, const char *verb)
{
    const struct client_table *t = call->table;
    uint32_t first = call->options->column, count = call->options->columns;
    if (!t->row_values)
        return err_set(PARAMO_E_UNSUPPORTED, "%s: rows of table %s have no fixed length, and so no columns",
                       verb, t->name);
    if (first >= t->row_values || count > t->row_values - first)
        return err_set(PARAMO_E_INVALID,
                       "%s: columns %" PRIu32 " to %" PRIu64 " are not in table %s, whose rows have %" PRIu32
                       " values",
                       verb, first, (uint64_t)first + count - 1, t->name, t->row_values);
    if (call->kind != REQUEST_PULL && call->kind != REQUEST_PAGE && !t->splittable)
        return err_set(PARAMO_E_UNSUPPORTED,
                       "%s: %s of table %s change a row as a whole: push all of its columns", verb,
                       t->options.aggregate ? "pushes" : "the optimizer's steps", t->name);
    return PARAMO_OK;
}

static paramo_err check_lens(const struct client_call *call, const char *verb, bool sends)
{
    const struct client_table *t = call->table;
    const paramo_kv *kv = call->kv;
    if (!kv->lens) {
        if (t->options.kind == PARAMO_TABLE_VAR)
            return err_set(PARAMO_E_SIZE_MISMATCH,
                           "%s: rows of table %s have lengths of their own: lens are needed", verb, t->name);
        if (kv->n && kv->vals_len % kv->n)
            return err_set(PARAMO_E_SIZE_MISMATCH,
                           "%s: %zu values cannot be shared by %zu keys (no lens are given)", verb,
                           kv->vals_len, kv->n);
        return PARAMO_OK;
    }
    uint64_t sum;
    if (!sends)
        return PARAMO_OK; /* a pull's vals_len is capacity */
    check_sum(kv->lens, kv->n, &sum);
    if (sum != kv->vals_len && !(call->kind == REQUEST_PUSHPULL && sum < kv->vals_len))
        return err_set(PARAMO_E_SIZE_MISMATCH, "%s: lens add up to %" PRIu64 ", but there are %zu values",
                       verb, sum, kv->vals_len);
    return PARAMO_OK;
}

/* The largest frame of the request must not exceed the limit. */
static paramo_err check_size(const struct client_call *call, const char *verb, uint64_t frame_bytes,
                             bool sends)
{
    const struct client_table *t = call->table;
    const paramo_kv *kv = call->kv;
    uint64_t limit = frame_bytes - VAN_HEADER_BYTES, row = 0;
    if (t->row_values) {
        uint32_t columns = client_call_columns(call).count, values = columns ? columns : t->row_values;
        row = (uint64_t)t->value_bytes * (values + (call->kind == REQUEST_PUT ? t->state_values : 0)) + 8;
        if (t->splittable && call->kind != REQUEST_PUT)
            return PARAMO_OK;
    } else if (sends && kv->lens && t->options.kind == PARAMO_TABLE_VAR) {
        for (size_t i = 0; i < kv->n; i++) {
            uint64_t bytes = (uint64_t)kv->lens[i] * t->value_bytes + 12;
            row = bytes > row ? bytes : row;
        }
    }
    if (row > limit)
        return err_set(PARAMO_E_TOO_LARGE,
                       "%s: a row of table %s takes %" PRIu64 " bytes, a message at most %" PRIu64, verb,
                       t->name, row, limit);
    return PARAMO_OK;
}

static paramo_err check_transform(const struct client_call *call, uint64_t frame_bytes)
{
    const struct client_table *t = call->table;
    paramo_err err = transform_check(call->transform, t->options.dtype);
    if (!err && !t->row_values)
        err = err_set(PARAMO_E_UNSUPPORTED, "table %s has no rows of a fixed length", t->name);
    if (!err && call->other)
        err = check_other(t, call->other);
    if (!err && call->other && call->other->options.dtype != t->options.dtype)
        err = err_set(PARAMO_E_SIZE_MISMATCH, "tables %s and %s differ in their dtype", t->name,
                      call->other->name);
    if (!err && (uint64_t)t->row_values * t->value_bytes + 8 > frame_bytes - VAN_HEADER_BYTES)
        err = err_set(PARAMO_E_TOO_LARGE, "a row of table %s is longer than a message", t->name);
    return err ? err_prefix(err, "transform") : PARAMO_OK;
}

/* A range of a dense table. */
static paramo_err check_rows(const struct client_call *call, const char *verb)
{
    const struct client_table *t = call->table;
    uint64_t last = call->begin + call->kv->n - 1;
    if (!call->kv->n || last < t->options.rows)
        return PARAMO_OK;
    return err_set(PARAMO_E_KEY_RANGE,
                   "%s: the range from key %" PRIu64 " to %" PRIu64 " is not in table %s, which has %" PRIu64
                   " rows",
                   verb, call->begin, last, t->name, t->options.rows);
}

paramo_err check_call(const struct client_call *call, uint64_t frame_bytes)
{
    static const char *const verbs[] = {"push",      "pull",        "pushpull", "put",     "delete",
                                        "transform", "clear",       "stat",     "iterate", "reduce",
                                        "pull_page", "app_request", "flush"};
    const char *verb = verbs[call->kind];
    const struct client_table *t = call->table;
    const paramo_kv *kv = call->kv;
    struct wire_columns columns = client_call_columns(call);
    if (columns.count && call->kind > REQUEST_PUSHPULL && call->kind != REQUEST_PAGE)
        return err_set(PARAMO_E_UNSUPPORTED, "%s: options.columns is for push, pull, pushpull and pages",
                       verb);
    if (columns.first && !columns.count)
        return err_set(PARAMO_E_INVALID, "%s: options.column is %" PRIu32 ", but options.columns is 0", verb,
                       columns.first);
    paramo_err unfit = columns.count ? check_columns(call, verb) : PARAMO_OK;
    if (unfit)
        return unfit;
    if (t->options.kind == PARAMO_TABLE_USER && call->kind >= REQUEST_PUT)
        return err_set(PARAMO_E_UNSUPPORTED, "%s: table %s has no storage, its handler answers requests",
                       verb, t->name);
    if (t->options.aggregate &&
        (call->kind == REQUEST_PUSHPULL || (call->kind == REQUEST_PUSH && !call->clocked)))
        return err_set(call->kind == REQUEST_PUSH ? PARAMO_E_INVALID : PARAMO_E_UNSUPPORTED,
                       "%s: table %s aggregates the pushes of each clock: %s", verb, t->name,
                       call->kind == REQUEST_PUSH ? "paramo_clock_join comes first"
                                                  : "push and pull are two requests");
    if (call->kind == REQUEST_REDUCE)
        return reduction_request_check(call);
    if (call->kind == REQUEST_PAGE)
        return check_page(call);
    if (call->kind >= REQUEST_CLEAR)
        return PARAMO_OK;
    if (!kv)
        return err_set(PARAMO_E_INVALID, "%s: keys and values are missing", verb);
    if (kv->n > UINT32_MAX)
        return err_set(PARAMO_E_TOO_LARGE, "%s: %zu keys, at most %u are possible", verb, kv->n, UINT32_MAX);
    if (kv->n && !kv->keys && !call->range)
        return err_set(PARAMO_E_INVALID, "%s: keys is NULL", verb);
    if (call->kind == REQUEST_TRANSFORM) {
        paramo_err err = check_transform(call, frame_bytes);
        if (err)
            return err;
    } else if (call->kind != REQUEST_DELETE) {
        if (kv->vals_len && !kv->vals)
            return err_set(PARAMO_E_INVALID, "%s: vals is NULL", verb);
        bool sends = call->kind != REQUEST_PULL;
        paramo_err err;
        if (!kv->n && sends && kv->vals_len)
            err = err_set(PARAMO_E_SIZE_MISMATCH, "%s: %zu values were given without a key", verb,
                          kv->vals_len);
        else if (columns.count)
            err = check_fixed(call, verb, columns.count);
        else if (t->row_values)
            err = check_fixed(call, verb,
                              t->row_values +
                                  (call->kind == REQUEST_PUT && call->with_state ? t->state_values : 0));
        else
            err = check_lens(call, verb, sends);
        if (!err)
            err = check_size(call, verb, frame_bytes, sends);
        if (err)
            return err;
    }
    if (call->range)
        return t->options.kind == PARAMO_TABLE_DENSE ? check_rows(call, verb) : PARAMO_OK;
    if (kv->keyset && kv->n && !kv->places)
        return err_set(PARAMO_E_INVALID, "%s: a keyset is given, but places is NULL", verb);
    if (!(call->options && (call->options->flags & PARAMO_TRUSTED))) {
        paramo_err err = check_keys(kv->keys, kv->n);
        if (!err && kv->keyset)
            err = check_places(kv);
        if (err)
            return err_prefix(err, "%s", verb);
    }
    if (t->options.kind == PARAMO_TABLE_DENSE && kv->n && kv->keys[kv->n - 1] >= t->options.rows)
        return err_set(PARAMO_E_KEY_RANGE,
                       "%s: key %" PRIu64 " at position %zu is not in table %s, which has %" PRIu64 " rows",
                       verb, kv->keys[kv->n - 1], kv->n - 1, t->name, t->options.rows);
    return PARAMO_OK;
}
