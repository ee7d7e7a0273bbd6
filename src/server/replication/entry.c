#include "server/replication/entry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "server/replication/combined.h"
#include "server/shard/partial_apply.h"

void chain_entry_free(struct chain_entry *e)
{
    assert(!e->over);
    assert(e->out || !e->next);
    if (e->out)
        e->over = true;
    else
        free(e);
}

/* The van calls it, perhaps inside van_send or van_close: the stream continues in the next round. A stream outlives
 * its frames in the van, which its van_close gives back. */
static void entry_done(struct van_frame *frame, paramo_err status)
{
    struct chain_entry *e = container_of(frame, struct chain_entry, frame);
    assert(e->out);
    assert(!e->next || e->to);
    (void)status; /* unacknowledged entries are sent again */
    e->out = false;
    if (e->over) {
        free(e);
    } else if (e->next) {
        struct lane *lane = e->to->shard->lane;
        e->next = false;
        if (lane_timer_arm(lane, &e->to->resume, lane_now(lane)))
            log_debug("the chain to node %u continues with the tick: %s", e->to->to.node, err_text());
    }
}

struct chain_entry *chain_entry_new(size_t bytes)
{
    struct chain_entry *e = malloc(sizeof *e + bytes);
    if (!e)
        return NULL;
    memset(e, 0, sizeof *e);
    e->frame.class = VAN_CHAIN;
    e->frame.done = entry_done;
    e->bytes = sizeof *e + bytes;
    return e;
}

struct chain_entry *chain_entry_make(const struct shard_table *t, const struct chain_message *m,
                                     const struct van_seg *seg, unsigned nseg, const uint64_t *partitions)
{
    assert(t || !m->request.count);
    size_t bytes = !t                          ? 0
                   : m->what == CHAIN_COMBINED ? combined_some_bytes(seg)
                                               : rows_some_bytes(&m->request, seg, nseg);
    struct chain_entry *e = chain_entry_new(bytes);
    if (!e)
        return NULL;
    e->m = *m;
    if (t && m->what == CHAIN_COMBINED)
        combined_some(t, m, seg, partitions, e->data, &e->m.request, e->seg);
    else if (t && m->request.count)
        rows_some(t, &m->request, seg, partitions, e->data, &e->m.request, e->seg);
    for (unsigned i = 0; partitions && chain_has_partitions(m) && i < CHAIN_WORDS; i++)
        e->m.partitions[i] &= partitions[i];
    assert(e->m.request.count <= m->request.count && !e->acked);
    return e;
}

uint64_t chain_entry_travels(const struct chain_entry *e)
{
    uint64_t bytes = VAN_HEAD + CHAIN_BODY_MIN;
    for (unsigned i = 0; i < WIRE_SEG_BODY; i++)
        bytes += e->seg[i].len;
    return bytes;
}
