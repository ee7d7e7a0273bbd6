/* The user's own request handlers on a server: paramo_request is the shard's request with what the handler
 * sees of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/node.h"

struct paramo_request {
    struct shard_request *request;
    paramo_request_info info;
};

paramo_err paramo_serve(paramo_node *node, const char *table, paramo_handler handler, void *arg)
{
    paramo_err err = node_check(node);
    if (err)
        return err;
    if (!handler)
        return err_set(PARAMO_E_INVALID, "handler is NULL");
    if (node->join_begun)
        return err_set(PARAMO_E_INVALID,
                       "handlers are set before the node joins (paramo_create, paramo_serve, paramo_join)");
    if (table && (!*table || strlen(table) >= VIEW_NAME_MAX))
        return err_set(PARAMO_E_INVALID, "a table's name has 1 to %d bytes", VIEW_NAME_MAX - 1);
    if (node->handlers_count == HANDLERS_MAX)
        return err_set(PARAMO_E_TOO_LARGE, "a node has at most %d handlers", HANDLERS_MAX);
    struct handler *h = &node->handlers[node->handlers_count++];
    (void)snprintf(h->table, sizeof h->table, "%s", table ? table : "");
    h->fn = handler;
    h->arg = arg;
    return PARAMO_OK;
}

static const struct handler *find_handler(const paramo_node *node, const char *table)
{
    const struct handler *fallback = NULL;
    for (unsigned i = 0; i < node->handlers_count; i++) {
        if (strcmp(node->handlers[i].table, table) == 0)
            return &node->handlers[i];
        if (!node->handlers[i].table[0])
            fallback = &node->handlers[i];
    }
    return fallback;
}

void serve_request(void *arg, struct shard_request *request, const struct shard_request_info *info)
{
    const struct handler *h = find_handler(arg, info->table);
    if (!h) {
        char text[ERR_TEXT_MAX];
        (void)snprintf(text, sizeof text, "no handler serves table %s", info->table);
        (void)!shard_answer_error(request, PARAMO_E_HANDLER, text);
        return;
    }
    paramo_request *made = malloc(sizeof *made);
    if (!made) {
        (void)!shard_answer_error(request, PARAMO_E_MEMORY, "out of memory");
        return;
    }
    made->request = request;
    made->info = (paramo_request_info){
        .size = sizeof made->info,
        .table = info->table,
        .sender = info->sender,
        .customer = info->customer,
        .ts = info->ts,
        .cmd = info->cmd,
        .push = info->push,
        .pull = info->pull,
        .keys = info->keys,
        .n = info->n,
        .vals = info->vals,
        .vals_len = info->vals_len,
        .lens = info->lens,
    };
    h->fn(h->arg, made, &made->info);
}

paramo_err paramo_answer(paramo_request *request, const void *vals, size_t vals_len, const uint32_t *lens)
{
    if (!request || (!vals && vals_len))
        return err_set(PARAMO_E_INVALID, "request or vals is NULL");
    paramo_err err = shard_answer(request->request, vals, vals_len, lens);
    free(request);
    return err;
}

paramo_err paramo_answer_error(paramo_request *request, paramo_err status, const char *message)
{
    if (!request || status == PARAMO_OK)
        return err_set(PARAMO_E_INVALID, "request is NULL, or status is not an error");
    paramo_err err = shard_answer_error(request->request, status, message ? message : err_sentence(status));
    free(request);
    return err;
}
