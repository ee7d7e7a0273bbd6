#include "server/replication/gate.h"

#include <assert.h>

#include "server/migration/source.h"
#include "server/shard/slice.h"

void chain_fail(struct chain *c, paramo_err err)
{
    const struct shard_config *config = &c->shard->config;
    if (c->failed)
        return;
    assert(err);
    assert(c->shard->chain == c);
    c->failed = true;
    err = err_prefix(err, "shard %u cannot continue its chains", config->index);
    if (config->failed)
        config->failed(config->arg, err);
}

bool chain_leased(const struct chain_stream *st)
{
    return st->heard_at && lane_now(st->shard->lane) - st->heard_at <= CHAIN_LEASE_MS * ENV_MS;
}

bool chain_open(struct shard *s)
{
    struct chain *c = s->chain;
    assert(c->shard == s);
    assert(chain_guarded(c) || !c->wait_until);
    uint64_t now = chain_guarded(c) ? lane_now(s->lane) : 0;
    if (now >= c->wait_until)
        c->wait_until = 0;
    bool open = !c->failed && !c->wait_until && !records_hold(c);
    for (const struct chain_stream *st = c->streams; st && open; st = st->next) {
        bool room = st->count < CHAIN_STREAM_ENTRIES && st->bytes < CHAIN_STREAM_BYTES;
        if (st->migration_source) {
            /* Before FULL no answer waits for the target: a slow one is aborted. Its lease covers only the
             * partitions that migrate (migration_source_defers). */
            open = room || !migration_source_needs_ack(st->migration_source);
            continue;
        }
        open = chain_leased(st) && st->acked >= st->gate && room;
    }
    c->shut = !open;
    c->held |= !open;
    return open;
}

void chain_reopen(struct shard *s)
{
    if (s->chain->held && chain_open(s)) {
        s->chain->held = false;
        slice_resume_all(s);
    }
}
