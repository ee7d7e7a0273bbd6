#include "wire/register_call.h"

#include "paramo/types.h"
#include "wire/calls.h"

void register_call_encode(const struct register_call *m, struct writer *w)
{
    write_u32(w, m->role);
    write_u32(w, m->node);
    write_u16(w, m->port);
    write_u16(w, m->shards);
    write_u32(w, (uint32_t)m->rank);
    write_u32(w, m->timeout_ms);
    write_string(w, m->host);
    write_string(w, m->name);
    write_u32(w, m->weight);
    write_string(w, m->domain);
}

paramo_err register_call_decode(struct reader *r, struct register_call *m)
{
    *m = (struct register_call){0};
    m->role = read_u32(r);
    m->node = read_u32(r);
    m->port = read_u16(r);
    m->shards = read_u16(r);
    m->rank = (int32_t)read_u32(r);
    m->timeout_ms = read_u32(r);
    read_string(r, m->host, sizeof m->host);
    read_string(r, m->name, sizeof m->name);
    m->weight = read_u32(r);
    read_string(r, m->domain, sizeof m->domain);
    paramo_err err = call_body_end(r, "REGISTER");
    if (err)
        return err;
    bool server = m->role == PARAMO_ROLE_SERVER;
    if ((m->role != PARAMO_ROLE_SCHEDULER && m->role != PARAMO_ROLE_WORKER && !server) || m->rank < -1 ||
        (server ? m->shards == 0 || m->shards > REGISTER_SHARDS_MAX || m->port == 0 : m->shards != 0) ||
        (server ? m->weight == 0 || m->weight > REGISTER_WEIGHT_MAX : m->weight || m->domain[0]) ||
        m->timeout_ms > CALL_TIMEOUT_MAX_MS)
        return err_set(PARAMO_E_PROTOCOL, "REGISTER: a field is not valid");
    return PARAMO_OK;
}

void register_result_encode(const struct register_result *m, struct writer *w)
{
    write_u32(w, m->node);
    write_u8(w, m->recovered);
    write_u8(w, m->returns);
}

paramo_err register_result_decode(struct reader *r, struct register_result *m)
{
    m->node = read_u32(r);
    uint8_t recovered = read_u8(r), returns = read_u8(r);
    m->recovered = recovered == 1;
    m->returns = returns == 1;
    paramo_err err = call_body_end(r, "REGISTER's answer");
    if (!err && (recovered > 1 || returns > 1 || m->node == 0))
        return err_set(PARAMO_E_PROTOCOL, "REGISTER's answer: a field is not valid");
    return err;
}
