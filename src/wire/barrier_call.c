#include "wire/barrier_call.h"

#include "paramo/types.h"
#include "wire/calls.h"

void barrier_call_encode(const struct barrier_call *m, struct writer *w)
{
    write_u32(w, m->group);
    write_u32(w, m->customer);
    write_u32(w, m->timeout_ms);
}

paramo_err barrier_call_decode(struct reader *r, struct barrier_call *m)
{
    m->group = read_u32(r);
    m->customer = read_u32(r);
    m->timeout_ms = read_u32(r);
    paramo_err err = call_body_end(r, "BARRIER");
    if (!err && (m->group == 0 || m->group > PARAMO_GROUP_ALL || m->timeout_ms > CALL_TIMEOUT_MAX_MS))
        return err_set(PARAMO_E_PROTOCOL, "BARRIER: a field is not valid");
    return err;
}

void barrier_result_encode(const struct barrier_result *m, struct writer *w)
{
    write_u64(w, m->number);
}

paramo_err barrier_result_decode(struct reader *r, struct barrier_result *m)
{
    m->number = read_u64(r);
    return call_body_end(r, "BARRIER's answer");
}
