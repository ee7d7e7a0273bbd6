#include "wire/heartbeat.h"

#include "wire/calls.h"

void heartbeat_encode(const struct heartbeat *m, struct writer *w)
{
    write_u32(w, m->lanes);
    for (uint32_t i = 0; i < m->lanes; i++) {
        write_u64(w, m->lane[i].steps);
        write_u8(w, m->lane[i].busy);
    }
}

paramo_err heartbeat_decode(struct reader *r, struct heartbeat *m)
{
    m->lanes = read_u32(r);
    if (m->lanes > HEARTBEAT_LANES_MAX)
        return err_set(PARAMO_E_PROTOCOL, "HEARTBEAT: %u lanes are too many", m->lanes);
    for (uint32_t i = 0; i < m->lanes; i++) {
        m->lane[i].steps = read_u64(r);
        m->lane[i].busy = read_u8(r) != 0;
    }
    return call_body_end(r, "HEARTBEAT");
}
