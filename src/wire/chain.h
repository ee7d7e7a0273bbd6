/*
 * Messages between the members of a chain (docs/PROTOCOL.md): CHAIN carries one change from a member to the
 * next, CHAIN_ACK says what all members after it have, CHAIN_REFUSED that the sender's view is too old.
 * CHAIN_BEAT asks for a sign of life, which is the next CHAIN_ACK. In CHAIN, keys, lens and values are segments as in a
 * request; the rest is in the head and the body. It never knows views or tables. Tests: test/wire/test_chain.c,
 * fuzz/fuzz_messages.c.
 */
#ifndef WIRE_CHAIN_H
#define WIRE_CHAIN_H

#include <stdbool.h>

#include "wire/data.h"
#include "wire/partition_bits.h"
#include "wire/sender_id.h"

enum { CHAIN_BEYOND_MAX = 8 << 10 }; /* bytes of chain_ack.beyond: bits of 65,536 messages. Arbitrary */
enum { CHAIN_BODY_MIN = 40, CHAIN_BODY_MAX = CHAIN_BODY_MIN + PARTITION_BITS_BYTES };

/* No owner makes this many changes. So the order after any valid one fits into 64 bits, too. */
#define CHAIN_ORDER_MAX ((uint64_t)INT64_MAX)

enum chain_what {
    CHAIN_UPDATE = 1,   /* a request's change: PUSH, PUT, DELETE, CLEAR */
    CHAIN_TAKEOVER = 2, /* partitions: their owner is now origin; their records come from those of `from` */
    /* partitions: the sender has its answers below the floor, and is silent. What is below the floor is forgotten */
    CHAIN_FORGET = 3,
    CHAIN_COMBINED = 4 /* sums of the pushes of one clock to an aggregated table; CAPABILITY_AGGREGATE */
};

/* The name of a push that a CHAIN brings. COMBINED brings several, which its second segment names. */
struct chain_push {
    struct sender_id sender;
    uint64_t number, floor;
};
enum { CHAIN_PUSH_BYTES = 36, CHAIN_PUSHES_MAX = 1 << 10 };

/* A shard, by its number in any view. */
struct chain_name {
    uint32_t node;
    uint16_t shard;
};

struct chain_message {
    uint64_t seq;  /* of the stream, from 1 */
    uint64_t view; /* the sender's */
    uint16_t what;
    struct chain_name origin; /* the owner that made the change */
    struct chain_name from;   /* TAKEOVER */
    uint64_t order;           /* UPDATE: numbers the changes of a partition, ascending under all owners */
    struct sender_id sender;  /* UPDATE, FORGET: of the request */
    /* UPDATE: kind, flags, table, number, floor, count, columns, clock, workers; FORGET: floor; COMBINED: kind,
     * flags, table, count, clock, workers */
    struct wire_head request;
    uint64_t partitions[PARTITION_BITS_WORDS]; /* TAKEOVER, FORGET, and UPDATE by CLEAR */
};

static inline bool chain_same(struct chain_name a, struct chain_name b)
{
    return a.node == b.node && a.shard == b.shard;
}
/* Does the message have `partitions`? */
static inline bool chain_has_partitions(const struct chain_message *m)
{
    return m->what == CHAIN_TAKEOVER || m->what == CHAIN_FORGET ||
           (m->what == CHAIN_UPDATE && m->request.kind == WIRE_CLEAR);
}

/* Does the message change rows? */
static inline bool chain_changes(const struct chain_message *m)
{
    return m->what == CHAIN_UPDATE || m->what == CHAIN_COMBINED;
}
/* How many pushes or other requests an UPDATE or COMBINED brings, and which they are. */
size_t chain_pushes(const struct chain_message *m, const struct van_seg *seg);
struct chain_push chain_push_get(const struct chain_message *m, const struct van_seg *seg, size_t i);
void chain_push_put(const struct chain_push *push, uint8_t out[CHAIN_PUSH_BYTES]);

void chain_head(const struct chain_message *m, struct wire_head *head);
/* Returns the body's length. */
size_t chain_body_encode(const struct chain_message *m, uint8_t out[CHAIN_BODY_MAX]);
/* PROTOCOL: the message is not valid. What depends on its table is not checked. */
MUST_USE paramo_err chain_decode(const struct wire_head *head, const struct van_seg *seg, unsigned nseg,
                                 struct chain_message *m);

struct chain_ack {
    uint64_t acked;    /* all members after this one have it, too */
    uint64_t received; /* in order, here */
    uint64_t view;     /* the view of the acknowledging member */
    uint64_t clock;    /* of the last CHAIN_BEAT that has come; 0: none */
    bool again;        /* messages after `received` were dropped: send them again */
    /* Beyond acked: bit i of byte k is seq acked + 1 + 8 k + i. Without these bits, streams
     * that form a circle would wait for each other. */
    const uint8_t *beyond;
    size_t beyond_bytes;
};
static inline bool chain_acks(const struct chain_ack *m, uint64_t seq)
{
    uint64_t i = seq - m->acked - 1;
    return seq <= m->acked || (i / 8 < m->beyond_bytes && m->beyond[i / 8] >> (i % 8) & 1);
}
/* The sender's clock, not 0; it comes back in CHAIN_ACK. */
void chain_beat_head(uint64_t clock, uint64_t view, struct wire_head *head);
MUST_USE paramo_err chain_beat_decode(const struct wire_head *head, unsigned nseg, uint64_t *clock);

void chain_ack_head(const struct chain_ack *m, struct wire_head *head);
/* beyond points into the segment. */
MUST_USE paramo_err chain_ack_decode(const struct wire_head *head, const struct van_seg *seg, unsigned nseg,
                                     struct chain_ack *m);

#endif
