#include "sim/judge.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_end.h"
#include "cluster/scheduler/sched_save.h"
#include "sim/ckpts_state.h"
#include "sim/world.h"

void judge_broken(struct world *w, const char *fmt, ...)
{
    va_list args;
    if (w->broken[0])
        return;
    va_start(args, fmt);
    (void)vsnprintf(w->broken, sizeof w->broken, fmt, args);
    va_end(args);
}

uint64_t judge_row(struct world *w, const char *where, const uint64_t vals[2])
{
    if (vals[0] ? vals[1] != ~vals[0] : vals[1] != 0)
        judge_broken(w, "%s: a row is torn: %" PRIx64 " and %" PRIx64, where, vals[0], vals[1]);
    return vals[0];
}

uint32_t judge_sees_dead(const struct view *view)
{
    uint32_t dead = 0;
    for (uint32_t i = 0; view && i < view->nodes_count; i++)
        if (view->nodes[i].role == PARAMO_ROLE_SERVER && !view->nodes[i].alive && !view->nodes[i].left)
            dead |= UINT32_C(1) << (view->nodes[i].id - PARAMO_ID_SERVER(0)) / 2 % SIM_SERVERS;
    return dead;
}

_Static_assert((int)SCHEDULE_NODES_MAX < 32, "a word has a bit for each machine");

void judge_dead(struct machine *m, bool dead)
{
    uint32_t bit = UINT32_C(1) << m->node;
    if (dead && !m->declared_dead) {
        m->dead_at = m->world->newest_view_at;
        m->ghost_until = 0;
        m->world->server_gone_at =
            m->role == PARAMO_ROLE_SERVER ? m->world->moment : m->world->server_gone_at;
    }
    if (dead && m->role == PARAMO_ROLE_WORKER && m->place >= 0)
        m->world->worker_changed[m->place] = m->world->moment;
    m->declared_dead = dead;
    m->world->dead = dead ? m->world->dead | bit : m->world->dead & ~bit;
}

unsigned judge_replicas(const struct world *w, enum sim_table table)
{
    const struct schedule *s = w->schedule;
    bool fewer = table == (enum sim_table)(s->fewer - 1) && table != SIM_USER &&
                 (s->fewest || table != SIM_CELLS); /* the model of cells expects the last value */
    return s->fewer && fewer ? s->fewest : s->replicas;
}

bool judge_rows_lost(const struct world *w, enum sim_table table)
{
    bool seen = w->schedule->restores ? w->given_up : w->deaths_seen;
    return w->schedule->replicas && seen && !judge_replicas(w, table);
}

bool judge_may_be_lost(const struct world *w, enum sim_table table, uint64_t from)
{
    const struct ledger_table *t = &w->ledger[table];
    uint64_t lost_at = w->schedule->restores ? w->given_up : w->lost_at;
    return !judge_replicas(w, table) && lost_at && (t->mended_from < lost_at || from < t->mended_at);
}

unsigned judge_spare(const struct world *w)
{
    unsigned least = w->schedule->replicas;
    for (unsigned t = 0; t < SIM_TABLES; t++) {
        unsigned replicas = judge_replicas(w, (enum sim_table)t);
        least = replicas && replicas < least ? replicas : least;
    }
    return least;
}

bool judge_enough(const struct world *w, unsigned gone)
{
    return gone <= judge_spare(w);
}

bool judge_data_lost(const struct world *w)
{
    if (w->schedule->restores)
        return (w->loss_view || !judge_enough(w, w->gone)) && !ckpts_can_return(w);
    return w->schedule->replicas && !judge_enough(w, w->gone);
}

bool judge_scheduler_end_durable(const struct scheduler *s)
{
    return s->config.store ? s->saves->end_saved : s->state >= SCHED_ENDING;
}

bool judge_end_durable(const struct world *w)
{
    bool durable = w->over || w->end_durable;
    for (uint32_t k = 0; k < w->count && !durable; k++) {
        const struct machine *m = &w->machines[k];
        durable = m->role == PARAMO_ROLE_SCHEDULER && m->up && m->made->scheduler &&
                  judge_scheduler_end_durable(m->made->scheduler);
    }
    return durable;
}

/* The job ends because rows are lost, which is judged by itself (machine.c). A node may learn of the view with the
 * death and of the end in one step, before the death is counted here. */
static bool ends_for_loss(const struct world *w)
{
    bool lost = w->over && w->over_status == PARAMO_E_DATA_LOST;
    for (uint32_t k = 0; k < w->count; k++) {
        const struct machine *m = &w->machines[k];
        const struct scheduler *s = m->role == PARAMO_ROLE_SCHEDULER && m->up ? m->made->scheduler : NULL;
        lost = lost || (s && (s->state == SCHED_ENDING || s->state == SCHED_OVER) &&
                        s->end->status == PARAMO_E_DATA_LOST);
    }
    return lost;
}

bool judge_may_refuse(const struct world *w)
{
    return (!w->schedule->replicas && !w->schedule->restores) || judge_data_lost(w) || ends_for_loss(w);
}

bool judge_needs(const struct world *w, const struct machine *server)
{
    unsigned gone = w->gone + 1;
    bool has = false;
    for (uint32_t i = 0; i < SIM_SERVERS; i++) {
        bool up = !w->copies_at[i];
        for (uint32_t k = 1; k <= w->schedule->servers; k++) {
            const struct machine *m = &w->machines[k];
            bool here = m->up && !m->declared_dead && m->made->own->incarnation == w->copies_at[i];
            has = has || (here && m == server);
            up = up || here;
        }
        gone += !up; /* no view says so yet */
    }
    return has && !judge_enough(w, gone);
}
