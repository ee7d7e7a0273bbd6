#include "node/api_table.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/api_request.h"
#include "node/api_worker.h"
#include "node/config.h"
#include "table/table_options.h"
#include "wire/table_spec.h"

/* ---- opening ------------------------------------------------------------------------------------------ */

void paramo_table_options_init(paramo_table_options *options)
{
    table_options_default(options);
}

struct open_args {
    const char *name;
    const paramo_table_options *options;
    uint64_t deadline;
    struct view_table found;
    bool known;
};

static paramo_err begin_table_open(struct node_call *c, struct member *m, void *arg)
{
    const struct open_args *a = arg;
    return member_table_open(m, &c->call, a->name, a->options, a->deadline);
}

static void table_taken(struct node_call *c, void *arg)
{
    struct open_args *a = arg;
    assert(lane_held(c->member_slot->node->control));
    assert(!a->known);
    const struct view_table *t = view_table(member_view(c->member_slot->member), c->call.result.table);
    a->known = t != NULL;
    if (t)
        a->found = *t;
}

/* On a node that is not a member the table is looked for in the view. If it is not there, the scheduler is asked for a
 * newer view. */

struct table_wanted {
    paramo_node *node;
    struct open_args *args;
    uint64_t query; /* whose answer shows the table, if it exists */
};

static void table_look(void *arg)
{
    const struct table_wanted *w = arg;
    assert(lane_held(w->node->control));
    assert(!w->args->known);
    const struct view *view = node_view(w->node);
    const struct view_table *t = view ? view_table_named(view, w->args->name) : NULL;
    w->args->known = t != NULL;
    if (t)
        w->args->found = *t;
}

static void table_look_or_ask(void *arg)
{
    struct table_wanted *w = arg;
    assert(w->node->own->observer);
    assert(!w->query);
    table_look(w);
    if (!w->args->known)
        w->query = observer_ask(w->node->own->observer);
}

static bool table_told(void *arg)
{
    const struct table_wanted *w = arg;
    return observer_answered(w->node->own->observer) >= w->query || atomic_load(&w->node->interrupted) ||
           atomic_load(&w->node->own->state) == MEMBER_SLOT_ENDED;
}

static paramo_err table_observed(paramo_node *node, struct open_args *args)
{
    struct table_wanted w = {.node = node, .args = args};
    assert(node->own->observer);
    assert(!args->known);
    paramo_err err = node_run_on(node->control, table_look_or_ask, &w);
    if (!err && !args->known)
        err = lane_wait(node->control, table_told, &w, args->deadline);
    if (!err && !args->known)
        err = node_run_on(node->control, table_look, &w);
    if (err || args->known)
        return err;
    if (atomic_load(&node->own->state) == MEMBER_SLOT_ENDED)
        return err_set(node->own->code, "%s", node->own->text);
    if (atomic_load(&node->interrupted))
        return err_set(PARAMO_E_CLOSED,
                       "interrupted while waiting for the scheduler's answer (paramo_interrupt)");
    return err_set(PARAMO_E_NO_TABLE, "there is no table %s; a worker creates it by opening it with options",
                   args->name);
}

static paramo_table *find_table(paramo_worker *w, uint32_t id)
{
    for (paramo_table *t = atomic_load(&w->tables); t; t = t->next)
        if (t->spec.id == id)
            return t;
    return NULL;
}

paramo_table *table_by_name(const paramo_worker *w, const char *name)
{
    for (paramo_table *t = atomic_load(&w->tables); t; t = t->next)
        if (strcmp(t->spec.name, name) == 0 && atomic_load(&t->users))
            return t;
    return NULL;
}

paramo_err paramo_worker_namespace(paramo_worker *worker, const char *name)
{
    paramo_err err = worker_check(worker);
    if (err)
        return err;
    if (name &&
        (!*name || strlen(name) > VIEW_NAME_MAX - 3 || name[0] == '/' || name[strlen(name) - 1] == '/'))
        return err_set(PARAMO_E_INVALID,
                       "the namespace \"%s\" does not have 1 to %d bytes, or begins or ends with a slash",
                       name, VIEW_NAME_MAX - 3);
    (void)snprintf(worker->space, sizeof worker->space, "%s", name ? name : "");
    return PARAMO_OK;
}

paramo_err table_name(const paramo_worker *worker, const char *name, char full[VIEW_NAME_MAX])
{
    size_t at = strlen(worker->space), len = name ? strlen(name) : 0;
    if (at && len && name[0] == '/') {
        at = 0;
        name++, len--;
    }
    if (!len || at + (at > 0) + len >= VIEW_NAME_MAX)
        return err_set(PARAMO_E_INVALID, "a table's name, with its namespace, has 1 to %d bytes",
                       VIEW_NAME_MAX - 1);
    memcpy(full, worker->space, at);
    if (at)
        full[at++] = '/';
    memcpy(full + at, name, len + 1);
    return PARAMO_OK;
}

paramo_err paramo_table_open(paramo_worker *worker, const char *name, const paramo_table_options *options,
                             paramo_table **table)
{
    char full[VIEW_NAME_MAX];
    paramo_err err = worker_check(worker);
    if (!err && !table)
        err = err_set(PARAMO_E_INVALID, "table is NULL");
    if (!err)
        err = table_name(worker, name, full);
    return err ? err : table_open(worker, full, options, table);
}

