#include "server/replication/chain_tick.h"

#include <assert.h>

#include "server/replication/chain_stream.h"
#include "server/replication/chain_wait.h"
#include "server/replication/gate.h"
#include "server/snapshot/loading.h"

static void tick_fire(struct lane_timer *timer)
{
    struct chain *c = container_of(timer, struct chain, tick);
    struct shard *s = c->shard;
    uint64_t now = lane_now(s->lane);
    for (struct chain_stream *st = c->streams; st; st = st->next)
        chain_stream_tick(st, now);
    paramo_err err =
        chain_guarded(c) ? lane_timer_arm(s->lane, &c->tick, now + CHAIN_TICK_MS * ENV_MS) : PARAMO_OK;
    if (err)
        chain_fail(c, err); /* without the timer it does not beat or send again */
    loading_check(s);       /* perhaps only the time was left to wait for */
    chain_reopen(s);
}

void chain_tick_init(struct chain *c)
{
    c->tick.fire = tick_fire;
}

void chain_tick_start(struct chain *c)
{
    if (chain_guarded(c) && !c->tick.slot)
        tick_fire(&c->tick);
}

void chain_streams_close(struct chain *c)
{
    struct queue entries = {0};
    while (c->streams)
        chain_stream_close(c, c->streams, &entries);
    chain_cancel(&entries);
    chain_cancel(&c->routing.entries);
    chain_cancel(&c->stranded);
    lane_timer_cancel(c->shard->lane, &c->tick);
    assert(!c->streams && !chain_routes(c));
}
