/* Snapshots of tables for readers (paramo/snapshot.h): copies in tables of their own, over the public functions. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env/env.h"
#include "node/api_table.h"
#include "node/api_worker.h"
#include "paramo/functions.h"
#include "paramo/snapshot.h"

enum { KEEP = 2 }; /* the default of options.keep */

/*
 * The record of a name's snapshots: the only row of the table "@NAME". A taker writes `begun`, and waits for that,
 * before it changes a copy; and `taken` when all copies are whole. Snapshot n is in the copies n % keep. So a reader
 * has read snapshot n if `begun` is below n + keep after the read.
 */
struct record {
    uint64_t taken, begun; /* the last one that is whole; that was begun */
    uint64_t keep;
    uint64_t taker; /* a random number: the call that has begun the last one */
};
enum { RECORD_VALUES = sizeof(struct record) / sizeof(uint64_t) };

struct paramo_snapshot {
    paramo_worker *worker;
    char name[VIEW_NAME_MAX]; /* the full one */
    paramo_table *record;
    uint64_t number;
    uint32_t keep;
    struct opened {
        paramo_table *table;
        char name[VIEW_NAME_MAX]; /* the original's */
    } * opened;
    size_t opened_count;
};

void paramo_snapshot_options_init(paramo_snapshot_options *options)
{
    *options = (paramo_snapshot_options){.size = sizeof *options, .keep = KEEP};
}

/* ---- names, as the job knows them ---- */

static paramo_err record_name(const paramo_worker *worker, const char *name, char full[VIEW_NAME_MAX],
                              char out[VIEW_NAME_MAX])
{
    if (!name || table_name(worker, name, full) || strlen(full) + 1 >= VIEW_NAME_MAX)
        return err_set(PARAMO_E_INVALID, "a snapshot's name, with its namespace, has 1 to %d bytes",
                       VIEW_NAME_MAX - 2);
    (void)snprintf(out, VIEW_NAME_MAX, "@%s", full);
    return PARAMO_OK;
}

/* snapshot: its full name. */
static paramo_err copy_name(const paramo_worker *worker, const char *snapshot, const char *table,
                            uint64_t slot, char out[VIEW_NAME_MAX])
{
    char full[VIEW_NAME_MAX];
    paramo_err err = table_name(worker, table, full);
    if (err)
        return err;
    if (snprintf(out, VIEW_NAME_MAX, "%s@%s.%" PRIu64, full, snapshot, slot) >= VIEW_NAME_MAX)
        return err_set(PARAMO_E_INVALID,
                       "table %s, snapshot %s: both names together have %zu bytes, and may have %d", full,
                       snapshot, strlen(full) + strlen(snapshot), VIEW_NAME_MAX - 5);
    return PARAMO_OK;
}

/* ---- the record ---- */

static paramo_err record_request(paramo_worker *worker, paramo_table *table, struct record *r, bool write)
{
    static const uint64_t key;
    struct record vals = *r;
    uint64_t ts;
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = &key;
    kv.n = 1;
    kv.vals = &vals;
    kv.vals_len = RECORD_VALUES;
    paramo_err err =
        write ? paramo_push(worker, table, &kv, NULL, &ts) : paramo_pull(worker, table, &kv, NULL, &ts);
    if (!err)
        err = paramo_wait(worker, ts, 0);
    if (!err)
        *r = vals;
    return err;
}

/* Sets the snapshot's full name. */
static paramo_err record_open(paramo_worker *worker, const char *name, bool create, char full[VIEW_NAME_MAX],
                              paramo_table **table)
{
    char of_record[VIEW_NAME_MAX];
    paramo_table_options o;
    paramo_table_options_init(&o);
    o.kind = PARAMO_TABLE_DENSE;
    o.dtype = PARAMO_I64;
    o.rows = 1;
    o.dim = RECORD_VALUES;
    o.optimizer = PARAMO_OPT_ASSIGN;
    paramo_err err = record_name(worker, name, full, of_record);
    return err ? err : table_open(worker, of_record, create ? &o : NULL, table);
}

/* ---- taking ---- */

struct putting {
    paramo_table *to;
    paramo_err err;
};

static int put_rows(void *arg, const paramo_rows *rows)
{
    struct putting *p = arg;
    p->err = paramo_table_put(p->to->worker, p->to, 0, rows);
    return p->err != PARAMO_OK;
}