paramo_err table_take(paramo_worker *worker, const struct view_table *found, paramo_table **table)
{
    paramo_table *t = find_table(worker, found->id);
    if (t) {
        atomic_fetch_add(&t->users, 1);
        *table = t;
        return PARAMO_OK;
    }
    t = calloc(1, sizeof *t);
    if (!t)
        return err_memory(sizeof *t);
    t->worker = worker;
    t->options = found->options;
    client_table_init(&t->spec, found);
    assert(t->spec.id == found->id);
    atomic_store(&t->users, 1);
    t->next = atomic_load(&worker->tables);
    while (!atomic_compare_exchange_weak(&worker->tables, &t->next, t)) {
    }
    *table = t;
    return PARAMO_OK;
}

paramo_err table_open(paramo_worker *worker, const char *name, const paramo_table_options *options,
                      paramo_table **table)
{
    paramo_err err = PARAMO_OK;
    paramo_table_options whole;
    if (options) {
        table_options_default(&whole);
        options_complete(&whole, sizeof whole, options);
        whole.size = sizeof whole;
        err = table_options_check(&whole);
        if (err)
            return err_prefix(err, "table %s", name);
        whole.placement = table_options_placement(&whole);
    }
    bool creates = options && !worker->reads;
    struct open_args args = {
        .name = name, .options = creates ? &whole : NULL, .deadline = node_deadline(worker->node, 0)};
    err = worker->node->own->observer ? table_observed(worker->node, &args)
                                      : node_call(worker->node->own, begin_table_open, table_taken, &args);
    if (err)
        return err;
    if (!args.known)
        return err_set(PARAMO_E_INTERNAL, "table %s was opened but is in no view", name);
    if (options && !creates)
        err = table_spec_same(name, &args.found.options, &whole);
    if (err)
        return err;
    return table_take(worker, &args.found, table);
}

void paramo_table_close(paramo_table *table)
{
    if (!table || worker_check(table->worker))
        return;
    unsigned users = atomic_load(&table->users);
    while (users && !atomic_compare_exchange_weak(&table->users, &users, users - 1)) {
    }
}

void paramo_table_info(const paramo_table *table, paramo_table_options *options)
{
    options_copy_out(options, &table->options, sizeof table->options);
}

uint32_t paramo_table_state_values(const paramo_table *table)
{
    return table->spec.state_values;
}

/* ---- whole tables ------------------------------------------------------------------------------------- */

static paramo_err whole_request(paramo_worker *worker, struct client_call *call)
{
    if (lane_inside()) /* it could not wait, and the request would outlive the caller's arguments */
        return err_set(PARAMO_E_IN_CALLBACK, "a callback or handler cannot wait for a whole table");
    uint64_t ts;
    paramo_err status = PARAMO_OK;
    call->status = &status;
    paramo_err err = client_issue(worker->client, call, &ts);
    if (err)
        return err;
    return request_cause(worker, client_wait_status(worker->client, ts, &status));
}

paramo_err paramo_table_stat(paramo_worker *worker, paramo_table *table, paramo_table_stats *stats)
{
    paramo_err err = table_check(worker, table);
    if (!err && !stats)
        err = err_set(PARAMO_E_INVALID, "stats is NULL");
    if (err)
        return err;
    struct client_stats found = {0};
    struct client_call call = {.kind = REQUEST_STAT, .table = &table->spec, .stats = &found};
    err = whole_request(worker, &call);
    if (err)
        return err;
    paramo_table_stats sum = {.rows = found.rows,
                              .nonzero = found.nonzero,
                              .bytes = found.bytes,
                              .pushes = found.pushes,
                              .pulls = found.pulls};
    options_copy_out(stats, &sum, sizeof sum);
    return PARAMO_OK;
}

paramo_err paramo_table_clear(paramo_worker *worker, paramo_table *table)
{
    paramo_err err = table_check(worker, table);
    if (err)
        return err;
    struct client_call call = {.kind = REQUEST_CLEAR, .table = &table->spec};
    return whole_request(worker, &call);
}

paramo_err paramo_table_delete(paramo_worker *worker, paramo_table *table, const uint64_t *keys, size_t n)
{
    paramo_err err = table_check(worker, table);
    if (err)
        return err;
    paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = n};
    struct client_call call = {.kind = REQUEST_DELETE, .table = &table->spec, .kv = &kv};
    return whole_request(worker, &call);
}

paramo_err paramo_table_put(paramo_worker *worker, paramo_table *table, int with_state,
                            const paramo_rows *rows)
{
    paramo_err err = table_check(worker, table);
    if (err)
        return err;
    if (!rows || rows->size < sizeof *rows)
        return err_set(PARAMO_E_INVALID, "rows is NULL, or its size was not set");
    uint32_t row_values = table->spec.row_values + (with_state ? table->spec.state_values : 0);
    if (rows->row_values != (rows->lens ? 0 : row_values))
        return err_set(PARAMO_E_SIZE_MISMATCH, "rows of %u values given, table %s takes %u", rows->row_values,
                       table->spec.name, row_values);
    size_t vals_len = rows->n * row_values;
    if (rows->lens) {
        vals_len = 0;
        for (size_t i = 0; i < rows->n; i++)
            vals_len += rows->lens[i];
    }
    paramo_kv kv = {.size = sizeof kv,
                    .keys = rows->keys,
                    .n = rows->n,
                    .vals = (void *)(uintptr_t)rows->vals,
                    .vals_len = vals_len,
                    .lens = (uint32_t *)(uintptr_t)rows->lens};
    struct client_call call = {
        .kind = REQUEST_PUT, .table = &table->spec, .kv = &kv, .with_state = with_state != 0};
    return whole_request(worker, &call);
}
