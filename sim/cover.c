#include "sim/cover.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/member/member_impl.h"
#include "node/tasks.h"
#include "server/migration/source.h"
#include "server/migration/target.h"
#include "server/replication/chain_impl.h"
#include "server/replication/records.h"
#include "server/snapshot/loading.h"
#include "server/snapshot/saving.h"
#include "sim/cover_impl.h"
#include "sim/cover_sched.h"
#include "sim/judge.h"
#include "sim/task_calls.h"
#include "worker/client_impl.h"
#include "worker/links.h"

static void watch_member(struct watch *l, const struct member_slot *member_slot)
{
    static const uint8_t member_slots[] = {[MEMBER_SLOT_NEW] = IS_none,
                                           [MEMBER_SLOT_JOINING] = IS_joining,
                                           [MEMBER_SLOT_JOINED] = IS_joined,
                                           [MEMBER_SLOT_FAILED] = IS_failed,
                                           [MEMBER_SLOT_ENDED] = IS_ended};
    static const uint8_t members[] = {[MEMBER_JOINING] = IS_joining,
                                      [MEMBER_JOINED] = IS_joined,
                                      [MEMBER_LEAVING] = IS_leaving,
                                      [MEMBER_ENDED] = IS_ended};
    const struct member *m = member_slot->member;
    enum cover_state sits = (enum cover_state)member_slots[atomic_load(&member_slot->state)];
    if (sits != IS_none)
        watch_state(l, COVER_member_slot, 0, sits, 0);
    if (m && m->state != MEMBER_CLOSED)
        watch_state(l, COVER_member, 0,
                    m->state == MEMBER_JOINED && !m->registered ? IS_seeking
                                                                : (enum cover_state)members[m->state],
                    0);
}

static void watch_chain(struct watch *l, const struct chain *c, uint64_t shard)
{
    static const uint8_t gives[] = {[MIGRATION_SOURCE_COPYING] = IS_copying,
                                    [MIGRATION_SOURCE_FULL] = IS_full,
                                    [MIGRATION_SOURCE_PAUSING] = IS_pausing,
                                    [MIGRATION_SOURCE_PAUSED] = IS_paused};
    static const uint8_t takes[] = {[MIGRATION_TARGET_FILLING] = IS_filling,
                                    [MIGRATION_TARGET_FULL] = IS_full,
                                    [MIGRATION_TARGET_LAST] = IS_last};
    uint64_t id;
    for (const struct chain_stream *st = c->streams; st; st = st->next)
        watch_state(l, COVER_stream, shard ^ (uint64_t)st->generation << 16,
                    st->conn        ? IS_up
                    : st->connector ? IS_connecting
                                    : IS_idle,
                    st->incarnation);
    for (const struct chain_source *so = c->sources; so; so = so->next)
        watch_state(l, COVER_source,
                    (shard | (uint64_t)so->from.shard << 8 | (uint64_t)so->for_migration << 7) ^
                        so->incarnation ^ (uint64_t)so->generation << 16,
                    so->conn ? IS_up : IS_lost, so->incarnation);
    if (records_pending(c))
        watch_state(l, COVER_records, shard, IS_passing, 0);
    if (c->migration_source) {
        enum migration_source_state state = migration_source_state(c->migration_source, &id);
        watch_state(l, COVER_migration_source, shard | id << 8, (enum cover_state)gives[state], 0);
    }
    if (c->migration_target) {
        enum migration_target_state state = migration_target_state(c->migration_target, &id);
        watch_state(l, COVER_migration_target, shard | id << 8, (enum cover_state)takes[state], 0);
    }
}

static void watch_shard(struct watch *l, const struct shard *s, uint64_t number)
{
    static const uint8_t loads[] = {
        [HOLDING] = IS_holding, [HELD] = IS_held, [LOADING] = IS_loading, [LOADED] = IS_loaded};
    if (s->chain)
        watch_chain(l, s->chain, number);
    if (s->saves->current) {
        uint64_t save;
        enum saving_phase phase = saving_state(s->saves->current, &save);
        watch_state(l, COVER_saving, number | save << 8, phase == SAVING_WAITING ? IS_waiting : IS_running,
                    0);
    }
    if (s->loads->current) {
        uint64_t load;
        enum loading_phase phase;
        bool restores = loading_state(s->loads->current, &phase, &load);
        watch_state(l, COVER_loading, number ^ load << 8,
                    restores ? IS_restoring : (enum cover_state)loads[phase], 0);
    }
}

