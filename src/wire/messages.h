/*
 * The table of messages: for each its number, class, direction, segments, the version of the protocol that
 * first had it, and the layout of its header (head.h). What arrives is checked against it. It never knows what
 * nodes do with a message. Tests: test/wire/test_head.c.
 */
#ifndef WIRE_MESSAGES_H
#define WIRE_MESSAGES_H

#include <stdint.h>

enum wire_class {
    WIRE_CLASS_CONNECTION = 1, /* the handshake */
    WIRE_CLASS_CONTROL,        /* between members and the scheduler: the body is segment 0 */
    WIRE_CLASS_DATA,           /* requests to a shard or an app endpoint: answered */
    WIRE_CLASS_FLOOR,          /* to the same; not answered */
    WIRE_CLASS_ANSWER,
    WIRE_CLASS_CHAIN /* between shards */
};

/* What sends and receives it. */
enum wire_side {
    WIRE_CONNECTOR = 1, /* of any connection */
    WIRE_ACCEPTOR,
    WIRE_MEMBER, /* or an admin client */
    WIRE_SCHEDULER,
    WIRE_EITHER, /* member and scheduler, to each other */
    WIRE_CLIENT,
    WIRE_SHARD,       /* or an app endpoint */
    WIRE_PREDECESSOR, /* in a chain; also the source of a migration */
    WIRE_SUCCESSOR    /* in a chain; also the target of a migration */
};

/* Segments of data messages; a control message's body is segment 0. */
enum { WIRE_SEG_KEYS = 0, WIRE_SEG_LENS = 1, WIRE_SEG_VALS = 2, WIRE_SEG_BODY = 3 };
/* Which of them a message may have. */
enum wire_segs {
    WIRE_SEGS_NONE = 0,
    WIRE_SEGS_FIRST = 1,
    WIRE_SEGS_ROWS = 7,
    WIRE_SEGS_BODY = 8,
    WIRE_SEGS_KEYS_BODY = 9,
    WIRE_SEGS_ALL = 15
};

/* X(name, number, class, from, to, segments, since, layout): one line for each message. `since` is the
 * version of the protocol that first had it as it is; `layout` names the struct of its header. */
#define WIRE_MESSAGES(X)                                                                                     \
    X(HELLO, 1, CONNECTION, CONNECTOR, ACCEPTOR, FIRST, 1, plain)                                            \
    X(WELCOME, 2, CONNECTION, ACCEPTOR, CONNECTOR, FIRST, 1, plain)                                          \
    X(REJECT, 3, CONNECTION, ACCEPTOR, CONNECTOR, FIRST, 1, plain)                                           \
    X(CALL, 8, CONTROL, MEMBER, SCHEDULER, FIRST, 1, call)                                                   \
    X(REPLY, 9, CONTROL, SCHEDULER, MEMBER, FIRST, 1, reply)                                                 \
    X(VIEW, 10, CONTROL, SCHEDULER, MEMBER, FIRST, 1, plain)                                                 \
    X(END, 11, CONTROL, SCHEDULER, MEMBER, FIRST, 1, plain)                                                  \
    X(HEARTBEAT, 12, CONTROL, EITHER, EITHER, FIRST, 1, heartbeat)                                           \
    X(ORDER, 13, CONTROL, SCHEDULER, MEMBER, FIRST, 3, order)                                                \
    X(PUSH, 32, DATA, CLIENT, SHARD, ROWS, 1, request)                                                       \
    X(PULL, 33, DATA, CLIENT, SHARD, FIRST, 1, request)                                                      \
    X(PUSHPULL, 34, DATA, CLIENT, SHARD, ROWS, 1, request)                                                   \
    X(PROBE, 35, DATA, CLIENT, SHARD, NONE, 1, request)                                                      \
    X(SCAN, 36, DATA, CLIENT, SHARD, FIRST, 3, request)                                                      \
    X(PUT, 37, DATA, CLIENT, SHARD, ROWS, 1, request)                                                        \
    X(DELETE, 38, DATA, CLIENT, SHARD, FIRST, 1, request)                                                    \
    X(CLEAR, 39, DATA, CLIENT, SHARD, NONE, 1, request)                                                      \
    X(STAT, 40, DATA, CLIENT, SHARD, NONE, 1, request)                                                       \
    X(BYE, 41, FLOOR, CLIENT, SHARD, NONE, 3, request)                                                       \
    X(MESSAGE, 42, DATA, CLIENT, SHARD, ALL, 1, request)                                                     \
    X(FLOOR, 43, FLOOR, CLIENT, SHARD, NONE, 3, request)                                                     \
    X(REDUCE, 44, DATA, CLIENT, SHARD, BODY, 4, request)                                                     \
    X(TRANSFORM, 45, DATA, CLIENT, SHARD, KEYS_BODY, 4, request)                                             \
    X(ANSWER, 48, ANSWER, SHARD, CLIENT, ALL, 1, request)                                                    \
    X(PROBE_ANSWER, 49, ANSWER, SHARD, CLIENT, NONE, 1, request)                                             \
    X(CHAIN, 50, CHAIN, PREDECESSOR, SUCCESSOR, ALL, 3, chain)                                               \
    X(CHAIN_ACK, 51, CHAIN, SUCCESSOR, PREDECESSOR, FIRST, 3, chain_ack)                                     \
    X(CHAIN_REFUSED, 52, CHAIN, SUCCESSOR, PREDECESSOR, NONE, 3, plain)                                      \
    X(CHAIN_BEAT, 53, CHAIN, PREDECESSOR, SUCCESSOR, NONE, 3, chain_beat)                                    \
    X(MIGRATION, 54, CHAIN, PREDECESSOR, SUCCESSOR, FIRST, 3, migration)

enum wire_kind {
#define WIRE_KIND(name, number, ...) WIRE_##name = (number),
    WIRE_MESSAGES(WIRE_KIND)
#undef WIRE_KIND
};

/* LAYOUT_plain is struct wire_plain of head.h, and so on; LAYOUT_request is the unnamed struct in struct wire_head. */
enum wire_layout {
    LAYOUT_request = 1,
    LAYOUT_plain,
    LAYOUT_call,
    LAYOUT_reply,
    LAYOUT_heartbeat,
    LAYOUT_order,
    LAYOUT_chain,
    LAYOUT_chain_ack,
    LAYOUT_chain_beat,
    LAYOUT_migration
};

struct wire_message {
    const char *name; /* NULL: there is no message of this number */
    enum wire_class class;
    enum wire_side from, to;
    uint8_t segs; /* a bit for each segment that it may have */
    uint8_t since;
    enum wire_layout layout;
};

enum { WIRE_KINDS = 64 };
/* By kind. */
extern const struct wire_message wire_messages[WIRE_KINDS];

#endif
