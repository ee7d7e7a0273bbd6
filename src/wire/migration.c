#include "wire/migration.h"

void migration_head(const struct migration_message *m, struct wire_head *head)
{
    *head = (struct wire_head){.kind = WIRE_MIGRATION,
                               .status = m->what,
                               .table = m->table,
                               .number = m->id,
                               .ts = m->seq,
                               .view = m->view,
                               .column = m->first,
                               .columns = m->partitions};
}

static paramo_err wrong(const char *what)
{
    return err_set(PARAMO_E_PROTOCOL, "MIGRATION: %s", what);
}

paramo_err migration_decode(const struct wire_head *head, const struct van_seg *seg, unsigned nseg,
                            struct migration_message *m)
{
    uint64_t bytes = data_seg_len(seg, nseg, 0);
    bool begin = head->status == MIGRATION_STEP_BEGIN,
         of_table = head->status == MIGRATION_STEP_ROWS || head->status == MIGRATION_STEP_LOST;
    *m = (struct migration_message){.seq = head->ts,
                                    .view = head->view,
                                    .what = head->status,
                                    .id = head->number,
                                    .table = head->table,
                                    .payload = bytes ? seg[0].data : NULL,
                                    .bytes = (size_t)bytes};
    if (head->status < MIGRATION_STEP_BEGIN || head->status > MIGRATION_STEP_LOST || !head->ts ||
        !head->number || nseg > 1 || bytes > MIGRATION_PAYLOAD_MAX || head->flags || head->cmd ||
        head->count || head->floor || head->attempt || head->slice || (head->table != 0) != of_table)
        return wrong("a field is not valid");
    if (begin ? !head->columns || head->column >= MIGRATION_PARTITIONS ||
                    head->columns > MIGRATION_PARTITIONS - head->column
              : head->column || head->columns)
        return wrong("its partitions");
    m->first = (uint16_t)head->column;
    m->partitions = (uint16_t)head->columns;
    if ((begin || m->what == MIGRATION_STEP_FULL) ? bytes != 0 : bytes == 0)
        return wrong("its payload");
    if (m->what == MIGRATION_STEP_LAST && (bytes % 8 || bytes > 8 * MIGRATION_PARTITIONS))
        return wrong("its payload");
    if (m->what == MIGRATION_STEP_LOST && bytes != MIGRATION_PARTITIONS / 8)
        return wrong("its payload");
    if (m->what == MIGRATION_STEP_RECORDS) {
        if (bytes < MIGRATION_PARTITIONS / 8)
            return wrong("its payload");
        m->bits = m->payload;
        m->payload = m->bits + MIGRATION_PARTITIONS / 8;
        m->bytes -= MIGRATION_PARTITIONS / 8;
    }
    return PARAMO_OK;
}
