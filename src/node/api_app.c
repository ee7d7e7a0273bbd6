/* Messages from and to apps, node lists, order among requests: paramo/app.h except for serving (serve.c). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "node/api_request.h"
#include "node/api_worker.h"
#include "node/node.h"
#include "van/pool.h"

/* ---- asking ---- */

void paramo_message_init(paramo_message *message, uint32_t to)
{
    *message = (paramo_message){.size = sizeof *message, .to = to, .app = PARAMO_ANY, .customer = PARAMO_ANY};
}

/* A reply as the application sees it, and its source, from which a segment can be kept. */
struct shown {
    paramo_reply reply;
    const struct client_reply *from;
};

static void show(void (*to)(void), void *arg, uint64_t ts, const struct client_reply *from)
{
    struct shown s = {.reply = {.size = sizeof s.reply,
                                .node = from->node,
                                .message = from->message,
                                .head = from->head,
                                .placed = from->placed},
                      .from = from};
    for (unsigned i = 0; i < PARAMO_SEGS; i++)
        s.reply.seg[i] = (paramo_bytes){.data = from->seg[i].data, .len = (size_t)from->seg[i].len};
    ((paramo_reply_fn)to)(arg, ts, &s.reply);
}

static void hold_release(void *arg, void *data)
{
    (void)data;
    van_release(arg);
}

paramo_err paramo_reply_keep(const paramo_reply *reply, unsigned i, paramo_array **array)
{
    if (!reply || !array || i >= PARAMO_SEGS)
        return err_set(PARAMO_E_INVALID, "reply or array is NULL, or there is no segment %u", i);
    const struct shown *s = container_of(reply, struct shown, reply);
    if (i == PARAMO_SEG_VALS && s->from->placed)
        return err_set(PARAMO_E_INVALID, "the values were received into the message's own memory");
    const struct van_seg *seg = &s->from->seg[i];
    paramo_err err = array_wrap(seg->data, (size_t)seg->len, hold_release, s->from->hold, array);
    if (!err && s->from->hold)
        hold_ref(s->from->hold);
    return err;
}

static paramo_err resolve(const paramo_worker *w, const paramo_message *messages, size_t count,
                          struct client_message *out)
{
    for (size_t i = 0; i < count; i++) {
        const paramo_message *m = &messages[i];
        if (m->size < sizeof *m)
            return err_set(PARAMO_E_INVALID, "the size of message %zu was not set (paramo_message_init)", i);
        out[i] = (struct client_message){.to = m->to,
                                         .app = m->app == PARAMO_ANY ? w->app : m->app,
                                         .customer = m->customer == PARAMO_ANY ? w->customer : m->customer,
                                         .flags = m->flags,
                                         .head = m->head,
                                         .into = m->into,
                                         .into_len = m->into_len};
        for (unsigned k = 0; k < PARAMO_SEGS; k++)
            out[i].seg[k] = (struct van_seg){.data = (void *)(uintptr_t)m->seg[k].data, .len = m->seg[k].len};
    }
    return PARAMO_OK;
}

paramo_err paramo_app_request(paramo_worker *worker, const paramo_message *messages, size_t count,
                              paramo_reply_fn on_reply, void *arg, const paramo_request_options *options,
                              uint64_t *ts)
{
    enum { FEW = 16 };
    struct client_message few[FEW];
    paramo_err err = worker_check(worker);
    if (err)
        return err;
    if (count && !messages)
        return err_set(PARAMO_E_INVALID, "messages is NULL");
    struct client_message *out = count <= FEW ? few : malloc(count * sizeof *out);
    if (!out)
        return err_memory(count * sizeof *out);
    err = resolve(worker, messages, count, out);
    struct client_call call = {.kind = REQUEST_MESSAGE,
                               .messages = out,
                               .messages_count = count,
                               .on_reply = on_reply ? show : NULL,
                               .reply_to = (void (*)(void))on_reply,
                               .reply_arg = arg};
    if (!err)
        err = request_issue(worker, &call, options, ts);
    if (out != few)
        free(out);
    return err;
}

