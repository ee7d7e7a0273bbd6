#include "wire/pool_calls.h"

#include "wire/calls.h"

static void unit_encode(const struct work_unit *unit, struct writer *w)
{
    write_u32(w, unit->stream);
    write_u32(w, unit->round);
    write_u64(w, unit->index);
    write_u64(w, unit->token);
}

static void unit_decode(struct reader *r, struct work_unit *unit)
{
    unit->stream = read_u32(r);
    unit->round = read_u32(r);
    unit->index = read_u64(r);
    unit->token = read_u64(r);
}

void pool_open_encode(const struct pool_open *m, struct writer *w)
{
    write_string(w, m->name);
    write_u32(w, m->streams);
    write_u32(w, m->rounds);
}

paramo_err pool_open_decode(struct reader *r, struct pool_open *m)
{
    read_string(r, m->name, sizeof m->name);
    m->streams = read_u32(r);
    m->rounds = read_u32(r);
    paramo_err err = call_body_end(r, "POOL_OPEN");
    if (!err && (!m->name[0] || m->streams == 0 || m->streams > POOL_STREAMS_MAX || m->rounds == 0 ||
                 m->rounds > POOL_ROUNDS_MAX))
        return err_set(PARAMO_E_PROTOCOL, "POOL_OPEN: a field is not valid");
    return err;
}

void pool_next_encode(const struct pool_next *m, struct writer *w)
{
    write_string(w, m->name);
    write_u32(w, m->customer);
    write_u32(w, m->round);
    write_u32(w, m->timeout_ms);
}

paramo_err pool_next_decode(struct reader *r, struct pool_next *m)
{
    read_string(r, m->name, sizeof m->name);
    m->customer = read_u32(r);
    m->round = read_u32(r);
    m->timeout_ms = read_u32(r);
    paramo_err err = call_body_end(r, "POOL_NEXT");
    if (!err && m->timeout_ms > CALL_TIMEOUT_MAX_MS)
        return err_set(PARAMO_E_PROTOCOL, "POOL_NEXT: a field is not valid");
    return err;
}

void pool_next_result_encode(const struct pool_next_result *m, struct writer *w)
{
    write_u8(w, m->state);
    unit_encode(&m->unit, w);
    write_u64(w, m->view);
}

paramo_err pool_next_result_decode(struct reader *r, struct pool_next_result *m)
{
    m->state = read_u8(r);
    unit_decode(r, &m->unit);
    m->view = read_u64(r);
    paramo_err err = call_body_end(r, "POOL_NEXT's answer");
    if (!err && m->state > POOL_FINISHED)
        return err_set(PARAMO_E_PROTOCOL, "POOL_NEXT's answer: a field is not valid");
    return err;
}

void pool_report_encode(const struct pool_report *m, struct writer *w)
{
    write_string(w, m->name);
    unit_encode(&m->unit, w);
}

paramo_err pool_report_decode(struct reader *r, struct pool_report *m)
{
    read_string(r, m->name, sizeof m->name);
    unit_decode(r, &m->unit);
    return call_body_end(r, "report of a work unit");
}
