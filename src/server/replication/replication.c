#include "server/replication/replication.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/migration/migration.h"
#include "server/replication/chain_tick.h"
#include "server/replication/follow.h"
#include "server/replication/origins.h"
#include "server/replication/records.h"

paramo_err chain_create(struct shard *s, struct chain **chain)
{
    assert(!s->chain);
    assert(s->config.van);
    struct chain *c = calloc(1, sizeof *c);
    if (!c)
        return err_memory(sizeof *c);
    c->shard = s;
    memset(c->level, -1, sizeof c->level);
    chain_tick_init(c);
    c->records.timer.fire = records_fire;
    *chain = c;
    return PARAMO_OK;
}

void chain_destroy(struct chain *c)
{
    if (!c)
        return;
    migration_close(c);
    assert(!c->migration_source && !c->migration_target);
    follow_guests_close(c);
    while (c->sources)
        follow_forget(c, c->sources);
    chain_streams_close(c);
    records_close(c);
    assert(!c->streams && !c->guests && !records_pending(c));
    while (c->origins) {
        struct chain_origin *o = c->origins;
        c->origins = o->next;
        origin_fini(o);
    }
    free(c);
}