paramo_err paramo_answers(paramo_worker *worker, uint64_t ts, uint32_t *count)
{
    paramo_err err = worker_check(worker);
    if (!err && !count)
        err = err_set(PARAMO_E_INVALID, "count is NULL");
    return err ? err : client_answers(worker->client, ts, count);
}

/* ---- nodes ---- */

size_t paramo_node_ids(const paramo_node *node, uint32_t group, uint32_t *ids, size_t cap)
{
    if (!node || !node->joined)
        return 0;
    size_t count = 0;
    uint32_t servers = atomic_load(&node->servers_now), workers = atomic_load(&node->workers_now);
    uint32_t most = 2 * (servers > workers ? servers : workers) + 8;
    for (uint32_t id = 1; id < most; id = id == 1 ? 8 : id + 1) {
        uint32_t role = id == 1 ? PARAMO_ROLE_SCHEDULER : id % 2 ? PARAMO_ROLE_WORKER : PARAMO_ROLE_SERVER;
        uint32_t there = id % 2 ? workers : servers;
        bool in = group <= PARAMO_GROUP_ALL ? (group & role) != 0 : group == id;
        if (!in || (id != 1 && (id - 8) / 2 >= there))
            continue;
        if (ids && count < cap)
            ids[count] = id;
        count++;
    }
    return count;
}

paramo_err paramo_server_range(const paramo_node *node, uint32_t rank, uint64_t *first, uint64_t *last)
{
    paramo_err err = node_check(node);
    if (err)
        return err;
    if (!first || !last)
        return err_set(PARAMO_E_INVALID, "first or last is NULL");
    if (!node->joined || rank >= node->num_servers)
        return err_set(PARAMO_E_NOT_FOUND, "there is no server %u", rank);
    const struct server_range *r = &node->ranges[rank];
    if (r->partitions == 0)
        return err_set(PARAMO_E_NOT_FOUND, "server %u has no keys", rank);
    *first = (uint64_t)r->first_partition << RING_PARTITION_SHIFT;
    *last = *first + (((uint64_t)r->partitions << RING_PARTITION_SHIFT) - 1); /* all partitions: 2^64 - 1 */
    return PARAMO_OK;
}

/* ---- life ---- */

paramo_err paramo_on_exit(paramo_node *node, void (*fn)(void *arg), void *arg)
{
    paramo_err err = node_check(node);
    if (err)
        return err;
    if (!fn)
        return err_set(PARAMO_E_INVALID, "fn is NULL");
    unsigned i = atomic_load(&node->exits_count);
    do {
        if (i == EXITS_MAX)
            return err_set(PARAMO_E_TOO_LARGE, "a node has at most %d exit callbacks", EXITS_MAX);
    } while (!atomic_compare_exchange_weak(&node->exits_count, &i, i + 1));
    assert(i < EXITS_MAX && !node->exits[i].fn); /* the place is this call's alone */
    node->exits[i] = (struct exit_call){fn, arg};
    return PARAMO_OK;
}

/* ---- order among requests ---- */

paramo_err paramo_delay_init(paramo_delay *delay, uint32_t tau)
{
    if (!delay || tau > PARAMO_DELAY_MAX)
        return err_set(PARAMO_E_INVALID, "delay is NULL, or tau is above %d", PARAMO_DELAY_MAX);
    *delay = (paramo_delay){.tau = tau};
    return PARAMO_OK;
}

/* ends is a ring of tau + 1: the slot that the present iteration will fill holds the one tau + 1 before it.
 */
void paramo_delay_apply(const paramo_delay *delay, paramo_request_options *options)
{
    options->after_all = delay->ends[delay->at];
}

void paramo_delay_end(paramo_delay *delay, uint64_t ts)
{
    delay->ends[delay->at] = ts;
    delay->at = (delay->at + 1) % (delay->tau + 1);
}
