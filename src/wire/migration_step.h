/*
 * MIGRATION: what the owner of a run of partitions sends to the shard that will get them (docs/PROTOCOL.md,
 * section 9). Changes of these partitions come in the same stream, as CHAIN; CHAIN_ACK acknowledges both. The
 * payload is segment 0. It never knows views or tables. Tests: test/wire/test_migration_step.c, fuzz/fuzz_chain.c.
 */
#ifndef WIRE_MIGRATION_STEP_H
#define WIRE_MIGRATION_STEP_H

#include <stdbool.h>

#include "wire/partition_bits.h"
#include "wire/sender_records.h"

enum { MIGRATION_PAYLOAD_MAX = 1 << 30 };

enum migration_what {
    MIGRATION_STEP_BEGIN = 1, /* of the stream: first and partitions are the run */
    MIGRATION_STEP_ROWS = 2,  /* rows of a table on these partitions, as they are now: row_block.h */
    /* all rows are sent; from here on the owner answers no change that the target has not acknowledged */
    MIGRATION_STEP_FULL = 3,
    /* partitions, then the windows of senders on these: migration_records_encode */
    MIGRATION_STEP_RECORDS = 4,
    /* on which partitions chunks are applied: sender_note_encode, one after the other */
    MIGRATION_STEP_NOTES = 5,
    MIGRATION_STEP_LAST = 6, /* a u64 for each partition: the order of its last change. Nothing follows it */
    MIGRATION_STEP_LOST = 7  /* of a table: partitions whose rows died with a server: partition_bits_encode */
};

struct migration_message {
    uint64_t seq, view; /* of the stream; of the sender */
    uint16_t what;
    uint64_t id;
    uint16_t first, partitions; /* BEGIN */
    uint32_t table;             /* ROWS, LOST */
    const void *payload;        /* RECORDS: windows of senders */
    size_t bytes;
    const void *bits; /* RECORDS: migration_records_partitions */
};

/* Payloads of RECORDS and LAST. */
void migration_records_encode(const uint64_t partitions[PARTITION_BITS_WORDS],
                              const struct sender_window *windows, size_t n, struct writer *w);
void migration_records_partitions(const struct migration_message *m,
                                  uint64_t partitions[PARTITION_BITS_WORDS]);
void migration_last_encode(const uint64_t *orders, size_t n, struct writer *w);

void migration_head(const struct migration_message *m, struct wire_head *head);
/* payload points into the segment. What the payload says is not checked, except the numbers of LAST. */
MUST_USE paramo_err migration_decode(const struct wire_head *head, const struct van_seg *seg, unsigned nseg,
                                     struct migration_message *m);
/* LAST: the order of the i-th partition. */
static inline uint64_t migration_order_of(const struct migration_message *m, unsigned i)
{
    struct reader r = reader_over((const uint8_t *)m->payload + 8 * (size_t)i, 8);
    return read_u64(&r);
}

#endif
