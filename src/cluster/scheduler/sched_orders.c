#include "cluster/scheduler/sched_orders.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_peers.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_view.h"
#include "cluster/session/control_message.h"
#include "wire/order.h"

struct sched_order {
    struct sched_order *next;
    uint64_t id, view;
    uint32_t what;
    struct control_message_body *fields;
    uint64_t sent_at; /* 0: not on this connection */
    void (*done)(void *arg, struct sched_node *node, paramo_err status, struct reader *result);
    void *arg;
};

static void order_free(struct sched_order *order)
{
    control_message_body_unref(order->fields);
    free(order);
}

/* Orders are in the order of their ids, each below the next that is given. */
static void orders_check(const struct sched_node_orders *orders)
{
    assert(!orders->first == !orders->last);
    assert(!orders->last || (!orders->last->next && orders->last->id < orders->next_id));
    assert(!orders->first || orders->first->id <= orders->last->id);
}

void sched_orders_send(struct sched_node *node, uint64_t overdue)
{
    struct scheduler *s = node->sched;
    uint64_t now = lane_now(s->config.lane);
    if (!node->peer || s->state != SCHED_RUNNING)
        return;
    orders_check(&node->orders);
    for (struct sched_order *order = node->orders.first; order; order = order->next) {
        struct wire_head head = {.order = {.kind = WIRE_ORDER,
                                           .what = order->what,
                                           .id = order->id,
                                           .floor = node->orders.first->id,
                                           .view = order->view}};
        if (order->view > sched_view_announced(s) || (order->sent_at && now - order->sent_at < overdue))
            continue; /* it follows the view that it may speak of */
        if (control_message_send_shared(node->peer->conn, &head, order->fields))
            return; /* its queue is full: a heartbeat brings it */
        order->sent_at = now;
    }
}

void sched_orders_unsend(struct sched_node *node)
{
    orders_check(&node->orders);
    for (struct sched_order *order = node->orders.first; order; order = order->next)
        order->sent_at = 0;
}

paramo_err sched_order_issue(struct sched_node *node, uint32_t what, struct writer *fields,
                             void (*done)(void *arg, struct sched_node *node, paramo_err status,
                                          struct reader *result),
                             void *arg)
{
    struct scheduler *s = node->sched;
    char label[SCHED_LABEL];
    orders_check(&node->orders);
    if (node->state != SNODE_JOINED && node->state != SNODE_ABSENT) {
        writer_fini(fields);
        return err_set(PARAMO_E_NODE_LOST, "%s is gone", sched_roster_label(node, label));
    }
    if (node->orders.next_id >> 32 < sched_view_number(s) >>
        32) /* above all of an earlier scheduler of this job */
        node->orders.next_id = (sched_view_number(s) & ~(uint64_t)UINT32_MAX) + 1;
    if (node->orders.first && node->orders.next_id - node->orders.first->id >= ORDERS_WINDOW) {
        writer_fini(fields);
        return err_set(PARAMO_E_FULL, "%s has %d unfinished orders, which is the limit",
                       sched_roster_label(node, label), ORDERS_WINDOW);
    }
    struct sched_order *order = calloc(1, sizeof *order);
    struct control_message_body *body = control_message_body_new(fields);
    if (!order || !body) {
        control_message_body_unref(body);
        free(order);
        return err_memory(sizeof *order);
    }
    *order = (struct sched_order){.id = node->orders.next_id++,
                                  .view = sched_view_number(s),
                                  .what = what,
                                  .fields = body,
                                  .done = done,
                                  .arg = arg};
    assert(!node->orders.first || node->orders.last->id < order->id);
    assert(order->id >> 32 == sched_view_number(s) >> 32);
    *(node->orders.first ? &node->orders.last->next : &node->orders.first) = order;
    node->orders.last = order;
    orders_check(&node->orders);
    sched_orders_send(node, s->config.heartbeat_ms * ENV_MS);
    return PARAMO_OK;
}

static struct sched_order *order_find(struct sched_node *node, uint64_t id)
{
    orders_check(&node->orders);
    struct sched_order **at = &node->orders.first, *before = NULL;
    while (*at && (*at)->id != id) {
        before = *at;
        at = &before->next;
    }
    struct sched_order *order = *at;
    if (!order)
        return NULL;
    *at = order->next;
    if (node->orders.last == order)
        node->orders.last = before;
    orders_check(&node->orders);
    return order;
}

void sched_order_done_call(struct sched_call *call, struct reader *body)
{
    struct sched_node *node = call->node;
    struct order_done m;
    paramo_err err = order_done_decode(body, &m);
    struct sched_order *order = err ? NULL : order_find(node, m.order);
    if (err) {
        sched_call_fail(call, err);
        return;
    }
    sched_call_answer(call, NULL);
    if (!order)
        return; /* the order of an earlier scheduler, or one that never existed */
    struct reader rest = reader_over(m.rest, m.rest_len);
    if (m.status) {
        char text[CALL_TEXT_MAX];
        if (call_text_decode(&rest, text))
            text[0] = '\0';
        (void)err_set(m.status, "%s", text);
    }
    order->done(order->arg, node, m.status, m.status ? NULL : &rest);
    order_free(order);
}

void sched_orders_drop(struct sched_node *node, bool tell)
{
    char label[SCHED_LABEL];
    while (node->orders.first) {
        struct sched_order *order = order_find(node, node->orders.first->id);
        assert(order && order->done);
        if (tell)
            order->done(order->arg, node,
                        err_set(PARAMO_E_NODE_LOST, "%s is gone", sched_roster_label(node, label)), NULL);
        order_free(order);
    }
}

void sched_orders_cancel(struct scheduler *s)
{
    size_t cursor = 0;
    for (struct sched_node *node; (node = sched_roster_next(s, &cursor));) {
        orders_check(&node->orders);
        struct sched_order *order = node->orders.first; /* a callback may give others */
        node->orders.first = node->orders.last = NULL;
        for (struct sched_order *next; order; order = next) {
            next = order->next;
            assert(order->id < node->orders.next_id && (!next || order->id < next->id));
            order->done(
                order->arg, node,
                err_set(PARAMO_E_CANCELLED, "another scheduler has led since; the order will be given again"),
                NULL);
            order_free(order);
        }
    }
}
