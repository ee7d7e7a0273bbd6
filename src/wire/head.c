#include "wire/head.h"

#include <stddef.h>
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
    AT_CLOCK = 64,
    AT_FILTER_EPOCH = 72,
    AT_SPARE = 74,
    AT_WORKERS = 76
};
_Static_assert(AT_WORKERS + 4 == VAN_HEAD, "the fields fill the header");

enum {
    WIRE_FLAGS_ALL = WIRE_LENS | WIRE_CREATE | WIRE_STATE | WIRE_COLUMNS | WIRE_FILTERED | WIRE_KEYS |
                     WIRE_RANGE | WIRE_CLOCKED
};

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

const struct wire_message wire_messages[WIRE_KINDS] = {
#define MESSAGE_ROW(name, number, class, from, to, segments, since, layout)                                  \
    [WIRE_##name] = {#name, WIRE_CLASS_##class, WIRE_##from, WIRE_##to, WIRE_SEGS_##segments,                \
                     since, LAYOUT_##layout},
    WIRE_MESSAGES(MESSAGE_ROW)
#undef MESSAGE_ROW
};

/* Every layout fills the header, and has its fields where the first one has them. */
#define SAME_PLACE(layout, field, as)                                                                        \
    _Static_assert(offsetof(struct wire_##layout, field) == offsetof(struct wire_head, as) &&                \
                       sizeof(((struct wire_##layout *)0)->field) == sizeof(((struct wire_head *)0)->as),    \
                   #layout "." #field);
#define FILLS(layout) _Static_assert(sizeof(struct wire_##layout) == VAN_HEAD, #layout);
_Static_assert(sizeof(struct wire_head) == VAN_HEAD, "the layouts fill the header");
FILLS(plain)
SAME_PLACE(plain, view, view)
FILLS(call)
SAME_PLACE(call, what, table)
SAME_PLACE(call, number, number)
SAME_PLACE(call, floor, floor)
SAME_PLACE(call, view, view)
FILLS(reply)
SAME_PLACE(reply, status, status)
SAME_PLACE(reply, what, table)
SAME_PLACE(reply, number, number)
SAME_PLACE(reply, view, view)
FILLS(heartbeat)
SAME_PLACE(heartbeat, floor, floor)
SAME_PLACE(heartbeat, view, view)
FILLS(order)
SAME_PLACE(order, what, table)
SAME_PLACE(order, id, number)
SAME_PLACE(order, floor, floor)
SAME_PLACE(order, view, view)
FILLS(chain)
SAME_PLACE(chain, what, status)
SAME_PLACE(chain, number, number)
SAME_PLACE(chain, floor, floor)
SAME_PLACE(chain, seq, ts)
SAME_PLACE(chain, view, view)
SAME_PLACE(chain, request, cmd)
SAME_PLACE(chain, count, count)
SAME_PLACE(chain, columns, columns)
SAME_PLACE(chain, clock, clock)
SAME_PLACE(chain, workers, workers)
FILLS(chain_ack)
SAME_PLACE(chain_ack, status, status)
SAME_PLACE(chain_ack, received, number)
SAME_PLACE(chain_ack, clock, floor)
SAME_PLACE(chain_ack, acked, ts)
SAME_PLACE(chain_ack, view, view)
FILLS(chain_beat)
SAME_PLACE(chain_beat, clock, number)
SAME_PLACE(chain_beat, view, view)
FILLS(migration)
SAME_PLACE(migration, step, status)
SAME_PLACE(migration, id, number)
SAME_PLACE(migration, seq, ts)
SAME_PLACE(migration, view, view)
SAME_PLACE(migration, partitions, columns)

static bool scans_columns(unsigned kind, unsigned flags)
{
    return kind == WIRE_SCAN && flags & WIRE_COLUMNS;
}

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
    put32(out + AT_COLUMN, h->columns.first);
    put32(out + AT_COLUMNS, h->columns.count);
    if (scans_columns(h->kind, h->flags)) {
        put32(out + AT_CLOCK, h->scan_columns.first);
        put32(out + AT_CLOCK + 4, h->scan_columns.count);
    } else {
        put64(out + AT_CLOCK, h->clock);
    }
    put32(out + AT_FILTER_EPOCH, h->filter_epoch);
    put32(out + AT_WORKERS, h->workers);
}

static bool has_epoch(unsigned kind)
{
    return wire_messages[kind].class == WIRE_CLASS_DATA || kind == WIRE_PROBE_ANSWER;
}

/* Kinds with keys and values that filters work on. */
static bool may_be_filtered(unsigned kind)
{
    return kind == WIRE_PUSH || kind == WIRE_PULL || kind == WIRE_PUSHPULL || kind == WIRE_ANSWER;
}

static bool may_be_clocked(unsigned kind)
{
    return kind == WIRE_PUSH || kind == WIRE_PULL || kind == WIRE_CHAIN;
}

paramo_err wire_head_decode(const uint8_t in[VAN_HEAD], struct wire_head *h)
{
    unsigned kind = in[AT_KIND], flags = in[AT_FLAGS];
    if (kind >= WIRE_KINDS || !wire_messages[kind].name)
        return err_set(PARAMO_E_PROTOCOL, "a message has the unknown kind %u", kind);
    if (flags & ~(unsigned)WIRE_FLAGS_ALL)
        return err_set(PARAMO_E_PROTOCOL, "%s has unknown flags 0x%x", wire_messages[kind].name, flags);
    if (flags & WIRE_FILTERED && !may_be_filtered(kind))
        return err_set(PARAMO_E_PROTOCOL, "%s is filtered, which it cannot be", wire_messages[kind].name);
    if (flags & WIRE_RANGE && (kind == WIRE_ANSWER || !may_be_filtered(kind)))
        return err_set(PARAMO_E_PROTOCOL, "%s has a range of keys, which it cannot have",
                       wire_messages[kind].name);
    if (flags & WIRE_CLOCKED && !may_be_clocked(kind))
        return err_set(PARAMO_E_PROTOCOL, "%s has a clock, which it cannot have", wire_messages[kind].name);
    if (get16(in + AT_SPARE) ||
        (!(flags & WIRE_CLOCKED) &&
         ((get64(in + AT_CLOCK) && !scans_columns(kind, flags)) || get32(in + AT_WORKERS))) ||
        (get16(in + AT_FILTER_EPOCH) && !has_epoch(kind)))
        return err_set(PARAMO_E_PROTOCOL, "%s has values in spare fields", wire_messages[kind].name);
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
    h->columns.first = get32(in + AT_COLUMN);
    h->columns.count = get32(in + AT_COLUMNS);
    if (scans_columns(kind, flags))
        h->scan_columns =
            (struct wire_columns){.first = get32(in + AT_CLOCK), .count = get32(in + AT_CLOCK + 4)};
    else
        h->clock = get64(in + AT_CLOCK);
    h->filter_epoch = get16(in + AT_FILTER_EPOCH);
    h->spare16 = 0;
    h->workers = get32(in + AT_WORKERS);
    return PARAMO_OK;
}

paramo_err wire_open(const uint8_t in[VAN_HEAD], const struct van_seg *seg, unsigned nseg,
                     struct wire_head *h)
{
    paramo_err err = wire_head_decode(in, h);
    unsigned segs = err ? 0 : wire_messages[h->kind].segs;
    if (!err && h->flags & WIRE_FILTERED)
        segs |= 1u << WIRE_SEG_BODY; /* the envelope */
    for (unsigned i = 0; i < nseg && !err; i++)
        if (seg[i].len && !(segs >> i & 1))
            err = err_set(PARAMO_E_PROTOCOL, "%s has %llu bytes in segment %u, which it does not use",
                          wire_messages[h->kind].name, (unsigned long long)seg[i].len, i);
    return err;
}

const char *wire_kind_name(unsigned kind)
{
    return kind < WIRE_KINDS && wire_messages[kind].name ? wire_messages[kind].name : "unknown";
}
