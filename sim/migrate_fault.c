/* Partitions that migrate under load: a server's weight changes, and the scheduler has partitions copied to
 * it or from it. Never to 0: the server would leave. */
#include "sim/migrate_fault.h"

#include <stdlib.h>

#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_view.h"
#include "sim/world.h"

bool migrate_fault_strike(struct world *w, const struct fault *f)
{
    const struct machine *machine = &w->machines[0];
    if (!w->complete || !machine->up || sim_host_paused_until(machine->host) > sim_now(w->sim))
        return false;
    struct scheduler *s = machine->made->scheduler;
    uint32_t weight = SIM_WEIGHT - 3 + (uint32_t)(f->n % 8);
    if (!s || s->state != SCHED_RUNNING || f->from - 1 >= s->roster->slots[SLOTS_SERVERS].count)
        return false;
    struct sched_node *node = s->roster->slots[SLOTS_SERVERS].node[f->from - 1];
    if (node->state != SNODE_JOINED || !node->info.weight || node->info.weight == weight)
        return false;
    if (!lane_enter(machine->made->control))
        abort();
    node->info.weight = weight;
    sched_view_change(s);
    sched_migrations_retarget(s);
    lane_leave(machine->made->control);
    w->migrations++;
    return true;
}
