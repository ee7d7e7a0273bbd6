/* Requests for a range of keys: the public functions over worker/client.h. */
#include <inttypes.h>

#include "node/api_request.h"
#include "paramo/range.h"

void paramo_range_init(paramo_range *range)
{
    *range = (paramo_range){.size = sizeof *range};
}

/* The keys from begin on and below end. */
static paramo_err range_keys(const paramo_table *table, const paramo_range *range, size_t *n)
{
    uint64_t end = range->end;
    if (table->options.kind == PARAMO_TABLE_USER)
        return err_set(PARAMO_E_UNSUPPORTED, "table %s has a handler, which takes no ranges",
                       table->spec.name);
    if (!end && table->options.kind == PARAMO_TABLE_DENSE)
        end = table->options.rows;
    if (!end)
        return err_set(PARAMO_E_INVALID, "a range of table %s, which is not dense, needs an end",
                       table->spec.name);
    if (range->begin >= end)
        return err_set(PARAMO_E_INVALID,
                       "the range from key %" PRIu64 " to below key %" PRIu64 " has no keys", range->begin,
                       end);
    *n = (size_t)(end - range->begin);
    return PARAMO_OK;
}

static paramo_err request(enum request_kind kind, paramo_worker *worker, paramo_table *table,
                          const paramo_range *range, const paramo_request_options *options, uint64_t *ts)
{
    size_t n = 0;
    paramo_err err = table_check(worker, table);
    if (err)
        return err;
    if (!range || range->size < sizeof *range)
        return err_set(PARAMO_E_INVALID, "range is NULL, or its size was not set (paramo_range_init)");
    err = range_keys(table, range, &n);
    if (err)
        return err;
    paramo_kv kv = {
        .size = sizeof kv, .n = n, .vals = range->vals, .vals_len = range->vals_len, .lens = range->lens};
    struct client_call call = {
        .kind = kind, .table = &table->spec, .kv = &kv, .range = true, .begin = range->begin};
    return request_issue(worker, &call, options, ts);
}

paramo_err paramo_push_range(paramo_worker *worker, paramo_table *table, const paramo_range *range,
                             const paramo_request_options *options, uint64_t *ts)
{
    return request(REQUEST_PUSH, worker, table, range, options, ts);
}

paramo_err paramo_pull_range(paramo_worker *worker, paramo_table *table, const paramo_range *range,
                             const paramo_request_options *options, uint64_t *ts)
{
    return request(REQUEST_PULL, worker, table, range, options, ts);
}

paramo_err paramo_pushpull_range(paramo_worker *worker, paramo_table *table, const paramo_range *range,
                                 const paramo_request_options *options, uint64_t *ts)
{
    return request(REQUEST_PUSHPULL, worker, table, range, options, ts);
}

void paramo_page_init(paramo_page *page)
{
    *page = (paramo_page){.size = sizeof *page};
}

paramo_err paramo_pull_page(paramo_worker *worker, paramo_table *table, paramo_page *page,
                            const paramo_request_options *options, uint64_t *ts)
{
    paramo_err err = table_check(worker, table);
    if (err)
        return err;
    if (!page || page->size < sizeof *page)
        return err_set(PARAMO_E_INVALID, "page is NULL, or its size was not set (paramo_page_init)");
    struct client_call call = {.kind = REQUEST_PAGE, .table = &table->spec, .page = page};
    return request_issue(worker, &call, options, ts);
}
