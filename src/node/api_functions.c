/* Functions that run where the rows are: the public functions over worker/client.h. */
#include "node/api_request.h"
#include "paramo/functions.h"
#include "worker/transform_run.h"

paramo_err paramo_function_register(const paramo_function *function)
{
    return user_function_register(function);
}

void paramo_reduction_init(paramo_reduction *reduction, paramo_reduce_function function)
{
    *reduction = (paramo_reduction){.size = sizeof *reduction, .function = function};
}

paramo_err paramo_reduce(paramo_worker *worker, paramo_table *table, paramo_reduction *reduction,
                         const paramo_request_options *options, uint64_t *ts)
{
    paramo_err err = table_check(worker, table);
    if (err)
        return err;
    if (!reduction || reduction->size < sizeof *reduction)
        return err_set(PARAMO_E_INVALID,
                       "reduction is NULL, or its size was not set (paramo_reduction_init)");
    if (reduction->other && (err = table_check(worker, reduction->other)) != PARAMO_OK)
        return err;
    struct client_call call = {.kind = REQUEST_REDUCE,
                               .table = &table->spec,
                               .reduction = reduction,
                               .other = reduction->other ? &reduction->other->spec : NULL};
    return request_issue(worker, &call, options, ts);
}

void paramo_transformation_init(paramo_transformation *transformation, paramo_transform_function function)
{
    *transformation = (paramo_transformation){.size = sizeof *transformation, .function = function};
}

paramo_err paramo_transform(paramo_worker *worker, paramo_table *table, const paramo_transformation *t)
{
    paramo_err err = table_check(worker, table);
    if (err)
        return err;
    if (!t || t->size < sizeof *t)
        return err_set(PARAMO_E_INVALID,
                       "transformation is NULL, or its size was not set (paramo_transformation_init)");
    if (t->other && (err = table_check(worker, t->other)) != PARAMO_OK)
        return err;
    if (t->function != PARAMO_TRANSFORM_USER && (unsigned)t->function >= PARAMO_TRANSFORM_FUNCTIONS)
        return err_set(PARAMO_E_INVALID, "there is no function %u", (unsigned)t->function);
    struct transform what = {.function = (uint8_t)t->function,
                             .two = t->other != NULL,
                             .other = t->other ? t->other->spec.id : 0,
                             .a = t->a};
    if (t->function == PARAMO_TRANSFORM_USER)
        err = user_call_make(&what.user, t->name, t->params, t->params_bytes);
    if (err)
        return err;
    struct transform_rows rows = {.keys = t->keys, .n = t->n, .begin = t->begin, .end = t->end};
    return transform_run(worker->client, &table->spec, t->other ? &t->other->spec : NULL, &what, &rows,
                         t->timeout_ms);
}
