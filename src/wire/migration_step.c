#include "wire/migration_step.h"

#include "wire/chain.h"

void migration_head(const struct migration_message *m, struct wire_head *head)
{
    *head = (struct wire_head){.migration = {.kind = WIRE_MIGRATION,
                                             .step = m->what,
                                             .table = m->table,
                                             .id = m->id,
                                             .seq = m->seq,
                                             .view = m->view,
                                             .partitions = {m->first, m->partitions}}};
}

void migration_records_encode(const uint64_t partitions[PARTITION_BITS_WORDS],
                              const struct sender_window *windows, size_t n, struct writer *w)
{
    partition_bits_encode(partitions, w);
    sender_windows_encode(windows, n, w);
}

void migration_records_partitions(const struct migration_message *m,
                                  uint64_t partitions[PARTITION_BITS_WORDS])
{
    struct reader r = reader_over(m->bits, PARTITION_BITS_BYTES);
    partition_bits_decode(&r, partitions);
}

void migration_last_encode(const uint64_t *orders, size_t n, struct writer *w)
{
    for (size_t i = 0; i < n; i++)
        write_u64(w, orders[i]);
}

static paramo_err wrong(const char *what)
{
    return err_set(PARAMO_E_PROTOCOL, "MIGRATION: %s", what);
}

paramo_err migration_decode(const struct wire_head *any, const struct van_seg *seg, unsigned nseg,
                            struct migration_message *m)
{
    const struct wire_migration *head = &any->migration;
    uint64_t bytes = data_seg_len(seg, nseg, 0);
    bool begin = head->step == MIGRATION_STEP_BEGIN,
         of_table = head->step == MIGRATION_STEP_ROWS || head->step == MIGRATION_STEP_LOST;
    *m = (struct migration_message){.seq = head->seq,
                                    .view = head->view,
                                    .what = head->step,
                                    .id = head->id,
                                    .table = head->table,
                                    .payload = bytes ? seg[0].data : NULL,
                                    .bytes = (size_t)bytes};
    if (head->step < MIGRATION_STEP_BEGIN || head->step > MIGRATION_STEP_LOST || !head->seq || !head->id ||
        nseg > 1 || bytes > MIGRATION_PAYLOAD_MAX || head->flags || head->zero32 || head->count ||
        head->zero || head->zero64 || (head->table != 0) != of_table)
        return wrong("a field is not valid");
    struct wire_partitions run = head->partitions;
    if (begin ? !run.count || run.first >= PARTITION_BITS || run.count > PARTITION_BITS - run.first
              : run.first || run.count)
        return wrong("its run of partitions is not valid");
    m->first = (uint16_t)run.first;
    m->partitions = (uint16_t)run.count;
    if ((begin || m->what == MIGRATION_STEP_FULL) ? bytes != 0 : bytes == 0)
        return wrong("the length of its payload is not valid");
    if (m->what == MIGRATION_STEP_LAST && (bytes % 8 || bytes > 8 * PARTITION_BITS))
        return wrong("the length of its payload is not valid");
    for (unsigned i = 0; m->what == MIGRATION_STEP_LAST && i < bytes / 8; i++)
        if (migration_order_of(m, i) > CHAIN_ORDER_MAX)
            return wrong("it has an order number that no owner reaches");
    if (m->what == MIGRATION_STEP_LOST && bytes != PARTITION_BITS_BYTES)
        return wrong("the length of its payload is not valid");
    if (m->what == MIGRATION_STEP_RECORDS) {
        if (bytes < PARTITION_BITS_BYTES)
            return wrong("the length of its payload is not valid");
        m->bits = m->payload;
        m->payload = (const uint8_t *)m->bits + PARTITION_BITS_BYTES;
        m->bytes -= PARTITION_BITS_BYTES;
    }
    return PARAMO_OK;
}
