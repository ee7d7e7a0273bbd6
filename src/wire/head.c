#include "wire/head.h"

#include <string.h>

/* Offsets of the fields, as docs/PROTOCOL.md has them. */
enum {
    AT_KIND = 0,
    AT_FLAGS = 1,
    AT_STATUS = 2,
    AT_TABLE = 4,
    AT_NUMBER = 8,
    AT_FLOOR = 16,
    AT_TS = 24,
    AT_VIEW = 32,
    AT_ATTEMPT = 40,
    AT_SLICE = 44,
    AT_CMD = 48,
    AT_COUNT = 52,
    AT_COLUMN = 56,
    AT_COLUMNS = 60,
    AT_SPARE = 64
};
_Static_assert(AT_SPARE + 16 == VAN_HEAD, "the fields fill the header");

enum { WIRE_FLAGS_ALL = WIRE_LENS | WIRE_CREATE | WIRE_STATE | WIRE_COLUMNS };

/* Byte by byte: compilers make one store (load) of each on little-endian machines. */
static void put16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static void put32(uint8_t *p, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static void put64(uint8_t *p, uint64_t v)
{
    for (unsigned i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get64(const uint8_t *p)
{
    return (uint64_t)get32(p) | (uint64_t)get32(p + 4) << 32;
}

static const char *const names[] = {
    [WIRE_HELLO] = "HELLO",
    [WIRE_WELCOME] = "WELCOME",
    [WIRE_REJECT] = "REJECT",
    [WIRE_CALL] = "CALL",
    [WIRE_REPLY] = "REPLY",
    [WIRE_VIEW] = "VIEW",
    [WIRE_END] = "END",
    [WIRE_HEARTBEAT] = "HEARTBEAT",
    [WIRE_ORDER] = "ORDER",
    [WIRE_PUSH] = "PUSH",
    [WIRE_PULL] = "PULL",
    [WIRE_PUSHPULL] = "PUSHPULL",
    [WIRE_PROBE] = "PROBE",
    [WIRE_SCAN] = "SCAN",
    [WIRE_PUT] = "PUT",
    [WIRE_DELETE] = "DELETE",
    [WIRE_CLEAR] = "CLEAR",
    [WIRE_STAT] = "STAT",
    [WIRE_BYE] = "BYE",
    [WIRE_MESSAGE] = "MESSAGE",
    [WIRE_FLOOR] = "FLOOR",
    [WIRE_ANSWER] = "ANSWER",
    [WIRE_PROBE_ANSWER] = "PROBE_ANSWER",
    [WIRE_CHAIN] = "CHAIN",
    [WIRE_CHAIN_ACK] = "CHAIN_ACK",
    [WIRE_CHAIN_REFUSED] = "CHAIN_REFUSED",
    [WIRE_CHAIN_BEAT] = "CHAIN_BEAT",
    [WIRE_MIGRATION] = "MIGRATION",
};

void wire_head_encode(const struct wire_head *h, uint8_t out[VAN_HEAD])
{
    out[AT_KIND] = h->kind;
    out[AT_FLAGS] = h->flags;
    put16(out + AT_STATUS, h->status);
    put32(out + AT_TABLE, h->table);
    put64(out + AT_NUMBER, h->number);
    put64(out + AT_FLOOR, h->floor);
    put64(out + AT_TS, h->ts);
    put64(out + AT_VIEW, h->view);
    put32(out + AT_ATTEMPT, h->attempt);
    put32(out + AT_SLICE, h->slice);
    put32(out + AT_CMD, (uint32_t)h->cmd);
    put32(out + AT_COUNT, h->count);
    put32(out + AT_COLUMN, h->column);
    put32(out + AT_COLUMNS, h->columns);
    put64(out + AT_SPARE, h->spare[0]);
    put64(out + AT_SPARE + 8, h->spare[1]);
}

paramo_err wire_head_decode(const uint8_t in[VAN_HEAD], struct wire_head *h)
{
    unsigned kind = in[AT_KIND], flags = in[AT_FLAGS];
    if (kind >= sizeof names / sizeof names[0] || !names[kind])
        return err_set(PARAMO_E_PROTOCOL, "message of unknown kind %u", kind);
    if (flags & ~(unsigned)WIRE_FLAGS_ALL)
        return err_set(PARAMO_E_PROTOCOL, "%s with unknown flags 0x%x", names[kind], flags);
    if (get64(in + AT_SPARE) || get64(in + AT_SPARE + 8))
        return err_set(PARAMO_E_PROTOCOL, "%s with spare fields in use", names[kind]);
    h->kind = (uint8_t)kind;
    h->flags = (uint8_t)flags;
    h->status = get16(in + AT_STATUS);
    h->table = get32(in + AT_TABLE);
    h->number = get64(in + AT_NUMBER);
    h->floor = get64(in + AT_FLOOR);
    h->ts = get64(in + AT_TS);
    h->view = get64(in + AT_VIEW);
    h->attempt = get32(in + AT_ATTEMPT);
    h->slice = get32(in + AT_SLICE);
    h->cmd = (int32_t)get32(in + AT_CMD);
    h->count = get32(in + AT_COUNT);
    h->column = get32(in + AT_COLUMN);
    h->columns = get32(in + AT_COLUMNS);
    h->spare[0] = h->spare[1] = 0;
    return PARAMO_OK;
}

const char *wire_kind_name(unsigned kind)
{
    if (kind < sizeof names / sizeof names[0] && names[kind])
        return names[kind];
    return "unknown";
}