static void watch_observing(struct watch *l)
{
    static const uint8_t states[] = {
        [OBSERVING_SEEKING] = IS_seeking, [OBSERVING_JOINED] = IS_joined, [OBSERVING_ENDED] = IS_ended};
    enum observing_state state = l->m->observing.state;
    if (state != OBSERVING_NONE)
        watch_state(l, COVER_observer, 0, (enum cover_state)states[state], 0);
}

static void watch_links(struct watch *l)
{
    static const uint8_t links[] = {
        [LINK_IDLE] = IS_idle, [LINK_CONNECTING] = IS_connecting, [LINK_PAUSE] = IS_pause, [LINK_UP] = IS_up};
    for (const paramo_worker *w = l->m->made->workers; w; w = w->next)
        for (size_t i = 0; i < links_count(w->client); i++) {
            const struct link *x = links_at(w->client, i);
            watch_state(l, COVER_link,
                        x->incarnation ^ (uint64_t)w->app << 48 ^ (uint64_t)w->customer << 32 ^ x->index,
                        (enum cover_state)links[x->state], x->incarnation);
        }
}

/* A task whose function has not begun, and that waits for no other, is in the queue of its thread, which is not
 * seen. */
static void watch_tasks(struct watch *l)
{
    const paramo_task_info *held[TASK_RECENT];
    size_t n = tasks_held(l->m->made, held, TASK_RECENT);
    for (size_t i = 0; i < n && i < TASK_RECENT; i++) {
        const struct task_call *call = task_calls_find(l->m->world, held[i]);
        if (call)
            watch_state(l, COVER_task, call->index, IS_held, call->caller);
    }
    for (const struct task_run *run = l->m->runs; run; run = run->next)
        watch_state(l, COVER_task, run->call->index, IS_running, run->call->caller);
}

void cover_watch(struct machine *m)
{
    struct watch l = {.m = m, .c = m->cover};
    if (!m->up)
        return;
    const struct paramo_node *node = m->made;
    if (node->own) {
        watch_member(&l, node->own);
        for (unsigned i = 0; i < node->own->shards_count; i++)
            if (node->own->shards[i].shard)
                watch_shard(&l, node->own->shards[i].shard, i);
    }
    watch_observing(&l);
    if (node->workers)
        watch_links(&l);
    if (node->tasks)
        watch_tasks(&l);
    if (node->scheduler || node->store)
        cover_watch_scheduler(&l);
    for (size_t i = l.at; i < l.c->count; i++) /* the instances that are left have ended */
        cover_transition_seen(m, l.c->seen[i].machine, l.c->seen[i].state, IS_gone, l.c->seen[i].faults);
    l.c->count = l.at;
}

/* ---- faults and deaths --------------------------------------------------------------------------------- */

void cover_fault(struct world *w, enum fault_kind kind, uint32_t a, uint32_t b)
{
    uint32_t bit = UINT32_C(1) << kind;
    for (uint32_t k = 0; k < w->count; k++) {
        struct cover *c = w->machines[k].cover;
        bool struck = k == a || k == b;
        for (unsigned i = 0; i < COVER_MACHINES_COUNT && struck; i++)
            c->born[i] |= bit;
        for (size_t i = 0; i < c->count; i++)
            if (struck || c->seen[i].peer == a || c->seen[i].peer == b)
                c->seen[i].faults |= bit;
    }
}

void cover_dies(struct machine *m, bool killed)
{
    struct cover *c = m->cover;
    for (size_t i = 0; i < c->count && killed; i++)
        cover_transition_seen(m, c->seen[i].machine, c->seen[i].state, IS_killed, c->seen[i].faults);
    c->count = 0;
}

void cover_make(struct machine *m)
{
    m->cover = calloc(1, sizeof *m->cover);
    if (!m->cover)
        abort();
}

void cover_free(struct machine *m)
{
    free(m->cover->seen);
    free(m->cover);
    m->cover = NULL;
}
