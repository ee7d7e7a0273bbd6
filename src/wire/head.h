/*
 * The 80 bytes of a frame's header that the van carries unread: kind, status and the numbers that identify a request.
 * Little-endian, fixed offsets, written down in docs/PROTOCOL.md. One struct for each layout of messages.h, in
 * which a field has the name of what it means there. All lie over each other, so nothing is copied to read
 * one. A field that a message does not have is zero, and is named zero. Control messages put everything else
 * into segment 0 (the body); data messages use segments keys, lens, values, body. It never knows what a message
 * does. Tests: test/wire/test_head.c.
 */
#ifndef WIRE_HEAD_H
#define WIRE_HEAD_H

#include "base/err.h"
#include "van/van.h"
#include "wire/messages.h"

enum wire_flags {
    WIRE_LENS = 1,      /* segment 1 holds lens */
    WIRE_CREATE = 2,    /* pull creates missing rows */
    WIRE_STATE = 4,     /* rows with optimizer state */
    WIRE_COLUMNS = 8,   /* columns of each row: .columns; SCAN: .scan_columns */
    WIRE_KEYS = 32,     /* SCAN: keys only */
    WIRE_FILTERED = 16, /* the body says which filters to undo (filter/envelope.h) */
    WIRE_RANGE = 64,    /* PUSH, PULL, PUSHPULL: segment 0 holds a range of keys (key_range.h) */
    WIRE_CLOCKED = 128  /* PUSH, PULL of an aggregated table: .clock, .workers */
};

/* Flag COLUMNS of PUSH, PULL, PUSHPULL: [first, first + count) of each row. */
struct wire_columns {
    uint32_t first, count;
};
struct wire_partitions {
    uint32_t first, count;
};

/* HELLO, WELCOME, REJECT, END: all is in the body. VIEW, CHAIN_REFUSED: the view's number. */
struct wire_plain {
    uint8_t kind, zero8;
    uint16_t zero16;
    uint32_t zero32;
    uint64_t zero[3];
    uint64_t view;
    uint64_t rest[5];
};

struct wire_call {
    uint8_t kind, zero8;
    uint16_t zero16;
    uint32_t what;   /* enum call_kind */
    uint64_t number; /* of the call: per incarnation, from 1; REGISTER: 0 */
    uint64_t floor;  /* the caller's lowest unanswered call */
    uint64_t zero;
    uint64_t view; /* the newest that the caller has */
    uint64_t rest[5];
};

struct wire_reply {
    uint8_t kind, zero8;
    uint16_t status; /* a paramo_err */
    uint32_t what;   /* as in the call */
    uint64_t number; /* as in the call */
    uint64_t zero[2];
    uint64_t view; /* ADMIN_VIEW: number of the view */
    uint64_t rest[5];
};

struct wire_heartbeat {
    uint8_t kind, zero8;
    uint16_t zero16;
    uint32_t zero32;
    uint64_t zero;
    uint64_t floor; /* of the member's calls */
    uint64_t zero64;
    uint64_t view; /* the newest that the sender has */
    uint64_t rest[5];
};

struct wire_order {
    uint8_t kind, zero8;
    uint16_t zero16;
    uint32_t what;  /* enum order_what */
    uint64_t id;    /* rising, of this member */
    uint64_t floor; /* the lowest id that the member has not answered */
    uint64_t zero;
    uint64_t view; /* that the order refers to */
    uint64_t rest[5];
};

struct wire_chain {
    uint8_t kind, flags;
    uint16_t what; /* enum chain_what */
    uint32_t table;
    uint64_t number, floor; /* UPDATE: of the request; FORGET: floor */
    uint64_t seq;           /* of the stream, from 1 */
    uint64_t view;          /* the sender's */
    uint64_t zero;
    int32_t request; /* UPDATE: its kind */
    uint32_t count;
    struct wire_columns columns;
    uint64_t clock; /* as in the request */
    uint32_t zero32, workers;
};

