#include "sim/cells.h"

#include <string.h>

#include "sim/ckpts_state.h"
#include "sim/overdue.h"
#include "sim/world.h"

void cell_init(struct cell *cell)
{
    cell->n = 1;
    cell->any = cell->any_end = 0;
    cell->missing = 0;
    cell->values[0] = (struct cell_value){.gone = UINT64_MAX};
}

/* No open read began before this moment. */
static uint64_t oldest_read(const struct world *w)
{
    uint64_t oldest = w->moment;
    uint32_t left = w->by_serial_count;
    for (uint32_t serial = w->serial; left; serial--) { /* most are recent */
        const struct op *op = w->by_serial[serial % SIM_SERIALS];
        left -= op != NULL;
        if (op && op->from < oldest)
            oldest = op->from;
    }
    for (uint32_t i = 0; i < w->schedule->workers; i++)
        if (w->workers[i].script.calling && w->workers[i].script.kv_from < oldest)
            oldest = w->workers[i].script.kv_from;
    for (uint32_t i = 0; i < w->schedule->workers; i++)
        if (w->workers[i].client_task && w->workers[i].client_task_from < oldest)
            oldest = w->workers[i].client_task_from;
    uint64_t saved = ckpts_oldest(w);
    return overdue_oldest(w, saved < oldest ? saved : oldest);
}

bool cell_room(struct world *w, struct cell *cell)
{
    if (cell->n < SIM_CELL_VALUES - 1) /* one place is for cell_lost() */
        return true;
    uint64_t oldest = oldest_read(w);
    unsigned kept = 0;
    for (unsigned i = 0; i < cell->n; i++) {
        const struct cell_value *v = &cell->values[i];
        if (v->gone > oldest)
            cell->values[kept++] = *v;
        else if (!v->value && v->gone > cell->missing)
            cell->missing = v->gone;
    }
    cell->n = kept;
    return kept < SIM_CELL_VALUES - 1;
}

void cell_write(struct cell *cell, uint64_t value, uint64_t from)
{
    cell->values[cell->n++] =
        (struct cell_value){.value = value, .from = from, .end = UINT64_MAX, .gone = UINT64_MAX};
}

void cell_written(struct cell *cell, uint64_t value, uint64_t from, uint64_t moment)
{
    if (cell->any_end < from && moment < cell->any)
        cell->any = moment;
    for (unsigned i = 0; i < cell->n; i++) {
        struct cell_value *v = &cell->values[i];
        if (v->value == value && v->from == from)
            v->end = moment;
        else if (v->end < from && moment < v->gone)
            v->gone = moment;
    }
}

void cell_lost(struct world *w, struct cell *cell)
{
    for (unsigned i = 0; i < cell->n; i++)
        if (!cell->values[i].value && cell->values[i].end == UINT64_MAX)
            return;
    (void)cell_room(w, cell);
    cell_write(cell, 0, ++w->moment);
}

bool cell_may_be(const struct cell *cell, uint64_t value, uint64_t from)
{
    for (unsigned i = 0; i < cell->n; i++)
        if (cell->values[i].value == value && cell->values[i].gone > from)
            return true;
    /* A page or batch may leave out rows that were missing when the scan's first one was read, and that may be earlier
     * than any read that is open now. */
    return cell->any > from || (!value && cell->missing > from);
}

void cell_now(const struct cell *cell, uint64_t from, struct cell_set *set)
{
    set->n = 0;
    set->any = cell->any > from;
    for (unsigned i = 0; i < cell->n; i++)
        if (cell->values[i].gone > from)
            set->value[set->n++] = cell->values[i].value;
}

void cell_becomes(struct world *w, struct cell *cell, const struct cell_set *set, uint64_t from)
{
    bool room = true;
    for (unsigned i = 0; i < set->n; i++) {
        room = cell_room(w, cell);
        if (!room)
            break;
        cell_write(cell, set->value[i], from);
    }
    if (set->any || !room) {
        cell->any = UINT64_MAX;
        cell->any_end = w->moment;
    }
    for (unsigned i = 0; i < set->n; i++)
        cell_written(cell, set->value[i], from, w->moment);
}