static paramo_err copy_rows(paramo_worker *worker, paramo_table *from, paramo_table *to, uint32_t timeout_ms)
{
    paramo_err err = paramo_table_clear(worker, to);
    if (err)
        return err;
    if (to->options.kind == PARAMO_TABLE_VAR) { /* the servers have no function for its rows */
        struct putting p = {.to = to};
        err = paramo_table_iterate(worker, from, 0, put_rows, &p);
        return p.err ? p.err : err;
    }
    paramo_transformation copy;
    paramo_transformation_init(&copy, PARAMO_TRANSFORM_COPY);
    copy.other = from;
    copy.timeout_ms = timeout_ms;
    return paramo_transform(worker, to, &copy);
}

static paramo_err copy_table(paramo_worker *worker, const char *name, const char *table, uint64_t slot,
                             uint32_t timeout_ms)
{
    char copy[VIEW_NAME_MAX];
    paramo_table *from = NULL, *to = NULL;
    paramo_table_options o;
    paramo_err err = copy_name(worker, name, table, slot, copy);
    if (!err)
        err = paramo_table_open(worker, table, NULL, &from);
    if (err)
        return err;
    paramo_table_info(from, &o);
    o.optimizer = PARAMO_OPT_ASSIGN;
    o.aggregate = PARAMO_AGGREGATE_NONE;
    err = table_open(worker, copy, &o, &to);
    if (!err)
        err = copy_rows(worker, from, to, timeout_ms);
    paramo_table_close(to);
    paramo_table_close(from);
    return err;
}

/* Checks that the tables exist and can be copied, before anything is changed. */
static paramo_err tables_check(paramo_worker *worker, const char *name, const char *const *tables, size_t n)
{
    char copy[VIEW_NAME_MAX];
    if (!tables || n == 0)
        return err_set(PARAMO_E_INVALID, "a snapshot needs at least one table");
    for (size_t i = 0; i < n; i++) {
        paramo_table *table;
        paramo_err err = tables[i] ? copy_name(worker, name, tables[i], PARAMO_SNAPSHOTS_MAX, copy)
                                   : err_set(PARAMO_E_INVALID, "the name of table %zu of %zu is NULL", i, n);
        if (!err)
            err = paramo_table_open(worker, tables[i], NULL, &table);
        if (err)
            return err;
        bool user = table->options.kind == PARAMO_TABLE_USER;
        paramo_table_close(table);
        if (user)
            return err_set(PARAMO_E_UNSUPPORTED, "table %s has a handler; its rows cannot be copied",
                           tables[i]);
    }
    return PARAMO_OK;
}

static paramo_err take(paramo_worker *worker, const char *name, const char *const *tables, size_t n,
                       const paramo_snapshot_options *o, paramo_table *table, uint64_t *number)
{
    struct record r = {0};
    paramo_err err = record_request(worker, table, &r, false);
    if (err)
        return err;
    if (r.keep && r.keep != o->keep)
        return err_set(PARAMO_E_INVALID, "snapshot %s keeps %" PRIu64 " since its first call, not %" PRIu32,
                       name, r.keep, o->keep);
    /* A call that failed has begun the same number, so the same copies are changed. */
    uint64_t before = r.taken, now = before + 1;
    uint64_t taker = env_random(worker->node->env);
    r = (struct record){.taken = before, .begun = now, .keep = o->keep, .taker = taker};
    err = record_request(worker, table, &r, true);
    for (size_t i = 0; i < n && !err; i++)
        err = copy_table(worker, name, tables[i], now % o->keep, o->timeout_ms);
    if (!err)
        err = record_request(worker, table, &r, false);
    if (err)
        return err;
    if (r.begun != now || r.taker != taker)
        return err_set(PARAMO_E_REFUSED,
                       "snapshot %s: another worker takes one at the same time; try again when it is done",
                       name);
    r.taken = now;
    err = record_request(worker, table, &r, true);
    if (!err && number)
        *number = now;
    return err;
}

