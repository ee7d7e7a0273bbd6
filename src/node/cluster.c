/* The public functions that call the scheduler: nodes, barriers, pools, small values, shutdown. */
#include <string.h>

#include "node/node.h"

int paramo_node_is(const paramo_node *node, paramo_role role)
{
    return node && (node->config.roles & (uint32_t)role) != 0;
}

uint32_t paramo_node_id(const paramo_node *node)
{
    return node ? node->id : 0;
}

uint32_t paramo_node_rank(const paramo_node *node)
{
    return node ? node->rank : 0;
}

uint32_t paramo_num_servers(const paramo_node *node)
{
    return node ? node->num_servers : 0;
}

uint32_t paramo_num_workers(const paramo_node *node)
{
    return node ? node->num_workers : 0;
}

int paramo_is_recovery(const paramo_node *node)
{
    return node && node->recovered;
}

struct inquiry {
    const paramo_node *node;
    uint32_t *ids;
    size_t cap, count;
    uint16_t port;
};

static void inquire_port(void *arg)
{
    struct inquiry *q = arg;
    char host[VIEW_HOST_MAX];
    const char *address = q->node->scheduler       ? scheduler_address(q->node->scheduler)
                          : q->node->own->acceptor ? acceptor_address(q->node->own->acceptor)
                                                   : NULL;
    if (!address || address_split(address, host, sizeof host, &q->port))
        q->port = 0;
}

uint16_t paramo_node_port(const paramo_node *node)
{
    struct inquiry q = {.node = node};
    if (node_check(node) || node->config.roles == PARAMO_ROLE_ALL ||
        node_run_on(node->control, inquire_port, &q))
        return 0;
    return q.port;
}

static void inquire_dead(void *arg)
{
    struct inquiry *q = arg;
    const struct view *view = node_view(q->node);
    for (uint32_t i = 0; view && i < view->nodes_count; i++) {
        if (view->nodes[i].alive || view->nodes[i].left)
            continue;
        if (q->count < q->cap)
            q->ids[q->count] = view->nodes[i].id;
        q->count++;
    }
}

size_t paramo_dead_nodes(const paramo_node *node, uint32_t *ids, size_t cap)
{
    struct inquiry q = {.node = node, .ids = ids, .cap = ids ? cap : 0};
    if (node_check(node) || node_run_on(node->control, inquire_dead, &q))
        return 0;
    return q.count;
}

static paramo_err check_joined(const paramo_node *node)
{
    paramo_err err = node_check(node);
    if (!err && !node->joined)
        err = err_set(PARAMO_E_CLOSED,
                      "the node has not joined a cluster; paramo_join or paramo_start comes first");
    return err;
}

paramo_err paramo_job_status(const paramo_node *node)
{
    paramo_err err = check_joined(node);
    if (err || atomic_load(&node->own->state) != MEMBER_SLOT_ENDED)
        return err;
    if (node->own->code)
        return err_set(node->own->code, "%s", node->own->text);
    return err_set(PARAMO_E_SHUTDOWN, "the job is over");
}

/* ---- barriers ----------------------------------------------------------------------------------------- */

struct barrier_args {
    uint32_t group, customer;
    uint64_t deadline;
};

static paramo_err begin_barrier(struct node_call *c, struct member *m, void *arg)
{
    const struct barrier_args *a = arg;
    return member_barrier(m, &c->call, a->group, a->customer, a->deadline);
}

paramo_err paramo_barrier(paramo_node *node, uint32_t group, uint32_t customer, uint32_t timeout_ms)
{
    paramo_err err = check_joined(node);
    if (err)
        return err;
    if (group < 1 || group > PARAMO_GROUP_ALL)
        return err_set(PARAMO_E_INVALID, "group is %u: not 1, 2, 4 or a sum of them", group);
    if (node->config.roles == PARAMO_ROLE_ALL)
        group = PARAMO_GROUP_WORKERS; /* its servers and scheduler are in this process and enter with it */
    struct barrier_args args = {group, customer, node_deadline(node, timeout_ms)};
    return node_call(node->own, begin_barrier, NULL, &args);
}

