#include "cluster/member/member_orders.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "cluster/member/member_calls.h"
#include "cluster/member/member_impl.h"
#include "wire/order.h"

struct member_order {
    struct member_order *next;
    struct member *member;
    uint64_t id;
    bool done, begun;   /* carried out; its answer is a call in flight */
    struct writer body; /* done: of the call */
    struct member_call call;
};

static void order_free(struct member_order *order)
{
    struct member_order **at = &order->member->orders;
    while (*at != order) {
        assert(*at);
        at = &(*at)->next;
    }
    member_check(order->member);
    *at = order->next;
    order->member->orders_count--;
    writer_fini(&order->body);
    free(order);
}

static void answered(struct member_call *call, paramo_err status)
{
    char text[ERR_TEXT_MAX];
    const struct member_order *order = call->arg;
    assert(order->begun && order->done);
    assert(call == &order->call && call->member == order->member);
    err_text_copy(text);
    if (status)
        log_info("the result of an order did not reach the scheduler: %s", text);
    order_free(call->arg);
}

static void answer(struct member_order *order)
{
    struct member *m = order->member;
    assert(order->done && !order->begun);
    if (order->body.failed) { /* shorter: it needs no more memory than this, and is tried again */
        struct order_done done = {.order = order->id, .status = PARAMO_E_MEMORY};
        writer_fini(&order->body);
        order_done_encode(&done, &order->body);
    }
    order->call = (struct member_call){.done = answered, .arg = order};
    if (order->body.failed)
        order->call.body.failed = true;
    else
        write_bytes(&order->call.body, order->body.data, order->body.len);
    member_check(m);
    paramo_err err = member_call_begin(m, &order->call, CALL_ORDER_DONE, UINT64_MAX);
    order->begun = !err;
    if (err && m->state != MEMBER_JOINED)
        order_free(order); /* no longer wanted; otherwise the next heartbeat tries again */
}

void member_orders_answer(struct member *m)
{
    member_check(m);
    for (struct member_order *order = m->orders, *next; order; order = next) {
        next = order->next;
        if (order->done && !order->begun)
            answer(order);
    }
}

void member_order_done(struct member *m, uint64_t id, paramo_err status, struct writer *result)
{
    struct member_order *order = m->orders;
    struct writer text = {0}, none = {0};
    member_check(m);
    while (order && order->id != id)
        order = order->next;
    if (!status && result && result->failed)
        status = err_memory(result->len);
    if (status)
        call_text_encode(err_text(), &text);
    if (order && !order->done) {
        const struct writer *rest = status ? &text : result ? result : &none;
        struct order_done done = {
            .order = id, .status = status, .rest = rest->data, .rest_len = rest->failed ? 0 : rest->len};
        order->done = true;
        assert(!order->begun);
        order_done_encode(&done, &order->body);
        answer(order);
    }
    writer_fini(&text);
    if (result)
        writer_fini(result);
}

void member_order_later(struct member *m, uint64_t id)
{
    struct member_order *order = m->orders;
    while (order && order->id != id)
        order = order->next;
    if (!order || order->done)
        return;
    assert(!order->begun);
    member_check(m);
    m->orders_seen &= ~(UINT64_C(1) << (id % ORDERS_WINDOW));
    order_free(order);
}

static void raise_floor(struct member *m, uint64_t floor)
{
    if (floor <= m->orders_floor)
        return;
    if (floor - m->orders_floor >= ORDERS_WINDOW)
        m->orders_seen = 0;
    else
        for (uint64_t id = m->orders_floor; id < floor; id++)
            m->orders_seen &= ~(UINT64_C(1) << (id % ORDERS_WINDOW));
    assert(!m->orders_seen || floor - m->orders_floor < ORDERS_WINDOW);
    assert(m->state == MEMBER_JOINED);
    m->orders_floor = floor;
}

paramo_err member_order_got(struct member *m, const struct wire_order *head, struct reader *body)
{
    uint64_t id = head->id, bit = UINT64_C(1) << (id % ORDERS_WINDOW);
    if (!id || head->floor > id || id - head->floor >= ORDERS_WINDOW)
        return err_set(PARAMO_E_PROTOCOL, "order %" PRIu64 " is too far from the floor %" PRIu64, id,
                       head->floor);
    if (m->state != MEMBER_JOINED || m->view->number < head->view)
        return PARAMO_OK; /* it comes again */
    raise_floor(m, head->floor);
    if (id < m->orders_floor || (m->orders_seen & bit))
        return PARAMO_OK;
    struct member_order *order = m->orders_count < ORDERS_MOST ? calloc(1, sizeof *order) : NULL;
    if (!order)
        return PARAMO_OK; /* as if it had been lost on the way */
    m->orders_count++;
    assert(m->orders_count <= ORDERS_MOST && id - m->orders_floor < ORDERS_WINDOW);
    m->orders_seen |= bit;
    *order = (struct member_order){.next = m->orders, .member = m, .id = id};
    m->orders = order;
    member_check(m);
    if (m->config.on_order)
        m->config.on_order(m->config.arg, id, head->what, body);
    else
        member_order_done(m, id, err_set(PARAMO_E_UNSUPPORTED, "this node takes no orders"), NULL);
    return PARAMO_OK;
}

void member_orders_fini(struct member *m)
{
    assert(m->state == MEMBER_CLOSED && !m->oldest);
    while (m->orders)
        order_free(m->orders);
    assert(!m->orders_count);
}
