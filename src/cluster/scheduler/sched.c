#include "cluster/scheduler/sched.h"

#include "base/sm.h"

static const struct sm machine = {
    "job",
    {[SCHED_GATHERING] = {"gathering", SM_TO(SCHED_RUNNING) | SM_TO(SCHED_ENDING) | SM_TO(SCHED_OVER)},
     [SCHED_RUNNING] = {"running", SM_TO(SCHED_ENDING) | SM_TO(SCHED_OVER)},
     [SCHED_ENDING] = {"ending", SM_TO(SCHED_OVER)},
     [SCHED_OVER] = {"over", 0}}};

void sched_move(struct scheduler *s, enum sched_state to)
{
    sm_check(&machine, s->state, to);
    s->state = to;
}

bool sched_restores_lost(const struct scheduler *s)
{
    return s->config.on_loss_restore && !s->restoring;
}