/* ---- shutdown ----------------------------------------------------------------------------------------- */

struct text_args {
    const char *text;
    uint64_t deadline;
};

static paramo_err begin_shutdown(struct node_call *c, struct member *m, void *arg)
{
    const struct text_args *a = arg;
    return member_shutdown(m, &c->call, a->text, a->deadline);
}

paramo_err paramo_shutdown(paramo_node *node, const char *reason)
{
    paramo_err err = check_joined(node);
    if (err)
        return err;
    struct text_args args = {reason ? reason : "", node_deadline(node, 0)};
    return node_call(node->own, begin_shutdown, NULL, &args);
}

/* ---- pools -------------------------------------------------------------------------------------------- */

struct pool_args {
    const char *pool;
    uint32_t streams, rounds;
    uint32_t customer, round, timeout_ms;
    struct work_unit unit;
    enum pool_state state;
    uint64_t deadline;
};

static paramo_err begin_pool_open(struct node_call *c, struct member *m, void *arg)
{
    const struct pool_args *a = arg;
    return member_pool_open(m, &c->call, a->pool, a->streams, a->rounds, a->deadline);
}

static paramo_err begin_pool_next(struct node_call *c, struct member *m, void *arg)
{
    const struct pool_args *a = arg;
    return member_pool_next(m, &c->call, a->pool, a->customer, a->round, a->timeout_ms, a->deadline);
}

static void pool_taken(struct node_call *c, void *arg)
{
    struct pool_args *a = arg;
    a->state = c->call.result.state;
    a->unit = c->call.result.unit;
}

static paramo_err begin_pool_done(struct node_call *c, struct member *m, void *arg)
{
    const struct pool_args *a = arg;
    return member_pool_done(m, &c->call, a->pool, &a->unit, a->deadline);
}

static paramo_err begin_pool_end(struct node_call *c, struct member *m, void *arg)
{
    const struct pool_args *a = arg;
    return member_pool_end(m, &c->call, a->pool, &a->unit, a->deadline);
}

static paramo_err check_pool(const paramo_node *node, const char *pool)
{
    paramo_err err = check_joined(node);
    if (!err && !pool)
        err = err_set(PARAMO_E_INVALID, "the pool's name is NULL");
    return err;
}

paramo_err paramo_pool_open(paramo_node *node, const char *pool, uint32_t streams, uint32_t rounds)
{
    paramo_err err = check_pool(node, pool);
    if (err)
        return err;
    struct pool_args args = {
        .pool = pool, .streams = streams, .rounds = rounds, .deadline = node_deadline(node, 0)};
    return node_call(node->own, begin_pool_open, NULL, &args);
}

paramo_err paramo_pool_next(paramo_node *node, const char *pool, uint32_t customer, uint32_t round,
                            uint32_t timeout_ms, paramo_work_unit *unit, int *state)
{
    paramo_err err = check_pool(node, pool);
    if (!err && (!unit || !state))
        err = err_set(PARAMO_E_INVALID, "work unit or state is NULL");
    if (err)
        return err;
    struct pool_args args = {.pool = pool, .customer = customer, .round = round, .timeout_ms = timeout_ms};
    /* The scheduler ends the wait after timeout_ms. A minute more is for a scheduler that restarts; arbitrary. */
    args.deadline = env_now(node->env) + (timeout_ms + UINT64_C(60000)) * ENV_MS;
    err = node_call(node->own, begin_pool_next, pool_taken, &args);
    if (err)
        return err;
    *state = (int)args.state;
    *unit = (paramo_work_unit){.stream = args.unit.stream,
                               .round = args.unit.round,
                               .index = args.unit.index,
                               .token = args.unit.token};
    return PARAMO_OK;
}

