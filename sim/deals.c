#include "sim/deals.h"

#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_roster.h"
#include "sim/judge.h"
#include "sim/world.h"

static const uint32_t lengths[SIM_STREAMS] = {3, 2};

bool deal_exists(const struct work_unit *unit)
{
    return unit->stream < SIM_STREAMS && unit->index < lengths[unit->stream];
}

/* Asks the scheduler itself: the news of a death travels slower than a work unit that is dealt again. */
static bool alive(const struct world *w, uint64_t incarnation)
{
    const struct scheduler *s = world_scheduler(w);
    const struct slot_list *workers = s ? &s->roster->slots[SLOTS_WORKERS] : NULL;
    for (uint32_t i = 0; workers && i < workers->count; i++)
        if (workers->node[i] && workers->node[i]->info.incarnation == incarnation)
            return workers->node[i]->state == SNODE_JOINED || workers->node[i]->state == SNODE_ABSENT;
    return false;
}

static void round_over(struct machine *m, uint32_t round, const char *why)
{
    struct world *w = m->world;
    for (unsigned s = 0; s < SIM_STREAMS; s++)
        for (unsigned i = 0; i < lengths[s]; i++)
            if (!w->deals[s][i].sent[round])
                judge_broken(w, "%s: %s, but no worker has done work unit %u of stream %u in round %u",
                             m->name, why, i, s, round);
}

/* The worker that had the unit is dead, and the worker that gets it knows: the requests that it issues now come
 * after all of the dead worker's. */
static void knows_of_end(struct machine *m, uint64_t holder, const struct work_unit *unit)
{
    const struct view *view = member_view(machine_member(m));
    for (uint32_t i = 0; i < view->nodes_count; i++)
        if (view->nodes[i].incarnation == holder && view->nodes[i].alive)
            judge_broken(m->world,
                         "%s was dealt work unit %llu of stream %u, and in its view the last holder is alive",
                         m->name, (unsigned long long)unit->index, unit->stream);
}

void deal_got(struct machine *m, uint32_t round, const struct work_unit *unit)
{
    struct world *w = m->world;
    uint64_t own = m->made->own->incarnation;
    if (unit->stream >= SIM_STREAMS || unit->round != round || (round && !deal_exists(unit))) {
        judge_broken(w, "%s was dealt work unit %llu of stream %u in round %u, which is not there", m->name,
                     (unsigned long long)unit->index, unit->stream, unit->round);
        return;
    }
    if (m->declared_dead || !alive(w, own))
        return; /* it does not know yet, and another worker has the unit */
    struct deal *of = deal_exists(unit) ? &w->deals[unit->stream][unit->index] : NULL;
    if (of && of->holder && of->holder != own && of->round == round)
        knows_of_end(m, of->holder, unit);
    if (round)
        round_over(m, round - 1, "the next round is dealt");
    if (!deal_exists(unit))
        return; /* found in the next event */
    struct deal *d = &w->deals[unit->stream][unit->index];
    if (d->done[round])
        judge_broken(w, "%s was dealt work unit %llu of stream %u, which was done", m->name,
                     (unsigned long long)unit->index, unit->stream);
    if (d->holder && d->holder != own && d->round == round && !d->sent[round] && alive(w, d->holder))
        judge_broken(w, "%s was dealt work unit %llu of stream %u, which another living worker has", m->name,
                     (unsigned long long)unit->index, unit->stream);
    d->holder = own;
    d->round = round;
}

void deal_finished(struct machine *m, uint32_t round)
{
    round_over(m, round, "the round is finished");
}

void deal_reported(struct machine *m, const struct work_unit *unit, paramo_err status)
{
    struct world *w = m->world;
    if (!deal_exists(unit)) {
        if (status)
            judge_broken(w, "%s: a stream's end was not taken: %s", m->name, err_text());
        return;
    }
    struct deal *d = &w->deals[unit->stream][unit->index];
    w->counts[PLAY_work_units] += !status;
    if (status == PARAMO_OK && ++d->done[unit->round] > 1)
        judge_broken(w, "%s: work unit %llu of stream %u was done twice", m->name,
                     (unsigned long long)unit->index, unit->stream);
    else if (status)
        judge_broken(w, "%s: work unit %llu of stream %u was dealt to it, and its report is not taken: %s",
                     m->name, (unsigned long long)unit->index, unit->stream, err_text());
}

void deal_stale(struct machine *m, paramo_err status)
{
    bool refused =
        /* the death of the other is not known yet */
        status == PARAMO_E_NOT_FOUND || status == PARAMO_E_INVALID;
    m->world->counts[PLAY_stale] += refused;
    if (!refused)
        judge_broken(m->world, "%s: the report of a lease that ended with its process was answered with %s",
                     m->name, err_name(status));
}
