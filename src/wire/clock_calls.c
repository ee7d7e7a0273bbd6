#include "wire/clock_calls.h"

#include "wire/calls.h"

static paramo_err checked(const struct reader *r, const char *message, uint64_t session, uint64_t clock)
{
    paramo_err err = call_body_end(r, message);
    if (!err && (session == 0 || session >= CLOCK_COUNT_MAX || clock >= CLOCK_COUNT_MAX))
        return err_set(PARAMO_E_PROTOCOL, "%s: a field is not valid", message);
    return err;
}

static void workers_encode(uint32_t workers, struct writer *w)
{
    if (workers)
        write_u32(w, workers);
}

static uint32_t workers_decode(struct reader *r)
{
    if (!r->left)
        return 0;
    uint32_t workers = read_u32(r);
    r->failed |= !workers; /* none take no bytes */
    return workers;
}

void clock_join_encode(const struct clock_join *m, struct writer *w)
{
    write_u32(w, m->customer);
}

paramo_err clock_join_decode(struct reader *r, struct clock_join *m)
{
    m->customer = read_u32(r);
    return call_body_end(r, "CLOCK_JOIN");
}

void clock_joined_encode(const struct clock_joined *m, struct writer *w)
{
    write_u64(w, m->session);
    write_u64(w, m->minimum);
    workers_encode(m->workers, w);
}

paramo_err clock_joined_decode(struct reader *r, struct clock_joined *m)
{
    m->session = read_u64(r);
    m->minimum = read_u64(r);
    m->workers = workers_decode(r);
    return checked(r, "CLOCK_JOIN's answer", m->session, m->minimum);
}

void clock_tell_encode(const struct clock_tell *m, struct writer *w)
{
    write_u64(w, m->session);
    write_u64(w, m->clock);
}

paramo_err clock_tell_decode(struct reader *r, struct clock_tell *m)
{
    m->session = read_u64(r);
    m->clock = read_u64(r);
    return checked(r, "CLOCK_TELL", m->session, m->clock);
}

void clock_wait_encode(const struct clock_wait *m, struct writer *w)
{
    write_u64(w, m->session);
    write_u64(w, m->clock);
    write_u32(w, m->timeout_ms);
}

paramo_err clock_wait_decode(struct reader *r, struct clock_wait *m)
{
    m->session = read_u64(r);
    m->clock = read_u64(r);
    m->timeout_ms = read_u32(r);
    paramo_err err = checked(r, "CLOCK_WAIT", m->session, m->clock);
    if (!err && m->timeout_ms > CALL_TIMEOUT_MAX_MS)
        return err_set(PARAMO_E_PROTOCOL, "CLOCK_WAIT: a field is not valid");
    return err;
}

void clock_leave_encode(const struct clock_leave *m, struct writer *w)
{
    write_u64(w, m->session);
}

paramo_err clock_leave_decode(struct reader *r, struct clock_leave *m)
{
    m->session = read_u64(r);
    return checked(r, "CLOCK_LEAVE", m->session, 0);
}

void clock_result_encode(const struct clock_result *m, struct writer *w)
{
    write_u64(w, m->minimum);
    write_u32(w, m->node);
    write_u32(w, m->customer);
    workers_encode(m->workers, w);
}

paramo_err clock_result_decode(struct reader *r, struct clock_result *m)
{
    m->minimum = read_u64(r);
    m->node = read_u32(r);
    m->customer = read_u32(r);
    m->workers = workers_decode(r);
    return checked(r, "the answer with the minimum of the clocks", 1, m->minimum);
}
