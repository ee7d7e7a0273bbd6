#include "wire/order.h"

#include "wire/calls.h"

void order_done_encode(const struct order_done *m, struct writer *w)
{
    write_u64(w, m->order);
    write_u16(w, (uint16_t)m->status);
    if (m->rest_len)
        write_bytes(w, m->rest, m->rest_len);
}

paramo_err order_done_decode(struct reader *r, struct order_done *m)
{
    m->order = read_u64(r);
    m->status = err_from_wire(read_u16(r));
    if (r->left > ORDER_BYTES_MAX)
        return err_set(PARAMO_E_PROTOCOL, "ORDER_DONE: a result of %zu bytes is too long", r->left);
    m->rest_len = r->left;
    m->rest = read_span(r, r->left);
    return call_body_end(r, "ORDER_DONE");
}