static paramo_err pool_report(paramo_node *node, const char *pool, const paramo_work_unit *unit,
                              paramo_err (*begin)(struct node_call *, struct member *, void *))
{
    paramo_err err = check_pool(node, pool);
    if (!err && !unit)
        err = err_set(PARAMO_E_INVALID, "work unit is NULL");
    if (err)
        return err;
    struct pool_args args = {.pool = pool, .deadline = node_deadline(node, 0)};
    args.unit = (struct work_unit){
        .stream = unit->stream, .round = unit->round, .index = unit->index, .token = unit->token};
    return node_call(node->own, begin, NULL, &args);
}

paramo_err paramo_pool_done(paramo_node *node, const char *pool, const paramo_work_unit *unit)
{
    return pool_report(node, pool, unit, begin_pool_done);
}

paramo_err paramo_pool_end(paramo_node *node, const char *pool, const paramo_work_unit *unit)
{
    return pool_report(node, pool, unit, begin_pool_end);
}

/* ---- small values ------------------------------------------------------------------------------------- */

struct value_args {
    const char *key;
    const void *in;
    const double *doubles;
    void *out;
    size_t len; /* in: the bytes given; out: the bytes found */
    size_t cap;
    uint64_t deadline;
};

static paramo_err begin_kv_put(struct node_call *c, struct member *m, void *arg)
{
    const struct value_args *a = arg;
    return member_kv_put(m, &c->call, a->key, a->in, a->len, a->deadline);
}

static paramo_err begin_kv_add(struct node_call *c, struct member *m, void *arg)
{
    const struct value_args *a = arg;
    return member_kv_add(m, &c->call, a->key, a->doubles, a->len, a->deadline);
}

static paramo_err begin_kv_get(struct node_call *c, struct member *m, void *arg)
{
    const struct value_args *a = arg;
    return member_kv_get(m, &c->call, a->key, a->deadline);
}

static paramo_err begin_kv_delete(struct node_call *c, struct member *m, void *arg)
{
    const struct value_args *a = arg;
    return member_kv_delete(m, &c->call, a->key, a->deadline);
}

static void kv_taken(struct node_call *c, void *arg)
{
    struct value_args *a = arg;
    a->len = c->call.result.value_len;
    if (a->len && a->len <= a->cap)
        memcpy(a->out, c->call.result.value, a->len);
}

static paramo_err check_value(const paramo_node *node, const char *key, const void *data, size_t len)
{
    paramo_err err = check_joined(node);
    if (!err && (!key || (!data && len)))
        err = err_set(PARAMO_E_INVALID, "key or value is NULL");
    return err;
}

paramo_err paramo_kv_put(paramo_node *node, const char *key, const void *value, size_t len)
{
    paramo_err err = check_value(node, key, value, len);
    if (err)
        return err;
    struct value_args args = {.key = key, .in = value, .len = len, .deadline = node_deadline(node, 0)};
    return node_call(node->own, begin_kv_put, NULL, &args);
}

paramo_err paramo_kv_add(paramo_node *node, const char *key, const double *values, size_t n)
{
    paramo_err err = check_value(node, key, values, n);
    if (err)
        return err;
    struct value_args args = {.key = key, .doubles = values, .len = n, .deadline = node_deadline(node, 0)};
    return node_call(node->own, begin_kv_add, NULL, &args);
}

paramo_err paramo_kv_delete(paramo_node *node, const char *key)
{
    paramo_err err = check_value(node, key, NULL, 0);
    if (err)
        return err;
    struct value_args args = {.key = key, .deadline = node_deadline(node, 0)};
    return node_call(node->own, begin_kv_delete, NULL, &args);
}

paramo_err paramo_kv_get(paramo_node *node, const char *key, void *value, size_t cap, size_t *len,
                         uint32_t timeout_ms)
{
    paramo_err err = check_value(node, key, value, cap);
    if (err)
        return err;
    struct value_args args = {
        .key = key, .out = value, .cap = cap, .deadline = node_deadline(node, timeout_ms)};
    err = node_call(node->own, begin_kv_get, kv_taken, &args);
    if (err)
        return err;
    if (len)
        *len = args.len;
    if (args.len > cap)
        return err_set(PARAMO_E_TOO_LARGE, "the value of %s has %zu bytes, there is room for %zu", key,
                       args.len, cap);
    return PARAMO_OK;
}
