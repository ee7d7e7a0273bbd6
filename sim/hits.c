#include "sim/hits.h"

#include "sim/cover.h"
#include "sim/world.h"

void hits_add(struct world *w, size_t fault)
{
    if (w->hit[fault])
        return;
    const struct fault *f = &w->schedule->faults[fault];
    w->struck++;
    w->hit[fault] = true;
    uint32_t from = f->kind == FAULT_amid || f->kind == FAULT_island ? w->amid_source : f->from;
    cover_fault(w, f->kind, from, f->kind <= FAULT_reset || f->kind == FAULT_split ? f->to : from);
}