struct wire_chain_ack {
    uint8_t kind, zero8;
    uint16_t status; /* AGAIN: send what comes after `received` again */
    uint32_t zero32;
    uint64_t received; /* in order, here */
    uint64_t clock;    /* of the last CHAIN_BEAT that has come; 0: none */
    uint64_t acked;    /* all members after this one have it, too */
    uint64_t view;     /* of the acknowledging member */
    uint64_t rest[5];
};

struct wire_chain_beat {
    uint8_t kind, zero8;
    uint16_t zero16;
    uint32_t zero32;
    uint64_t clock; /* the sender's, not 0 */
    uint64_t zero[2];
    uint64_t view;
    uint64_t rest[5];
};

struct wire_migration {
    uint8_t kind, flags; /* zero */
    uint16_t step;       /* enum migration_what */
    uint32_t table;      /* ROWS, LOST */
    uint64_t id;         /* of the migration */
    uint64_t zero;
    uint64_t seq; /* of the stream, with CHAIN */
    uint64_t view;
    uint64_t zero64;
    int32_t zero32;
    uint32_t count;                    /* zero */
    struct wire_partitions partitions; /* BEGIN */
    uint64_t rest[2];
};

/* The header of any message; the table says which layout a kind has. */
struct wire_head {
    union {
        struct { /* LAYOUT_request: messages between clients and shards */
            uint8_t kind, flags;
            uint16_t status; /* ANSWER: a paramo_err */
            union {
                uint32_t table;
                uint32_t app; /* MESSAGE */
            };
            uint64_t number;  /* the chunk's number (exactly-once) */
            uint64_t floor;   /* the sender's lowest unanswered number; BYE: above all its numbers */
            uint64_t ts;      /* the request's timestamp within its customer */
            uint64_t view;    /* number of the view by which the sender sliced; ANSWER: of the shard */
            uint32_t attempt; /* raised each time the chunk is sliced again */
            uint32_t slice;   /* which slice of this attempt; an answer repeats both */
            int32_t cmd;
            uint32_t count; /* keys */
            union {         /* by kind */
                struct wire_columns columns;
                struct {
                    uint32_t most, id;
                } scan; /* SCAN; most: the rows wanted, if it has two keys; otherwise 0 */
                struct {
                    uint32_t more, zero;
                } batch; /* ANSWER to SCAN; more: the scan has rows left */
                struct {
                    uint32_t zero, kind;
                } probe; /* PROBE: the kind of the request asked about */
                struct {
                    uint32_t found, full;
                } probed; /* PROBE_ANSWER: enum probe_found; full: of PROBE_LACKS, enum probe_lacks */
                struct {
                    uint32_t customer, flags;
                } to; /* MESSAGE: the customer that gets it, and 32 bits of the app's own */
            };
            union {
                /* CLOCKED: the iteration that a PUSH is of; PULL: the last one that it sees */
                uint64_t clock;
                struct wire_columns scan_columns; /* SCAN with COLUMNS */
            };
            /* How often the connection's filters began again; requests to a shard, and PROBE_LACKS. */
            uint16_t filter_epoch;
            uint16_t spare16; /* zero */
            uint32_t workers; /* PUSH, CLOCKED: how many a mean is over, at least 1 */
        };
        struct wire_plain plain;
        struct wire_call call;
        struct wire_reply reply;
        struct wire_heartbeat heartbeat;
        struct wire_order order;
        struct wire_chain chain;
        struct wire_chain_ack chain_ack;
        struct wire_chain_beat chain_beat;
        struct wire_migration migration;
    };
};

void wire_head_encode(const struct wire_head *head, uint8_t out[VAN_HEAD]);
/* PROTOCOL if the kind or a flag is unknown, or a spare field is not zero. */
MUST_USE paramo_err wire_head_decode(const uint8_t in[VAN_HEAD], struct wire_head *head);
/* Of a whole frame: PROTOCOL, too, if it has a segment that its kind does not have. */
MUST_USE paramo_err wire_open(const uint8_t in[VAN_HEAD], const struct van_seg *seg, unsigned nseg,
                              struct wire_head *head);
const char *wire_kind_name(unsigned kind);

#endif
