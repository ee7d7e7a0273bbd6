#include "sim/cover_sched.h"

#include "cluster/meta/store_dir.h"
#include "cluster/meta/store_etcd_impl.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_roster.h"
#include "sim/cover_impl.h"

static void watch_node(struct watch *l, const struct sched_node *n)
{
    static const uint8_t nodes[] = {[SNODE_WAITING] = IS_waiting,
                                    [SNODE_JOINED] = IS_joined,
                                    [SNODE_ABSENT] = IS_absent,
                                    [SNODE_DEAD] = IS_dead,
                                    [SNODE_LEFT] = IS_left};
    watch_state(l, COVER_node, n->info.incarnation, (enum cover_state)nodes[n->state], n->info.incarnation);
}

static void watch_scheduler(struct watch *l, const struct scheduler *s)
{
    static const uint8_t jobs[] = {[SCHED_GATHERING] = IS_gathering,
                                   [SCHED_RUNNING] = IS_running,
                                   [SCHED_ENDING] = IS_ending,
                                   [SCHED_OVER] = IS_over};
    static const uint8_t states[] = {[MIGRATION_PLANNED] = IS_planned,
                                     [MIGRATION_COPYING] = IS_copying,
                                     [MIGRATION_FULL] = IS_full,
                                     [MIGRATION_PAUSED] = IS_paused};
    watch_state(l, COVER_job, 0, (enum cover_state)jobs[s->state], 0);
    for (unsigned i = 0; i < SLOTS; i++)
        for (uint32_t k = 0; k < s->roster->slots[i].count; k++)
            if (s->roster->slots[i].node[k])
                watch_node(l, s->roster->slots[i].node[k]);
    for (const struct sched_node *n = s->roster->waiting_first; n; n = n->next)
        watch_node(l, n);
    for (unsigned i = 0; i < MIGRATIONS_MAX; i++)
        if (s->migrations->machine.migration[i].state != MIGRATION_NONE)
            watch_state(l, COVER_migration, s->migrations->machine.migration[i].id,
                        (enum cover_state)states[s->migrations->machine.migration[i].state], 0);
}

static void watch_store(struct watch *l, const struct store *store)
{
    static const uint8_t stores[] = {
        [STORE_OPEN] = IS_open, [STORE_STARTING] = IS_starting, [STORE_READY] = IS_ready};
    static const uint8_t phases[] = {
        [PHASE_OPEN] = IS_open,         [PHASE_WATCH] = IS_watch, [PHASE_GRANT] = IS_grant,
        [PHASE_CAMPAIGN] = IS_campaign, [PHASE_READ] = IS_read,   [PHASE_READY] = IS_leads};
    if (!l->m->world->schedule->meta) {
        watch_state(l, COVER_store, 0, (enum cover_state)stores[store_dir_phase(store)], 0);
        return;
    }
    const struct etcd_store *s = container_of(store, struct etcd_store, store);
    enum cover_state state = (enum cover_state)phases[s->phase];
    if (state == IS_leads && (s->fenced || !s->leads))
        state = s->fenced ? IS_fenced : IS_unsure;
    watch_state(l, COVER_lead, 0, state, 0);
}

void cover_watch_scheduler(struct watch *l)
{
    const struct paramo_node *node = l->m->made;
    const struct store *store = node->scheduler ? node->scheduler->config.store : node->store;
    if (node->scheduler)
        watch_scheduler(l, node->scheduler);
    if (store)
        watch_store(l, store);
}
