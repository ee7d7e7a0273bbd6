#include "wire/chain.h"

#include <string.h>

#include "base/cursor.h"

void chain_head(const struct chain_message *m, struct wire_head *head)
{
    *head = (struct wire_head){
        .chain = {
            .kind = WIRE_CHAIN, .what = m->what, .floor = m->request.floor, .seq = m->seq, .view = m->view}};
    if (!chain_changes(m))
        return;
    head->chain.flags = m->request.flags;
    head->chain.request = m->request.kind;
    head->chain.table = m->request.table;
    head->chain.number = m->request.number;
    head->chain.count = m->request.count;
    head->chain.columns = m->request.columns;
    head->chain.clock = m->request.clock;
    head->chain.workers = m->request.workers;
}

size_t chain_body_encode(const struct chain_message *m, uint8_t out[CHAIN_BODY_MAX])
{
    struct writer w = writer_over(out, CHAIN_BODY_MAX);
    write_u32(&w, m->origin.node);
    write_u32(&w, m->from.node);
    write_u16(&w, m->origin.shard);
    write_u16(&w, m->from.shard);
    sender_id_encode(&m->sender, &w);
    write_u64(&w, m->order);
    if (chain_has_partitions(m))
        partition_bits_encode(m->partitions, &w);
    return w.len;
}

static paramo_err wrong(const char *what)
{
    return err_set(PARAMO_E_PROTOCOL, "CHAIN: %s", what);
}

static bool order_is_good(const struct chain_message *m)
{
    return m->order > 0 && m->order <= CHAIN_ORDER_MAX;
}

size_t chain_pushes(const struct chain_message *m, const struct van_seg *seg)
{
    return m->what == CHAIN_COMBINED ? (size_t)seg[WIRE_SEG_LENS].len / CHAIN_PUSH_BYTES : 1;
}

struct chain_push chain_push_get(const struct chain_message *m, const struct van_seg *seg, size_t i)
{
    if (m->what != CHAIN_COMBINED)
        return (struct chain_push){
            .sender = m->sender, .number = m->request.number, .floor = m->request.floor};
    struct reader r =
        reader_over((const uint8_t *)seg[WIRE_SEG_LENS].data + i * CHAIN_PUSH_BYTES, CHAIN_PUSH_BYTES);
    struct chain_push push = {.sender = sender_id_decode(&r)};
    push.number = read_u64(&r);
    push.floor = read_u64(&r);
    return push;
}

void chain_push_put(const struct chain_push *push, uint8_t out[CHAIN_PUSH_BYTES])
{
    struct writer w = writer_over(out, CHAIN_PUSH_BYTES);
    sender_id_encode(&push->sender, &w);
    write_u64(&w, push->number);
    write_u64(&w, push->floor);
}

/* Checks all but the sums: only the table knows the length of its rows. */
static paramo_err combined_check(struct chain_message *m, const struct wire_chain *head,
                                 const struct van_seg *seg, unsigned nseg)
{
    m->request = (struct wire_head){.kind = (uint8_t)head->request,
                                    .flags = head->flags,
                                    .table = head->table,
                                    .count = head->count,
                                    .clock = head->clock,
                                    .workers = head->workers};
    uint64_t pushes = data_seg_len(seg, nseg, WIRE_SEG_LENS);
    if (head->request != WIRE_PUSH || head->flags != WIRE_CLOCKED || !head->workers || !head->count ||
        head->number || head->floor || !order_is_good(m))
        return wrong("it does not combine pushes of a clock");
    if (data_seg_len(seg, nseg, WIRE_SEG_KEYS) != UINT64_C(8) * head->count)
        return wrong("its keys do not fit its count");
    if (!pushes || pushes % CHAIN_PUSH_BYTES || pushes / CHAIN_PUSH_BYTES > CHAIN_PUSHES_MAX)
        return wrong("its list of pushes is not valid");
    for (size_t i = 0; i < chain_pushes(m, seg); i++) {
        struct chain_push push = chain_push_get(m, seg, i);
        if (!push.floor || push.number < push.floor || push.number - push.floor >= DATA_WINDOW)
            return wrong("a push has a number that does not fit its floor");
    }
    return PARAMO_OK;
}

