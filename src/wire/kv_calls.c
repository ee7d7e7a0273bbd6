#include "wire/kv_calls.h"

#include "wire/calls.h"

void kv_put_encode(const struct kv_put *m, struct writer *w)
{
    write_string(w, m->key);
    write_u32(w, m->len);
    write_bytes(w, m->value, m->len);
}

paramo_err kv_put_decode(struct reader *r, struct kv_put *m)
{
    read_string(r, m->key, sizeof m->key);
    m->len = read_u32(r);
    m->value = read_span(r, m->len);
    paramo_err err = call_body_end(r, "KV_PUT");
    if (!err && (!m->key[0] || m->len > KV_VALUE_MAX))
        return err_set(PARAMO_E_PROTOCOL, "KV_PUT: a field is not valid");
    return err;
}

void kv_get_encode(const struct kv_get *m, struct writer *w)
{
    write_string(w, m->key);
    write_u32(w, m->timeout_ms);
}

paramo_err kv_get_decode(struct reader *r, struct kv_get *m)
{
    read_string(r, m->key, sizeof m->key);
    m->timeout_ms = read_u32(r);
    paramo_err err = call_body_end(r, "KV_GET");
    if (!err && (!m->key[0] || m->timeout_ms > CALL_TIMEOUT_MAX_MS))
        return err_set(PARAMO_E_PROTOCOL, "KV_GET: a field is not valid");
    return err;
}

void kv_delete_encode(const struct kv_delete *m, struct writer *w)
{
    write_string(w, m->key);
}

paramo_err kv_delete_decode(struct reader *r, struct kv_delete *m)
{
    read_string(r, m->key, sizeof m->key);
    paramo_err err = call_body_end(r, "KV_DELETE");
    if (!err && !m->key[0])
        return err_set(PARAMO_E_PROTOCOL, "KV_DELETE: the key is empty");
    return err;
}
