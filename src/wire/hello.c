#include "wire/hello.h"

#include <string.h>

#include "wire/calls.h"

/* Capabilities come last, and only if there are any. So a build without them writes and reads the same bytes as older
 * builds, which do not know them. */
static void capabilities_encode(uint64_t capabilities, struct writer *w)
{
    if (capabilities)
        write_u64(w, capabilities);
}

static uint64_t capabilities_decode(struct reader *r)
{
    if (!r->left || r->failed)
        return 0;
    uint64_t capabilities = read_u64(r);
    r->failed |= !capabilities; /* none take no bytes */
    return capabilities;
}

void hello_encode(const struct hello *m, struct writer *w)
{
    write_u16(w, m->version_min);
    write_u16(w, m->version_max);
    write_u8(w, m->purpose);
    write_u32(w, m->node);
    write_u64(w, m->incarnation);
    write_u64(w, m->job);
    write_u32(w, m->app);
    write_u32(w, m->customer);
    write_u16(w, m->shard);
    write_string(w, m->token);
    capabilities_encode(m->capabilities, w);
}

paramo_err hello_decode(struct reader *r, struct hello *m)
{
    *m = (struct hello){0};
    m->version_min = read_u16(r);
    m->version_max = read_u16(r);
    m->purpose = read_u8(r);
    m->node = read_u32(r);
    m->incarnation = read_u64(r);
    m->job = read_u64(r);
    m->app = read_u32(r);
    m->customer = read_u32(r);
    m->shard = read_u16(r);
    read_string(r, m->token, sizeof m->token);
    m->capabilities = capabilities_decode(r);
    paramo_err err = call_body_end(r, "HELLO");
    if (err)
        return err;
    if (m->version_min > m->version_max || m->incarnation == 0 || m->purpose < HELLO_CONTROL ||
        m->purpose > HELLO_MIGRATION)
        return err_set(PARAMO_E_PROTOCOL, "HELLO: a field is not valid");
    return PARAMO_OK;
}

void welcome_encode(const struct welcome *m, struct writer *w)
{
    write_u16(w, m->version);
    write_u64(w, m->job);
    write_u64(w, m->incarnation);
    capabilities_encode(m->capabilities, w);
}

paramo_err welcome_decode(struct reader *r, struct welcome *m)
{
    m->version = read_u16(r);
    m->job = read_u64(r);
    m->incarnation = read_u64(r);
    m->capabilities = capabilities_decode(r);
    return call_body_end(r, "WELCOME");
}

void reject_encode(paramo_err code, const char *text, struct writer *w)
{
    char cut[HELLO_TEXT_MAX];
    size_t len = strnlen(text, sizeof cut - 1);
    memcpy(cut, text, len);
    cut[len] = '\0';
    write_u16(w, (uint16_t)code);
    write_string(w, cut);
}

paramo_err reject_decode(struct reader *r, paramo_err *code)
{
    char text[HELLO_TEXT_MAX];
    unsigned number = read_u16(r);
    read_string(r, text, sizeof text);
    paramo_err err = call_body_end(r, "REJECT");
    if (err)
        return err;
    *code = err_from_wire(number);
    if (*code == PARAMO_OK)
        return err_set(PARAMO_E_PROTOCOL, "REJECT has no reason");
    (void)err_set(*code, "%s", text);
    return PARAMO_OK;
}
