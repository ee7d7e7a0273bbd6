#include "wire/move.h"

void move_head(const struct move_message *m, struct wire_head *head)
{
    *head = (struct wire_head){.kind = WIRE_MOVE,
                               .status = m->what,
                               .table = m->table,
                               .number = m->id,
                               .ts = m->seq,
                               .view = m->view,
                               .column = m->first,
                               .columns = m->arcs};
}

static paramo_err wrong(const char *what)
{
    return err_set(PARAMO_E_PROTOCOL, "MOVE: %s", what);
}

paramo_err move_decode(const struct wire_head *head, const struct van_seg *seg, unsigned nseg,
                       struct move_message *m)
{
    uint64_t bytes = data_seg_len(seg, nseg, 0);
    bool begin = head->status == MOVE_STEP_BEGIN,
         of_table = head->status == MOVE_STEP_ROWS || head->status == MOVE_STEP_LOST;
    *m = (struct move_message){.seq = head->ts,
                               .view = head->view,
                               .what = head->status,
                               .id = head->number,
                               .table = head->table,
                               .payload = bytes ? seg[0].data : NULL,
                               .bytes = (size_t)bytes};
    if (head->status < MOVE_STEP_BEGIN || head->status > MOVE_STEP_LOST || !head->ts || !head->number ||
        nseg > 1 || bytes > MOVE_PAYLOAD_MAX || head->flags || head->cmd || head->count || head->floor ||
        head->attempt || head->piece || (head->table != 0) != of_table)
        return wrong("a field is not valid");
    if (begin ? !head->columns || head->column >= MOVE_ARCS || head->columns > MOVE_ARCS - head->column
              : head->column || head->columns)
        return wrong("its arcs");
    m->first = (uint16_t)head->column;
    m->arcs = (uint16_t)head->columns;
    if ((begin || m->what == MOVE_STEP_FULL) ? bytes != 0 : bytes == 0)
        return wrong("its payload");
    if (m->what == MOVE_STEP_LAST && (bytes % 8 || bytes > 8 * MOVE_ARCS))
        return wrong("its payload");
    if (m->what == MOVE_STEP_LOST && bytes != MOVE_ARCS / 8)
        return wrong("its payload");
    if (m->what == MOVE_STEP_RECORDS) {
        if (bytes < MOVE_ARCS / 8)
            return wrong("its payload");
        m->bits = m->payload;
        m->payload = m->bits + MOVE_ARCS / 8;
        m->bytes -= MOVE_ARCS / 8;
    }
    return PARAMO_OK;
}
