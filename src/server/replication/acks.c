#include "server/replication/acks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void acks_send(struct chain_source *source)
{
    struct shard *s = source->shard;
    chain_source_check(source);
    uint8_t beyond[CHAIN_BEYOND_MAX];
    struct chain_ack ack = {.acked = source->acked,
                            .received = source->received,
                            .view = s->view ? s->view->number : 0,
                            .clock = source->beat_clock,
                            .again = source->again && !records_pending(s->chain)};
    for (const struct qnode *node = source->waits.head; node; node = node->next) {
        const struct chain_wait *w = container_of(node, struct chain_wait, node);
        assert(w->source == source && w->seq > source->acked && w->seq <= source->received);
        uint64_t i = w->seq - source->acked - 1;
        if (i / 8 >= sizeof beyond)
            break;
        if (w->entries || w->elsewhere)
            continue;
        if (i / 8 >= ack.beyond_bytes)
            memset(beyond + ack.beyond_bytes, 0, i / 8 + 1 - ack.beyond_bytes);
        ack.beyond_bytes = i / 8 >= ack.beyond_bytes ? i / 8 + 1 : ack.beyond_bytes;
        beyond[i / 8] |= (uint8_t)(1u << (i % 8));
    }
    struct wire_head head;
    chain_ack_head(&ack, &head);
    /* The next ACK replaces a lost one, at the latest with the next beat. */
    if (!source->conn || !control_message_send(source->conn, &head, beyond, ack.beyond_bytes))
        source->again &= !ack.again;
}

static void round_end(struct lane_task *task)
{
    struct chain_source *source = container_of(task, struct chain_source, round);
    assert(source->due);
    chain_source_check(source);
    source->due = false;
    if (source->shard)
        acks_send(source);
    else
        free(source);
}

void acks_soon(struct chain_source *source)
{
    chain_source_check(source);
    if (source->due)
        return;
    assert(source->shard);
    source->due = true;
    source->round.run = round_end;
    lane_at_end(source->shard->lane, &source->round);
}

/* Acknowledges the first steps that have ended. */
void acks_advance(struct chain_source *source)
{
    while (source->waits.head) {
        struct chain_wait *w = container_of(source->waits.head, struct chain_wait, node);
        if (w->entries || w->elsewhere)
            break;
        (void)queue_pop(&source->waits);
        assert(w->source == source && w->seq > source->acked && w->seq <= source->received);
        source->acked = w->seq;
        w->source = NULL;
        if (!w->entries)
            free(w);
    }
    assert(source->acked <= source->received);
    acks_soon(source);
}
