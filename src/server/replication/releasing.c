#include "server/replication/releasing.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/migration/source.h"
#include "server/replication/chain_wait.h"
#include "server/replication/entry.h"

/* Costs in a turn: of an acknowledged entry with its answer; of freeing an entry, and of each 16 KiB of it; of
 * looking at one. */
enum { RELEASE_COST = 8, RELEASE_FREE = 2, RELEASE_FREE_SHIFT = 14, RELEASE_LOOK = 1 };

bool releasing_covers(const struct chain_stream *st, const struct chain_entry *e)
{
    return (st->release.at || st->release.again) && chain_acks(&st->release.ack, e->m.seq);
}

static void entry_acked(struct chain_stream *st, struct chain_entry *e)
{
    struct chain_wait *wait = e->wait;
    assert(!e->acked && e->to == st && st->count > 0 && st->bytes >= e->bytes);
    assert(e->m.seq > st->acked && e->m.seq <= st->seq);
    e->acked = true;
    e->wait = NULL;
    st->count--;
    st->bytes -= e->bytes;
    if (e->migration.what == MIGRATION_STEP_ROWS)
        migration_source_rows_acked(st->migration_source, e->bytes);
    chain_wait_done(wait);
}

static void first_free(struct chain_stream *st)
{
    struct qnode *node = queue_pop(&st->entries);
    struct chain_entry *e = container_of(node, struct chain_entry, node);
    assert(e->acked && st->acked < e->m.seq);
    st->unsent = st->unsent == node ? node->next : st->unsent;
    st->release.at = st->release.at == node ? node->next : st->release.at;
    st->acked = e->m.seq;
    chain_entry_free(e);
    assert(st->acked <= st->seq && st->count <= st->seq - st->acked);
    assert(!queue_empty(&st->entries) || (st->acked == st->seq && !st->count && !st->bytes && !st->unsent));
}

/* The last entry that the ACK can cover. */
static uint64_t ack_end(const struct chain_ack *ack)
{
    uint64_t end = ack->acked + 8 * ack->beyond_bytes;
    return end < ack->received ? end : ack->received;
}

/* An ACK may cover a full stream, 16,384 entries with as many answers, or more after a routed one. So entries are
 * released in turns. What is left when the stream ends counts as not acknowledged. True: some are left. */
static bool release_turn(struct chain_stream *st, unsigned left)
{
    chain_stream_check(st);
    while (left) {
        unsigned cost = RELEASE_LOOK;
        struct chain_entry *first =
            st->entries.head ? container_of(st->entries.head, struct chain_entry, node) : NULL;
        if (first && first->acked) {
            cost = RELEASE_FREE + (unsigned)(first->bytes >> RELEASE_FREE_SHIFT);
            first_free(st);
        } else if (st->release.at) {
            struct chain_entry *e = container_of(st->release.at, struct chain_entry, node);
            bool over = e->m.seq > ack_end(&st->release.ack);
            st->release.at = over ? NULL : st->release.at->next;
            if (!over && !e->acked && chain_acks(&st->release.ack, e->m.seq)) {
                cost = RELEASE_COST;
                entry_acked(st, e);
            }
        } else if (st->release.again) {
            st->release.again = false;
            st->release.at = st->entries.head;
        } else {
            return false;
        }
        st->shard->chain->release_spent += cost;
        left -= cost < left ? cost : left;
    }
    return true;
}

/* The bits of the ACK are in its frame. Without memory for them the next ACK brings them again. */
static void release_keep(struct chain_stream *st)
{
    struct chain_ack *ack = &st->release.ack;
    assert(st->release.timer.slot); /* a turn will look at it */
    if (ack->beyond_bytes && !st->release.beyond)
        st->release.beyond = malloc(CHAIN_BEYOND_MAX);
    if (ack->beyond_bytes && st->release.beyond)
        memcpy(st->release.beyond, ack->beyond, ack->beyond_bytes);
    else
        ack->beyond_bytes = 0;
    ack->beyond = st->release.beyond;
    assert(!ack->beyond_bytes || ack->beyond);
}

/* In a simulation, other events come between two turns. */
void releasing_turn(struct chain_stream *st)
{
    struct shard *s = st->shard;
    uint64_t pause = s->config.turn_records ? ENV_MS : 0;
    chain_stream_check(st);
    if (release_turn(st, records_turn(s)) &&
        lane_timer_arm(s->lane, &st->release.timer, lane_now(s->lane) + pause))
        while (release_turn(st, UINT32_MAX))
            ;
}

void releasing_ack(struct chain_stream *st, const struct chain_ack *ack)
{
    assert(ack->received <= st->seq);
    chain_stream_check(st);
    st->release.ack = *ack;
    st->release.again = true;
    if (!st->release.timer.slot)
        releasing_turn(st);
    if (st->release.timer.slot)
        release_keep(st);
}
