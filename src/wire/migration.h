/*
 * MOVE: what the owner of a run of partitions sends to the shard that is to get them (docs/PROTOCOL.md,
 * section 9), in one stream with the CHAIN of what is done to these partitions meanwhile: ts is the place in
 * the stream, which CHAIN_ACK acknowledges. The move's id is head.number; the payload is segment 0. One file
 * per message family: struct, encoder, decoder, checks. It never knows views or tables. Tests:
 * test/wire/test_migration.c, fuzz/fuzz_chain.c.
 */
#ifndef WIRE_MIGRATION_H
#define WIRE_MIGRATION_H

#include <stdbool.h>

#include "wire/data.h"

enum { MIGRATION_PARTITIONS = 4096, MIGRATION_PAYLOAD_MAX = 1 << 30 };

enum migration_what {
    MIGRATION_STEP_BEGIN = 1, /* of the stream: first and partitions are the run */
    MIGRATION_STEP_ROWS = 2,  /* rows of a table on these partitions, as they are now: ckpt_rows.h */
    MIGRATION_STEP_FULL =
        3, /* that were all rows; from here on the owner answers nothing that is not acknowledged */
    MIGRATION_STEP_RECORDS =
        4, /* a bit for each of MIGRATION_PARTITIONS, then the senders' records for these: ckpt_rows.h */
    MOVE_STEP_NOTES = 5, /* where chunks have been done: for each u32 node, app, customer, u64 incarnation,
                            number, MIGRATION_PARTITIONS bits */
    MIGRATION_STEP_LAST = 6, /* a u64 for each partition: the order of its last change. Nothing follows it */
    MIGRATION_STEP_LOST =
        7 /* of a table, MIGRATION_PARTITIONS bits: partitions whose rows died with a server */
};

struct migration_message {
    uint64_t seq, view; /* of the stream; of who sends */
    uint16_t what;
    uint64_t id;
    uint16_t first, partitions; /* BEGIN */
    uint32_t table;             /* ROWS, LOST */
    const void *payload;        /* RECORDS: after the bits */
    size_t bytes;
    const uint8_t *bits; /* RECORDS */
};

static inline bool migration_has(const struct migration_message *m, unsigned partition)
{
    return m->bits[partition / 8] >> (partition % 8) & 1;
}

void migration_head(const struct migration_message *m, struct wire_head *head);
/* payload points into the segment. All but what the payload says is checked. */
MUST_USE paramo_err migration_decode(const struct wire_head *head, const struct van_seg *seg, unsigned nseg,
                                     struct migration_message *m);
/* LAST: the order of the i-th partition. */
static inline uint64_t migration_order_of(const struct migration_message *m, unsigned i)
{
    const uint8_t *at = (const uint8_t *)m->payload + 8 * (size_t)i;
    uint64_t order = 0;
    for (unsigned k = 0; k < 8; k++)
        order |= (uint64_t)at[k] << (8 * k);
    return order;
}

#endif