/* Restores the request as its client has sent it, and checks it as one. */
static paramo_err update_check(struct chain_message *m, const struct wire_chain *head,
                               const struct van_seg *seg, unsigned nseg)
{
    m->request = (struct wire_head){.kind = (uint8_t)head->request,
                                    .flags = head->flags,
                                    .table = head->table,
                                    .number = head->number,
                                    .floor = head->floor,
                                    .count = head->count,
                                    .columns = head->columns,
                                    .clock = head->clock,
                                    .workers = head->workers};
    if (head->request != WIRE_PUSH && head->request != WIRE_PUT && head->request != WIRE_DELETE &&
        head->request != WIRE_CLEAR)
        return wrong("its request is not a change");
    if (!order_is_good(m))
        return wrong("it has no order number, or one that no owner reaches");
    if (m->request.flags & (WIRE_CREATE | WIRE_RANGE))
        return wrong("it has a flag of a client's request");
    return data_check_request(&m->request, seg, nseg < WIRE_SEG_BODY ? nseg : WIRE_SEG_BODY);
}

paramo_err chain_decode(const struct wire_head *any, const struct van_seg *seg, unsigned nseg,
                        struct chain_message *m)
{
    const struct wire_chain *head = &any->chain;
    uint64_t body = data_seg_len(seg, nseg, WIRE_SEG_BODY);
    struct reader r = reader_over(body ? seg[WIRE_SEG_BODY].data : NULL, body);
    *m = (struct chain_message){.seq = head->seq, .view = head->view, .what = head->what};
    m->origin.node = read_u32(&r);
    m->from.node = read_u32(&r);
    m->origin.shard = read_u16(&r);
    m->from.shard = read_u16(&r);
    m->sender = sender_id_decode(&r);
    m->order = read_u64(&r);
    if (r.failed || m->seq == 0 || m->what < CHAIN_UPDATE || m->what > CHAIN_COMBINED)
        return wrong("its body is not valid");
    paramo_err err = PARAMO_OK;
    if (m->what == CHAIN_UPDATE)
        err = update_check(m, head, seg, nseg);
    else if (m->what == CHAIN_COMBINED)
        err = combined_check(m, head, seg, nseg);
    else if (head->count || head->flags || head->request || data_seg_len(seg, nseg, WIRE_SEG_KEYS) ||
             data_seg_len(seg, nseg, WIRE_SEG_LENS) || data_seg_len(seg, nseg, WIRE_SEG_VALS))
        err = wrong("it has segments that it does not use");
    else
        m->request.floor = head->floor;
    if (!err && chain_has_partitions(m))
        partition_bits_decode(&r, m->partitions);
    if (!err && !reader_done(&r))
        err = wrong("its body is not valid");
    return err;
}

void chain_beat_head(uint64_t clock, uint64_t view, struct wire_head *head)
{
    *head = (struct wire_head){.chain_beat = {.kind = WIRE_CHAIN_BEAT, .clock = clock, .view = view}};
}

paramo_err chain_beat_decode(const struct wire_head *head, unsigned nseg, uint64_t *clock)
{
    if (nseg || !head->chain_beat.clock)
        return err_set(PARAMO_E_PROTOCOL, "CHAIN_BEAT: a field is not valid");
    *clock = head->chain_beat.clock;
    return PARAMO_OK;
}

void chain_ack_head(const struct chain_ack *m, struct wire_head *head)
{
    *head = (struct wire_head){.chain_ack = {.kind = WIRE_CHAIN_ACK,
                                             .status = m->again ? PARAMO_E_AGAIN : PARAMO_OK,
                                             .acked = m->acked,
                                             .received = m->received,
                                             .clock = m->clock,
                                             .view = m->view}};
}

paramo_err chain_ack_decode(const struct wire_head *any, const struct van_seg *seg, unsigned nseg,
                            struct chain_ack *m)
{
    const struct wire_chain_ack *head = &any->chain_ack;
    uint64_t bytes = data_seg_len(seg, nseg, 0);
    if (nseg > 1 || bytes > CHAIN_BEYOND_MAX || (bytes && bytes > (head->received - head->acked + 7) / 8) ||
        head->acked > head->received || (head->status != PARAMO_OK && head->status != PARAMO_E_AGAIN))
        return err_set(PARAMO_E_PROTOCOL, "CHAIN_ACK: a field is not valid");
    *m = (struct chain_ack){.acked = head->acked,
                            .received = head->received,
                            .view = head->view,
                            .clock = head->clock,
                            .again = head->status == PARAMO_E_AGAIN,
                            .beyond = bytes ? seg[0].data : NULL,
                            .beyond_bytes = bytes};
    return PARAMO_OK;
}
