/* CHAIN, CHAIN_ACK and MOVE: what decodes is encoded again to the same bytes, and only what the message has
 * segments for is read. First byte: which; then the head, lengths of the segments, their bytes. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "wire/chain.h"
#include "wire/migration_step.h"

static void chain(const struct wire_head *h, struct van_seg seg[VAN_SEGS])
{
    struct chain_message m;
    struct wire_head again;
    uint8_t body[CHAIN_BODY_MAX];
    if (chain_decode(h, seg, VAN_SEGS, &m))
        return;
    chain_head(&m, &again);
    const struct wire_chain *a = &again.chain, *b = &h->chain;
    CHECK(a->seq == b->seq && a->view == b->view && a->what == b->what && a->request == b->request);
    CHECK(a->number == b->number || m.what != CHAIN_UPDATE);
    CHECK(a->count == b->count && a->flags == b->flags);
    size_t len = chain_body_encode(&m, body);
    CHECK(len == seg[WIRE_SEG_BODY].len && memcmp(body, seg[WIRE_SEG_BODY].data, len) == 0);
    CHECK(seg[WIRE_SEG_KEYS].len == 8 * (uint64_t)h->chain.count);
}

static void ack(const struct wire_head *h, const struct van_seg *seg)
{
    struct chain_ack m;
    struct wire_head again;
    if (chain_ack_decode(h, seg, seg->len != 0, &m))
        return;
    chain_ack_head(&m, &again);
    const struct wire_chain_ack *a = &again.chain_ack, *b = &h->chain_ack;
    CHECK(a->acked == b->acked && a->received == b->received && a->status == b->status &&
          a->clock == b->clock);
    CHECK(m.acked <= m.received);
    unsigned acked = 0;
    /* up to the last number there is: a stream never comes near it */
    for (uint64_t i = 1; i <= 8 * (uint64_t)m.beyond_bytes + 64 && m.acked + i > m.acked; i++)
        acked += chain_acks(&m, m.acked + i);
    CHECK(acked <= 8 * m.beyond_bytes);
}

static void beat(const struct wire_head *h, const struct van_seg *seg)
{
    uint64_t clock;
    struct wire_head again;
    if (chain_beat_decode(h, seg->len != 0, &clock))
        return;
    chain_beat_head(clock, h->chain_beat.view, &again);
    CHECK(clock && again.chain_beat.clock == h->chain_beat.clock &&
          again.chain_beat.view == h->chain_beat.view);
}

static void migration(const struct wire_head *h, const struct van_seg *seg)
{
    struct migration_message m;
    struct wire_head again;
    if (migration_decode(h, seg, seg->len != 0, &m))
        return;
    migration_head(&m, &again);
    const struct wire_migration *a = &again.migration, *b = &h->migration;
    CHECK(a->seq == b->seq && a->view == b->view && a->step == b->step && a->id == b->id);
    CHECK(a->table == b->table && a->partitions.first == b->partitions.first &&
          a->partitions.count == b->partitions.count);
    uint64_t sum = 0;
    for (unsigned i = 0; m.what == MIGRATION_STEP_LAST && i < m.bytes / 8; i++)
        sum += migration_order_of(&m, i);
    uint64_t partitions[PARTITION_BITS_WORDS] = {0};
    if (m.what == MIGRATION_STEP_RECORDS)
        migration_records_partitions(&m, partitions);
    for (unsigned i = 0; i < PARTITION_BITS_WORDS; i++)
        sum += partitions[i];
    static volatile uint64_t read; /* every byte of them */
    read = sum;
    (void)read;
    CHECK(m.bytes <= seg->len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    struct wire_head h;
    uint8_t head[VAN_HEAD] = {0};
    unsigned which = draw_u8(&s) % 4;
    for (unsigned i = 0; i < VAN_HEAD; i++)
        head[i] = draw_u8(&s);
    struct van_seg seg[VAN_SEGS] = {{0}};
    for (unsigned i = 0; i < VAN_SEGS; i++) {
        size_t got, want = draw_u16(&s);
        seg[i].data = draw_bytes(&s, want, &got);
        seg[i].len = got;
    }
    if (wire_head_decode(head, &h) == PARAMO_OK) {
        if (which == 1)
            ack(&h, seg);
        else if (which == 2)
            beat(&h, seg);
        else if (which)
            migration(&h, seg);
        else
            chain(&h, seg);
    }
    for (unsigned i = 0; i < VAN_SEGS; i++)
        free(seg[i].data);
    return 0;
}