paramo_err paramo_snapshot_take(paramo_worker *worker, const char *name, const char *const *tables, size_t n,
                                const paramo_snapshot_options *options, uint64_t *number)
{
    paramo_snapshot_options o;
    paramo_table *table;
    char full[VIEW_NAME_MAX], of_record[VIEW_NAME_MAX];
    paramo_err err = worker_check(worker);
    if (!err)
        err = record_name(worker, name, full, of_record);
    if (err)
        return err;
    paramo_snapshot_options_init(&o);
    if (options && options->size < sizeof *options)
        return err_set(PARAMO_E_INVALID, "options have no size (paramo_snapshot_options_init)");
    if (options)
        o = *options;
    if (o.keep < 2 || o.keep > PARAMO_SNAPSHOTS_MAX)
        return err_set(PARAMO_E_INVALID, "keep is %" PRIu32 ", and may be 2 to %d", o.keep,
                       PARAMO_SNAPSHOTS_MAX);
    if (worker->reads)
        return err_set(PARAMO_E_REFUSED, "snapshot %s: a reader cannot take snapshots; use a worker", name);
    err = tables_check(worker, full, tables, n);
    if (!err)
        err = record_open(worker, name, true, full, &table);
    if (err)
        return err;
    err = take(worker, full, tables, n, &o, table, number);
    paramo_table_close(table);
    return err;
}

/* ---- reading ---- */

paramo_err paramo_snapshot_open(paramo_worker *worker, const char *name, paramo_snapshot **snapshot)
{
    struct record r = {0};
    paramo_err err = worker_check(worker);
    if (err)
        return err;
    paramo_snapshot *s = calloc(1, sizeof *s);
    if (!s)
        return err_memory(sizeof *s);
    s->worker = worker;
    err = record_open(worker, name, false, s->name, &s->record);
    if (!err)
        err = record_request(worker, s->record, &r, false);
    if (err == PARAMO_E_NO_TABLE || (!err && r.taken == 0))
        err = err_set(PARAMO_E_NOT_FOUND, "no snapshot %s has been taken; paramo_snapshot_take makes one",
                      name);
    if (!err && (r.keep < 2 || r.keep > PARAMO_SNAPSHOTS_MAX))
        err = err_set(PARAMO_E_INVALID, "table @%s is not that of a snapshot", name);
    if (err) {
        paramo_snapshot_close(s);
        return err;
    }
    s->number = r.taken;
    s->keep = (uint32_t)r.keep;
    assert(s->record && s->keep >= 2);
    assert(!s->opened_count);
    *snapshot = s;
    return PARAMO_OK;
}

uint64_t paramo_snapshot_number(const paramo_snapshot *snapshot)
{
    return snapshot ? snapshot->number : 0;
}

paramo_err paramo_snapshot_table(paramo_snapshot *s, const char *name, paramo_table **table)
{
    char copy[VIEW_NAME_MAX];
    if (!s || !name || !table)
        return err_set(PARAMO_E_INVALID, "snapshot, name or table is NULL");
    for (size_t i = 0; i < s->opened_count; i++)
        if (strcmp(s->opened[i].name, name) == 0) {
            *table = s->opened[i].table;
            return PARAMO_OK;
        }
    struct opened *more = realloc(s->opened, (s->opened_count + 1) * sizeof *more);
    if (!more)
        return err_memory((s->opened_count + 1) * sizeof *more);
    s->opened = more;
    paramo_err err = copy_name(s->worker, s->name, name, s->number % s->keep, copy);
    if (!err)
        err = table_open(s->worker, copy, NULL, table);
    if (err == PARAMO_E_NO_TABLE)
        return err_set(PARAMO_E_NO_TABLE, "snapshot %s has no table %s", s->name, name);
    if (err)
        return err;
    more = &s->opened[s->opened_count++];
    more->table = *table;
    (void)snprintf(more->name, sizeof more->name, "%s", name);
    return PARAMO_OK;
}

paramo_err paramo_snapshot_check(paramo_snapshot *s)
{
    struct record r = {0};
    if (!s)
        return err_set(PARAMO_E_INVALID, "snapshot is NULL");
    paramo_err err = record_request(s->worker, s->record, &r, false);
    if (!err && r.begun >= s->number + s->keep)
        err = err_set(PARAMO_E_NOT_FOUND,
                      "snapshot %s %" PRIu64 " is replaced; the last is %" PRIu64 "; open that one", s->name,
                      s->number, r.taken);
    return err;
}

void paramo_snapshot_close(paramo_snapshot *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->opened_count; i++)
        paramo_table_close(s->opened[i].table);
    paramo_table_close(s->record);
    free(s->opened);
    free(s);
}
