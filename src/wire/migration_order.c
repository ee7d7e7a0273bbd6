#include "wire/migration_order.h"

#include "wire/calls.h"

enum { PARTITIONS = 4096 }; /* RING_PARTITIONS */

void migration_order_encode(const struct migration_order *m, struct writer *w)
{
    write_u64(w, m->id);
    write_u16(w, m->first);
    write_u16(w, m->partitions);
    write_u32(w, m->from.node);
    write_u16(w, m->from.index);
    write_u32(w, m->to.node);
    write_u16(w, m->to.index);
    write_u8(w, m->level);
    write_u8(w, m->had);
    write_u32(w, m->kib_per_s);
    write_u8(w, m->takes_over);
    write_u8(w, m->committed);
    write_u8(w, m->handover);
}

paramo_err migration_order_decode(struct reader *r, struct migration_order *m)
{
    *m = (struct migration_order){0};
    m->id = read_u64(r);
    m->first = read_u16(r);
    m->partitions = read_u16(r);
    m->from.node = read_u32(r);
    m->from.index = read_u16(r);
    m->to.node = read_u32(r);
    m->to.index = read_u16(r);
    m->level = read_u8(r);
    m->had = read_u8(r);
    m->kib_per_s = read_u32(r);
    uint8_t takes_over = read_u8(r), committed = read_u8(r), handover = read_u8(r);
    m->takes_over = takes_over == 1;
    m->committed = committed == 1;
    m->handover = handover == 1;
    paramo_err err = call_body_end(r, "an order to migrate partitions");
    if (!err && (!m->id || !m->partitions || m->first + m->partitions > PARTITIONS || committed > 1 ||
                 takes_over > 1 || handover > 1 || (m->handover && m->had == MIGRATION_NO_LEVEL) ||
                 m->level >= m->had || m->had > MIGRATION_NO_LEVEL ||
                 (m->from.node == m->to.node && m->from.index == m->to.index)))
        return err_set(PARAMO_E_PROTOCOL, "an order to migrate partitions: a field is not valid");
    return err;
}
