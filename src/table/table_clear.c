#include "table/table_clear.h"

#include <assert.h>

#include "base/sm.h"
#include "table/table_changes.h"
#include "table/table_state.h"

enum { /* per step: at most a millisecond each */
       STEP_ROWS = 4096,
       STEP_SEGMENTS = 64,
       STEP_SLABS = 64
};

/* The new index continues the old one's count of moves, which ends all places of the old one. Changes are
 * noted as before. */
static void index_follows(struct keyindex *x, const struct keyindex *before)
{
    assert(!x->count && !x->directory);
    assert(x->mem == before->mem);
    x->moves = before->moves + 1;
    x->mark = before->mark;
    x->first = before->first;
    x->first_arg = before->first_arg;
}

static const struct sm machine = {
    "remains of a table",
    {[REMAINS_VALUES] = {"values", SM_TO(REMAINS_INDEX)}, /* only VAR tables have values */
     [REMAINS_INDEX] = {"index", SM_TO(REMAINS_SLAB)},
     [REMAINS_SLAB] = {"slab", 0}}};

static void move(struct table_remains *r, enum remains_phase to)
{
    sm_check(&machine, r->phase, to);
    r->phase = to;
}

/* Moves the store to *r, which is zero, and leaves an empty one. */
static void store_detach(struct table *t, struct table_remains *r)
{
    uint64_t seed = index_of(t)->seed;
    assert(r->phase == REMAINS_VALUES && !r->rows_at && !r->segments_at);
    if (is_var(t)) {
        r->var = t->var;
        table_var_init(&t->var, &t->spec, &t->mem, seed);
        index_follows(&t->var.index, &r->var.index);
        t->var.slab.marks = r->var.slab.marks;
    } else if (is_small(t)) {
        r->small = t->small;
        table_small_init(&t->small, &t->spec, &t->mem, seed);
        index_follows(&t->small.index, &r->small.index);
        move(r, REMAINS_INDEX);
    } else {
        r->sparse = t->sparse;
        table_sparse_init(&t->sparse, &t->spec, &t->mem, seed);
        index_follows(&t->sparse.index, &r->sparse.index);
        t->sparse.slab.marks = r->sparse.slab.marks;
        move(r, REMAINS_INDEX);
    }
    assert(!rows_of(t) && !index_of(t)->segments);
}

/* True: everything is freed. */
static bool remains_step(const struct table *t, struct table_remains *r)
{
    struct keyindex *index = is_var(t) ? &r->var.index : is_small(t) ? &r->small.index : &r->sparse.index;
    struct rowslab *slab = is_var(t) ? &r->var.slab : &r->sparse.slab;
    switch (r->phase) {
    case REMAINS_VALUES:
        if (table_var_free_step(&r->var, &r->rows_at, STEP_ROWS))
            move(r, REMAINS_INDEX);
        return false;
    case REMAINS_INDEX:
        if (!keyindex_clear_step(index, &r->segments_at, STEP_SEGMENTS))
            return false;
        move(r, REMAINS_SLAB);
        return is_small(t);
    case REMAINS_SLAB:
        break;
    }
    return rowslab_clear_step(slab, STEP_SLABS);
}

bool table_clear_step(struct table *t)
{
    struct table_remains *r = t->remains;
    assert(!t->changes.stale || is_small(t));
    if (t->changes.stale) {
        (void)table_marks_step(t);
    } else if (r && remains_step(t, r)) {
        t->remains = r->next;
        tablemem_put(&t->mem, r, sizeof *r);
    }
    return table_clear_due(t);
}

void table_remains_free(struct table *t)
{
    t->changes.stale = 0;
    while (table_clear_step(t)) {
    }
    assert(!t->remains);
}

bool table_clear_is_short(const struct table *t)
{
    return !is_dense(t) && !table_snapshot_walks(t);
}

bool table_clear_due(const struct table *t)
{
    return t->remains || t->changes.stale;
}

/* The changes of the rows were noted when they were removed. An index of one segment stays, for the next rows. */
void table_emptied(struct table *t)
{
    assert(!is_dense(t));
    assert(!rows_of(t));
    struct table_remains *r =
        index_of(t)->segments > 1 ? tablemem_get(&t->mem, sizeof(void *), sizeof *r) : NULL;
    if (!r)
        return;
    *r = (struct table_remains){.next = t->remains};
    store_detach(t, r);
    t->remains = r;
}

void table_clear(struct table *t)
{
    if (t->changes.marking)
        table_snapshot_touch_all(t);
    t->generation++;
    if (is_dense(t)) {
        table_dense_reset(&t->dense);
        return;
    }
    struct table_remains *r = tablemem_get(&t->mem, sizeof(void *), sizeof *r);
    if (!r) { /* without memory it frees everything now */
        if (is_var(t))
            table_var_clear(&t->var);
        else if (is_small(t))
            table_small_clear(&t->small);
        else
            table_sparse_clear(&t->sparse);
        return;
    }
    *r = (struct table_remains){.next = t->remains};
    store_detach(t, r);
    t->remains = r;
    assert(!rows_of(t));
}
