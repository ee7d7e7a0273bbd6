/*
 * The records of senders that migrations and checkpoints carry: which numbers of a sender are applied on all
 * partitions (its window), and which on some of them only (notes). Checkpoints have lists of both, with a
 * count in front. A migration has the same list of windows, and notes one after the other. It never knows
 * when a number counts as applied (server/shard/applied_window.h). Tests: test/wire/test_sender_records.c,
 * fuzz/fuzz_ckpt.c.
 */
#ifndef WIRE_SENDER_RECORDS_H
#define WIRE_SENDER_RECORDS_H

#include "wire/data.h"
#include "wire/partition_bits.h"
#include "wire/sender_id.h"

/* The applied numbers of one sender: all below the floor, and one bit for each from the floor on. The
 * functions are in server/shard/dedup.h. */
struct dedup {
    uint64_t floor;
    uint64_t bits[DATA_WINDOW / 64]; /* number n at bit n % DATA_WINDOW */
};

struct sender_window {
    struct sender_id sender;
    struct dedup dedup;
};
void sender_windows_encode(const struct sender_window *windows, size_t n, struct writer *w);
/* *windows is from malloc; the caller frees it. CORRUPT: it is no such list. */
MUST_USE paramo_err sender_windows_decode(const void *payload, size_t bytes, struct sender_window **windows,
                                          size_t *n);

struct sender_note {
    struct sender_id sender;
    uint64_t number;
    uint64_t partitions[PARTITION_BITS_WORDS]; /* where the number is applied */
};
enum { SENDER_NOTES_MAX = 1024 /* in a list. Arbitrary */ };
void sender_notes_encode(const struct sender_note *notes, size_t n, struct writer *w);
/* As sender_windows_decode. */
MUST_USE paramo_err sender_notes_decode(const void *payload, size_t bytes, struct sender_note **notes,
                                        size_t *n);
/* One note of a migration. */
void sender_note_encode(const struct sender_note *note, struct writer *w);
struct sender_note sender_note_decode(struct reader *r);

#endif
