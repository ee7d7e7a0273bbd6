#include "sim/world.h"

#include "node/node.h"

struct scheduler *world_scheduler(const struct world *w)
{
    const struct machine *leads = NULL;
    for (uint32_t k = 0; k < w->count; k++) {
        const struct machine *m = &w->machines[k];
        if (m->role == PARAMO_ROLE_SCHEDULER && m->up && m->made->scheduler &&
            (!leads || m->term > leads->term))
            leads = m;
    }
    return leads ? leads->made->scheduler : NULL;
}
