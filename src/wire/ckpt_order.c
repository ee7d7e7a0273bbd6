#include "wire/ckpt_order.h"

#include "wire/calls.h"

void ckpt_order_encode(const struct ckpt_order *m, struct writer *w)
{
    write_u64(w, m->number);
    write_u64(w, m->id);
    write_u64(w, m->base);
    write_u64(w, m->base_id);
    write_u32(w, m->timeout_ms);
    write_u8(w, m->changes);
    write_string(w, m->dir);
}

paramo_err ckpt_order_decode(struct reader *r, struct ckpt_order *m)
{
    m->number = read_u64(r);
    m->id = read_u64(r);
    m->base = read_u64(r);
    m->base_id = read_u64(r);
    m->timeout_ms = read_u32(r);
    uint8_t changes = read_u8(r);
    m->changes = changes == 1;
    read_string(r, m->dir, sizeof m->dir);
    paramo_err err = call_body_end(r, "CKPT");
    if (!err && m->dir[0] != '/')
        err = err_set(PARAMO_E_INVALID, "a checkpoint's folder must be an absolute path, not '%s'", m->dir);
    if (!err && m->timeout_ms > CALL_TIMEOUT_MAX_MS)
        err = err_set(PARAMO_E_PROTOCOL, "CKPT: a timeout of %u ms is too long", m->timeout_ms);
    if (!err && (changes > 1 || !m->base != !m->base_id || (m->base && m->base >= m->number)))
        err = err_set(PARAMO_E_PROTOCOL, "CKPT: its base is not valid");
    return err;
}

void ckpt_result_encode(const struct ckpt_result *m, struct writer *w)
{
    write_u64(w, m->number);
}

paramo_err ckpt_result_decode(struct reader *r, struct ckpt_result *m)
{
    m->number = read_u64(r);
    return call_body_end(r, "CKPT");
}

void ckpt_written_encode(const struct ckpt_written *m, struct writer *w)
{
    write_u32(w, m->count);
    for (uint32_t i = 0; i < m->count; i++) {
        write_string(w, m->file[i].name);
        write_u64(w, m->file[i].bytes);
        write_u64(w, m->file[i].blocks);
        write_u64(w, m->file[i].sum);
    }
}

paramo_err ckpt_written_decode(struct reader *r, struct ckpt_written *m)
{
    m->count = read_u32(r);
    if (m->count > CKPT_SHARDS_MAX)
        return err_set(PARAMO_E_PROTOCOL, "a checkpoint's result: %u files are too many", m->count);
    for (uint32_t i = 0; i < m->count; i++) {
        read_string(r, m->file[i].name, sizeof m->file[i].name);
        m->file[i].bytes = read_u64(r);
        m->file[i].blocks = read_u64(r);
        m->file[i].sum = read_u64(r);
    }
    return call_body_end(r, "CKPT");
}
