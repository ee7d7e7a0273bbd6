#include "node/api_request.h"

#include "env/process.h"
#include "node/api_worker.h"
#include "node/clock.h"
#include "node/config.h"
#include "node/task.h"

void paramo_kv_init(paramo_kv *kv)
{
    *kv = (paramo_kv){.size = sizeof *kv};
}

void paramo_request_options_init(paramo_request_options *options)
{
    *options = (paramo_request_options){.size = sizeof *options};
}

paramo_err table_check(const paramo_worker *worker, const paramo_table *table)
{
    paramo_err err = worker_check(worker);
    if (err)
        return err;
    if (!table)
        return err_set(PARAMO_E_NO_TABLE, "table is NULL");
    if (table->worker != worker)
        return err_set(PARAMO_E_NO_TABLE, "table %s was opened by another worker; open it with this one",
                       table->spec.name);
    if (!atomic_load_explicit(&table->users, memory_order_relaxed))
        return err_set(PARAMO_E_CLOSED, "table %s is closed", table->spec.name);
    return PARAMO_OK;
}

const paramo_request_options *request_options(const paramo_request_options *options,
                                              paramo_request_options *whole)
{
    if (!options || options->size >= sizeof *whole)
        return options;
    paramo_request_options_init(whole);
    options_complete(whole, sizeof *whole, options);
    whole->size = sizeof *whole;
    return whole;
}

static void count_age(const struct client_table *spec, uint64_t age)
{
    struct paramo_table *table = container_of(spec, struct paramo_table, spec);
    if (age != CLOCK_AGELESS)
        atomic_fetch_add_explicit(&table->ages[age < PARAMO_CLOCK_AGES ? age : PARAMO_CLOCK_AGES - 1], 1,
                                  memory_order_relaxed);
}

paramo_err paramo_table_clock_ages(const paramo_table *table, uint64_t ages[PARAMO_CLOCK_AGES])
{
    if (!table || !ages)
        return err_set(PARAMO_E_INVALID, "table or ages is NULL");
    for (unsigned i = 0; i < PARAMO_CLOCK_AGES; i++)
        ages[i] = atomic_load_explicit(&table->ages[i], memory_order_relaxed);
    return PARAMO_OK;
}

/* call->options are complete, or NULL. */
static paramo_err issue(paramo_worker *worker, struct client_call *call, uint64_t *ts)
{
    if (!ts && !(call->options && call->options->callback))
        return err_set(PARAMO_E_INVALID,
                       "ts is NULL and there is no callback: the end of the request would not be known");
    paramo_err err = PARAMO_OK;
    uint64_t given;
    if (call->options && call->options->at_clock)
        err = clock_demand_check(worker, call->options->at_clock);
    if (!err && call->table && call->table->options.aggregate)
        clock_of_call(worker, call);
    uint64_t age = clock_age(worker, call->options ? call->options->at_clock : 0);
    if (!err)
        err = client_issue(worker->client, call, ts ? ts : &given);
    if (!err && (call->kind == REQUEST_PULL || call->kind == REQUEST_PUSHPULL))
        count_age(call->table, age);
    return err;
}

paramo_err request_issue(paramo_worker *worker, struct client_call *call,
                         const paramo_request_options *options, uint64_t *ts)
{
    paramo_request_options whole, own;
    call->options = request_options(options, &whole);
    bool sub = call->options && call->options->task;
    paramo_err err = sub ? subtask_begin(call->options, &own) : PARAMO_OK;
    if (err)
        return err;
    if (sub)
        call->options = &own;
    err = issue(worker, call, ts);
    if (err && sub)
        subtask_drop(&own);
    call->options = NULL; /* they may point to this function's locals */
    return err;
}

static paramo_err request(enum request_kind kind, paramo_worker *worker, paramo_table *table,
                          const paramo_kv *kv, const paramo_request_options *options, uint64_t *ts)
{
    paramo_err err = table_check(worker, table);
    if (err)
        return err;
    if (!kv || kv->size < sizeof *kv)
        return err_set(PARAMO_E_INVALID, "kv is NULL, or its size was not set (paramo_kv_init)");
    struct client_call call = {.kind = kind, .table = &table->spec, .kv = kv};
    return request_issue(worker, &call, options, ts);
}

