#include "sim/ckpts_state.h"

#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_roster.h"
#include "sim/world.h"

struct ckpt_seen *ckpts_seen(const struct ckpts *c, uint64_t number)
{
    struct ckpt_seen *seen = c->seen;
    while (seen && seen->number != number)
        seen = seen->next;
    return seen;
}

struct ckpt_seen *ckpts_last(const struct ckpts *c, bool promised)
{
    struct ckpt_seen *last = NULL;
    for (struct ckpt_seen *s = c->seen; s; s = s->next)
        if (s->there && (s->promised || !promised) && (!last || s->number > last->number))
            last = s;
    return last;
}

uint64_t ckpts_oldest(const struct world *w)
{
    uint64_t oldest = UINT64_MAX;
    for (unsigned i = 0; w->ckpts && i < 2; i++)
        if (w->ckpts->begun[i] && w->ckpts->begun_at[i] < oldest)
            oldest = w->ckpts->begun_at[i];
    return oldest;
}

/* Shards that had begun to replace rows when a load failed have lost these. A load that a scheduler leaves unfinished
 * counts as failed, too: its call goes to the next scheduler, which begins it again, and callers between the two get
 * DATA_LOST. The worker may notice it when all is loaded. */
bool ckpts_may_have_lost(const struct world *w, enum sim_table table, uint64_t from)
{
    const struct ckpts *c = w->ckpts;
    bool while_loading = w->loading || (c && from <= w->loaded_at);
    return c && ((while_loading && c->load_lost_at && c->load_lost_at >= from) || from <= c->restarted_at ||
                 ckpts_left_lost(w, table, from));
}

bool ckpts_left_lost(const struct world *w, enum sim_table table, uint64_t from)
{
    const struct ledger_table *t = &w->ledger[table];
    uint64_t left = w->ckpts ? w->ckpts->left_lost[table] : 0;
    return left && (t->mended_from < left || from < t->mended_at);
}

void ckpts_returned(struct world *w)
{
    w->ckpts->returns = 0;
}

/* By the scheduler's roster, too: no other node may know of the last death. */
static bool is_left(const struct world *w, const struct machine *server)
{
    if (!machine_joined(server) || server->declared_dead)
        return false;
    for (uint32_t k = 0; k < w->count; k++) {
        const struct machine *m = &w->machines[k];
        const struct scheduler *s = m->role == PARAMO_ROLE_SCHEDULER && m->up ? m->made->scheduler : NULL;
        for (uint32_t i = 0; s && i < s->roster->slots[SLOTS_SERVERS].count; i++) {
            const struct sched_node *node = s->roster->slots[SLOTS_SERVERS].node[i];
            if (node && node->state == SNODE_DEAD && node->info.incarnation == server->made->own->incarnation)
                return false;
        }
    }
    return true;
}

bool ckpts_there(const struct world *w)
{
    const struct ckpt_seen *last = w->ckpts && !w->restoring ? ckpts_last(w->ckpts, true) : NULL;
    return last && last->has_all;
}

bool ckpts_can_return(const struct world *w)
{
    /* Since the loss, or, if no view says yet that there is one, since a server was last killed or declared dead. */
    uint64_t since = w->loss_view ? w->loss_began : w->server_gone_at;
    bool there = ckpts_there(w) && w->ckpts->failed_at <= since, can = false;
    for (uint32_t k = 1; k <= w->schedule->servers && there; k++)
        can = can || is_left(w, &w->machines[k]);
    return can;
}

bool ckpts_restored(const struct world *w)
{
    return w->ckpts && w->ckpts->restored != 0;
}
