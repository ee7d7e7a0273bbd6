/*
 * The 80 bytes of a frame's header that are ours: kind, status and the numbers that identify a request. One
 * struct for all kinds; a field that a kind does not use is zero. Little-endian, fixed offsets, written down
 * in docs/PROTOCOL.md. Control messages put everything else into segment 0 (the body); data messages use
 * segments keys, lens, values, body. Tests: test/wire/test_head.c.
 */
#ifndef WIRE_HEAD_H
#define WIRE_HEAD_H

#include <stdint.h>

#include "base/err.h"
#include "van/van.h"

enum wire_kind {
    /* connection */
    WIRE_HELLO = 1,
    WIRE_WELCOME = 2,
    WIRE_REJECT = 3,
    /* member -> scheduler: calls with a call number, and their replies */
    WIRE_CALL = 8,
    WIRE_REPLY = 9,
    /* scheduler -> member, unasked */
    WIRE_VIEW = 10,
    WIRE_END = 11,
    WIRE_HEARTBEAT = 12,
    WIRE_ORDER = 13, /* wire/order.h */
    /* data: client -> shard */
    WIRE_PUSH = 32,
    WIRE_PULL = 33,
    WIRE_PUSHPULL = 34,
    WIRE_PROBE = 35,
    WIRE_SCAN = 36,
    WIRE_PUT = 37,
    WIRE_DELETE = 38,
    WIRE_CLEAR = 39,
    WIRE_STAT = 40,
    WIRE_BYE = 41,     /* this customer is closed: it used no number from `floor` on */
    WIRE_MESSAGE = 42, /* client -> app endpoint: an app request (paramo/app.h) */
    WIRE_FLOOR = 43,   /* its floor, while it has nothing to send; not answered */
    /* data: shard -> client; the status says how it went (OK, MOVED, NODE_LOST ...) */
    WIRE_ANSWER = 48,
    WIRE_PROBE_ANSWER = 49,
    /* between the members of a chain (chain.h) */
    WIRE_CHAIN = 50,
    WIRE_CHAIN_ACK = 51,
    WIRE_CHAIN_REFUSED = 52,
    WIRE_CHAIN_BEAT = 53,
    WIRE_MIGRATION = 54 /* in the stream of a migration (migration.h), with CHAIN */
};

enum wire_flags {
    WIRE_LENS = 1,   /* segment 1 holds lens */
    WIRE_CREATE = 2, /* pull creates missing rows */
    WIRE_STATE = 4,  /* rows with optimizer state */
    WIRE_COLUMNS = 8 /* columns [column, column + columns) of one row */
};

/* Segments of data messages. */
enum { WIRE_SEG_KEYS = 0, WIRE_SEG_LENS = 1, WIRE_SEG_VALS = 2, WIRE_SEG_BODY = 3 };

struct wire_head {
    uint8_t kind;
    uint8_t flags;
    uint16_t status;  /* answers: a paramo_err */
    uint32_t table;   /* or, control: call kind */
    uint64_t number;  /* the chunk's number (exactly-once); control: call number */
    uint64_t floor;   /* the sender's lowest unanswered number */
    uint64_t ts;      /* the request's timestamp within its customer */
    uint64_t view;    /* number of the view by which the sender sliced */
    uint32_t attempt; /* raised each time the chunk is sliced again */
    uint32_t slice;   /* which slice of this attempt; an answer repeats both */
    int32_t cmd;
    uint32_t count; /* keys */
    uint32_t column, columns;
    uint64_t spare[2]; /* zero */
};

void wire_head_encode(const struct wire_head *head, uint8_t out[VAN_HEAD]);
/* PROTOCOL if the kind or a flag is unknown, or a spare field is not zero. */
MUST_USE paramo_err wire_head_decode(const uint8_t in[VAN_HEAD], struct wire_head *head);
const char *wire_kind_name(unsigned kind);

#endif
