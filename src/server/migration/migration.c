#include "server/migration/migration.h"

#include <assert.h>

#include "server/migration/source.h"
#include "server/migration/target.h"
#include "server/replication/gate.h"
#include "server/shard/shard.h"
#include "server/snapshot/load_state.h"
#include "wire/order.h"

/* A shard has one migration after the other on each side, by rising ids. An order with a lower id is late. */
static paramo_err overtaken(uint64_t *over, uint64_t id)
{
    if (id <= *over)
        return err_set(PARAMO_E_NOT_FOUND, "the migration is over");
    *over = id - 1;
    return PARAMO_OK;
}

void migration_view_changed(struct chain *c)
{
    migration_source_view_changed(c);
    migration_target_view_changed(c);
}

void migration_close(struct chain *c)
{
    migration_source_close(c);
    migration_target_close(c);
    assert(!c->migration_source && !c->migration_target);
}

/* Has the source told the scheduler that it has paused? Then it must not abort. */
static bool paused(const struct migration_source *g)
{
    uint64_t id;
    return g && migration_source_state(g, &id) == MIGRATION_SOURCE_PAUSED;
}

paramo_err migration_suspend(struct shard *s)
{
    struct chain *c = s->chain;
    if (c && (paused(c->migration_source) || migration_target_complete(c)))
        return err_set(PARAMO_E_AGAIN, "partitions of this shard are being migrated");
    if (c) {
        migration_source_end(c);
        chain_reopen(s);
        migration_target_end(c, true);
        assert(!c->migration_source && !c->migration_target);
    }
    return PARAMO_OK;
}

void shard_migration_order(struct shard *s, uint32_t what, const struct migration_order *m,
                           shard_migration_done done, void *arg)
{
    struct chain *c = s->chain;
    uint64_t id;
    paramo_err err = PARAMO_OK;
    bool later = false;
    if (what == ORDER_MIGRATION_END) {
        if (c && m->from.node == s->config.node && m->from.index == s->config.index)
            migration_set_over(&c->sources_over, m->id);
        else if (c)
            migration_set_over(&c->targets_over, m->id);
        if (c && c->migration_source) {
            migration_source_state(c->migration_source, &id);
            if (id == m->id)
                migration_source_end(c);
        }
        if (c)
            migration_target_end_ordered(c, m);
        if (c)
            chain_reopen(s);
    } else if (!c || !s->view || s->self < 0 || c->failed) {
        err = err_set(PARAMO_E_NOT_FOUND, "this shard is in no chain now");
    } else if (loading_now(s)) {
        err = err_set(PARAMO_E_AGAIN, "a checkpoint is being loaded");
    } else if (what == ORDER_MIGRATION_SOURCE) {
        err = overtaken(&c->sources_over, m->id);
        if (!err)
            err = migration_source_begin(c, m);
        assert(err || c->migration_source);
    } else if (what == ORDER_MIGRATION_TARGET) {
        err = overtaken(&c->targets_over, m->id);
        if (!err)
            err = migration_target_begin(c, m, done, arg);
        later = !err;
    } else {
        err = overtaken(&c->sources_over, m->id);
        if (!err)
            err = migration_source_pause(c, m, done, arg);
        later = !err;
    }
    if (!later)
        done(arg, err);
}
