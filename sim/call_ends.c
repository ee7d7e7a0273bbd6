#include "sim/call_ends.h"

#include "cluster/member/member_impl.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_roster.h"
#include "sim/judge.h"
#include "sim/world.h"

bool call_ends_with(const struct machine *m, paramo_err status)
{
    const struct member *member = m->made->own->member;
    return member->state == MEMBER_ENDED && member->end_status == status;
}

bool call_ends_with_job(const struct machine *m, paramo_err status)
{
    return call_ends_with(m, status) || (status == PARAMO_E_SHUTDOWN && judge_end_durable(m->world));
}

bool call_ends_late(const struct machine *m, uint64_t asked_at, uint64_t deadline, uint64_t from)
{
    uint64_t now = lane_now(m->made->control) + sim_host_stood(m->host, asked_at);
    return now - asked_at >= (deadline - asked_at) / 10 * 9 || m->world->jumped_at > from;
}

/* Is the machine a worker in this place, and alive for the scheduler? Its view of a death comes after its answers. */
static bool is_here(const struct machine *m, uint32_t place)
{
    const struct scheduler *s = world_scheduler(m->world);
    if (!s || !machine_joined(m) || m->declared_dead || call_ends_place(m) != place ||
        m->script.step == SCRIPT_LEAVE || m->script.step == SCRIPT_GONE)
        return false;
    const struct sched_node *node = sched_roster_find_incarnation(s, m->made->own->incarnation);
    return node && sched_roster_is_here(node);
}

uint32_t call_ends_place(const struct machine *m)
{
    return (member_id(machine_member(m)) - PARAMO_ID_SERVER(0)) / 2 % SIM_PLACES;
}

bool call_ends_barrier(const struct world *w, uint64_t from)
{
    bool broken = false;
    for (uint32_t place = 0; place < w->schedule->workers - w->schedule->extra && !broken; place++) {
        bool here = false;
        for (uint32_t i = 0; i < w->schedule->workers; i++)
            here = here || is_here(&w->workers[i], place);
        broken = !here || w->worker_changed[place] >= from;
    }
    return broken;
}
