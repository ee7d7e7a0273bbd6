/* Filters of a worker's tables: the public functions over worker/client.h. */
#include "base/log.h"
#include "filter/coding.h"
#include "filter/registry.h"
#include "node/api_request.h"
#include "node/api_worker.h"
#include "paramo/filter.h"
#include "worker/carrying.h"

/* How long the close of a worker waits for rows that filters hold back. Arbitrary. */
enum { FLUSH_CLOSE_MS = 10000 };

paramo_err paramo_filter_register(const paramo_filter *filter)
{
    return filter_users_register(filter);
}

struct set_args {
    struct client *client;
    const struct client_table *table;
    enum filter_direction direction;
    struct filter_chain chain;
    paramo_err err;
    char text[ERR_TEXT_MAX];
};

static void set_on_lane(void *arg)
{
    struct set_args *a = arg;
    a->err = client_filter(a->client, a->table, a->direction, &a->chain);
    if (a->err)
        err_text_copy(a->text);
}

paramo_err paramo_table_filter(paramo_table *table, paramo_filter_direction direction, const char *chain)
{
    if (!table || !chain)
        return err_set(PARAMO_E_INVALID, "table or chain is NULL");
    if (direction != PARAMO_FILTER_PUSH && direction != PARAMO_FILTER_PULL)
        return err_set(PARAMO_E_INVALID, "there is no direction %d", (int)direction);
    struct set_args a = {.client = table->worker->client,
                         .table = &table->spec,
                         .direction = direction == PARAMO_FILTER_PUSH ? FILTER_PUSH : FILTER_PULL};
    paramo_err err = worker_check(table->worker);
    if (!err)
        err = filter_chain_parse(chain, a.direction, &a.chain);
    if (!err)
        err = node_run_on(table->worker->lane, set_on_lane, &a);
    if (!err && a.err)
        err = err_set(a.err, "%s", a.text);
    return err;
}

paramo_err paramo_filter_flush(paramo_worker *worker, paramo_table *table,
                               const paramo_request_options *options, uint64_t *ts)
{
    paramo_err err = table_check(worker, table);
    if (err)
        return err;
    struct client_call call = {.kind = REQUEST_FLUSH, .table = &table->spec};
    return request_issue(worker, &call, options, ts);
}

struct held_args {
    const struct client *client;
    bool any;
};

static void held_on_lane(void *arg)
{
    struct held_args *a = arg;
    a->any = carrying_any(a->client);
}

static bool holds_back(paramo_worker *worker)
{
    struct held_args a = {.client = worker->client};
    return !node_run_on(worker->lane, held_on_lane, &a) && a.any;
}

void filters_close(paramo_worker *worker)
{
    paramo_request_options options;
    if (!holds_back(worker))
        return;
    paramo_request_options_init(&options);
    options.timeout_ms = FLUSH_CLOSE_MS;
    for (paramo_table *t = atomic_load(&worker->tables); t; t = t->next) {
        struct client_call call = {.kind = REQUEST_FLUSH, .table = &t->spec, .options = &options};
        uint64_t ts;
        paramo_err err = client_issue(worker->client, &call, &ts);
        if (!err)
            err = client_wait(worker->client, ts, 0);
        if (err)
            log_warn("customer %u is closed, and rows of table %s that filters hold back are lost: %s",
                     worker->customer, t->spec.name, err_text());
    }
}

struct count_args {
    const struct client *client;
    struct filter_counts counts;
};

static void count_on_lane(void *arg)
{
    struct count_args *a = arg;
    client_filter_counts(a->client, &a->counts);
}

size_t paramo_filter_counters(paramo_worker *worker, paramo_filter_counter *counters, size_t cap)
{
    struct count_args a = {0};
    size_t n = 0;
    if (worker_check(worker))
        return 0;
    a.client = worker->client;
    if (node_run_on(worker->lane, count_on_lane, &a))
        return 0;
    for (unsigned i = 0; i < registry_count(); i++)
        for (unsigned d = 0; d < FILTER_DIRECTIONS; d++) {
            const struct filter_count *c = &a.counts.of[i][d];
            if (!c->messages && !c->skipped && !c->received)
                continue;
            if (n < cap)
                counters[n] = (paramo_filter_counter){.name = registry_at(i)->name,
                                                      .direction = d == FILTER_PUSH ? PARAMO_FILTER_PUSH
                                                                                    : PARAMO_FILTER_PULL,
                                                      .lossy = registry_at(i)->lossy,
                                                      .messages = c->messages,
                                                      .skipped = c->skipped,
                                                      .bytes_before = c->before,
                                                      .bytes_after = c->after,
                                                      .received = c->received,
                                                      .time_ns = c->time_ns};
            n++;
        }
    return n;
}