paramo_err paramo_push(paramo_worker *worker, paramo_table *table, const paramo_kv *kv,
                       const paramo_request_options *options, uint64_t *ts)
{
    return request(REQUEST_PUSH, worker, table, kv, options, ts);
}

paramo_err paramo_pull(paramo_worker *worker, paramo_table *table, const paramo_kv *kv,
                       const paramo_request_options *options, uint64_t *ts)
{
    return request(REQUEST_PULL, worker, table, kv, options, ts);
}

paramo_err paramo_pushpull(paramo_worker *worker, paramo_table *table, const paramo_kv *kv,
                           const paramo_request_options *options, uint64_t *ts)
{
    return request(REQUEST_PUSHPULL, worker, table, kv, options, ts);
}

paramo_err request_cause(const paramo_worker *worker, paramo_err err)
{
    const struct member_slot *own = worker->node->own;
    if (err == PARAMO_E_CLOSED && atomic_load(&own->state) == MEMBER_SLOT_ENDED && own->code)
        return err_set(own->code, "%s", own->text);
    return err;
}

paramo_err paramo_wait(paramo_worker *worker, uint64_t ts, uint32_t timeout_ms)
{
    paramo_err err = worker_check(worker);
    return err ? err : request_cause(worker, client_wait(worker->client, ts, timeout_ms));
}

paramo_err paramo_wait_all(paramo_worker *worker, uint32_t timeout_ms)
{
    paramo_err err = worker_check(worker);
    return err ? err : request_cause(worker, client_wait_all(worker->client, timeout_ms));
}

paramo_err paramo_test(paramo_worker *worker, uint64_t ts, int *done)
{
    paramo_err err = worker_check(worker);
    if (!err && !done)
        err = err_set(PARAMO_E_INVALID, "done is NULL");
    return err ? err : client_test(worker->client, ts, done);
}

paramo_err paramo_cancel(paramo_worker *worker, uint64_t ts)
{
    paramo_err err = worker_check(worker);
    return err ? err : client_cancel(worker->client, ts);
}

paramo_err paramo_worker_fd(paramo_worker *worker, int *fd)
{
    paramo_err err = worker_check(worker);
    if (err)
        return err;
    if (!fd)
        return err_set(PARAMO_E_INVALID, "fd is NULL");
    int have = atomic_load(&worker->event_fd);
    if (have < 0) {
        int made;
        err = event_create(&made);
        if (err)
            return err;
        if (!atomic_compare_exchange_strong(&worker->event_fd, &have, made)) {
            event_close(made); /* another thread was first */
        } else {
            have = made;
            client_defer_callbacks(worker->client);
        }
    }
    *fd = have;
    return PARAMO_OK;
}

paramo_err paramo_worker_poll(paramo_worker *worker)
{
    paramo_err err = worker_check(worker);
    if (err)
        return err;
    int fd = atomic_load(&worker->event_fd);
    if (fd < 0)
        return err_set(PARAMO_E_INVALID, "paramo_worker_poll needs paramo_worker_fd first");
    event_drain(fd);
    client_run_callbacks(worker->client);
    return PARAMO_OK;
}

void paramo_worker_counters(paramo_worker *worker, paramo_counters *counters)
{
    struct client_counters c = {0};
    if (!worker_check(worker))
        client_get_counters(worker->client, &c);
    paramo_counters found = {
        .size = sizeof *counters,
        .bytes_sent = c.bytes_sent,
        .bytes_received = c.bytes_received,
        .frames_sent = c.frames_sent,
        .frames_received = c.frames_received,
        .requests = c.requests,
        .retries = c.retries,
        .moved = c.moved,
        .in_flight = c.in_flight,
    };
    options_copy_out(counters, &found, sizeof found);
}
