/*
 * MOVE: what the owner of a run of arcs sends to the shard that is to get them (docs/PROTOCOL.md, section 9),
 * in one stream with the CHAIN of what is done to these arcs meanwhile: ts is the place in the stream, which
 * CHAIN_ACK acknowledges. The move's id is head.number; the payload is segment 0. One file per message
 * family: struct, encoder, decoder, checks. It never knows views or tables. Tests: test/wire/test_move.c,
 * fuzz/fuzz_chain.c.
 */
#ifndef WIRE_MOVE_H
#define WIRE_MOVE_H

#include <stdbool.h>

#include "wire/data.h"

enum { MOVE_ARCS = 4096, MOVE_PAYLOAD_MAX = 1 << 30 };

enum move_what {
    MOVE_STEP_BEGIN = 1, /* of the stream: first and arcs are the run */
    MOVE_STEP_ROWS = 2,  /* rows of a table on these arcs, as they are now: ckpt_rows.h */
    MOVE_STEP_FULL =
        3, /* that were all rows; from here on the owner answers nothing that is not acknowledged */
    MOVE_STEP_RECORDS = 4, /* a bit for each of MOVE_ARCS, then the senders' records for these: ckpt_rows.h */
    MOVE_STEP_PARTS = 5,   /* where chunks have been done: for each u32 node, app, customer, u64 incarnation,
                              number, MOVE_ARCS bits */
    MOVE_STEP_LAST = 6,    /* a u64 for each arc: the order of its last change. Nothing follows it */
    MOVE_STEP_LOST = 7     /* of a table, MOVE_ARCS bits: arcs whose rows died with a server */
};

struct move_message {
    uint64_t seq, view; /* of the stream; of who sends */
    uint16_t what;
    uint64_t id;
    uint16_t first, arcs; /* BEGIN */
    uint32_t table;       /* ROWS, LOST */
    const void *payload;  /* RECORDS: after the bits */
    size_t bytes;
    const uint8_t *bits; /* RECORDS */
};

static inline bool move_has(const struct move_message *m, unsigned arc)
{
    return m->bits[arc / 8] >> (arc % 8) & 1;
}

void move_head(const struct move_message *m, struct wire_head *head);
/* payload points into the segment. All but what the payload says is checked. */
MUST_USE paramo_err move_decode(const struct wire_head *head, const struct van_seg *seg, unsigned nseg,
                                struct move_message *m);
/* LAST: the order of the i-th arc. */
static inline uint64_t move_order_of(const struct move_message *m, unsigned i)
{
    const uint8_t *at = (const uint8_t *)m->payload + 8 * (size_t)i;
    uint64_t order = 0;
    for (unsigned k = 0; k < 8; k++)
        order |= (uint64_t)at[k] << (8 * k);
    return order;
}

#endif
