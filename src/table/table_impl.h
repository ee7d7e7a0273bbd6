/* What table.c and table_snapshot.c share. Nobody else includes it. */
#ifndef TABLE_TABLE_IMPL_H
#define TABLE_TABLE_IMPL_H

#include "table/rowmarks.h"
#include "table/rowspec.h"
#include "table/table.h"
#include "table/table_dense.h"
#include "table/table_small.h"
#include "table/table_sparse.h"
#include "table/table_var.h"

/* What has changed, while a cut is open or somebody wants to know it for the next. */
struct table_changes {
    bool marking;   /* there are marks, and the store has them */
    bool tracking;  /* for the next cut */
    bool known;     /* since the last one */
    uint64_t epoch; /* counts cuts; a mark is 1 to 3 of them in turn */
    struct rowmarks marks;
    uint64_t *erased; /* keys; some may have come again, or stand twice */
    size_t erased_count, erased_room;
};

/* What a table had when it was cleared: freed step by step (table_clear.c). */
struct table_remains {
    struct table_remains *next;
    union {
        struct table_sparse sparse;
        struct table_small small;
        struct table_var var;
    };
    enum { REMAINS_VALUES, REMAINS_INDEX, REMAINS_SLAB } phase; /* what goes next */
    uint64_t rows_at;                                           /* VALUES: of a VAR table; a hash */
    size_t segments_at;                                         /* INDEX */
};

struct table {
    struct tablemem mem;
    paramo_table_options options;
    struct rowspec spec;
    uint64_t generation;
    uint32_t *scratch;
    size_t scratch_room;
    struct table_snapshot *snapshot; /* NULL: none is open */
    struct table_changes changes;
    struct table_remains *remains;
    union {
        struct table_sparse sparse;
        struct table_small small;
        struct table_dense dense;
        struct table_var var;
    };
};

static inline bool is_dense(const struct table *t)
{
    return t->options.kind == PARAMO_TABLE_DENSE;
}

/* A sparse table whose rows lie in its index. */
static inline bool is_small(const struct table *t)
{
    return t->options.kind == PARAMO_TABLE_SPARSE && table_small_fits(&t->spec);
}

static inline bool is_var(const struct table *t)
{
    return t->options.kind == PARAMO_TABLE_VAR;
}

static inline const struct keyindex *index_of(const struct table *t)
{
    return is_var(t) ? &t->var.index : is_small(t) ? &t->small.index : &t->sparse.index;
}

/* table_clear.c: all of it, at once. */
void table_remains_free(struct table *t);
/* The last row has been removed: memory that the table no longer needs is to be freed. */
void table_emptied(struct table *t);

/* While it is marking. Before these rows of a dense table change, or come to be; before rows of another are
 * removed; before all are. */
void table_snapshot_touch(struct table *t, const uint64_t *keys, size_t n);
void table_snapshot_touch_range(struct table *t, uint64_t first, uint64_t count);
void table_snapshot_remove(struct table *t, const uint64_t *keys, size_t n);
void table_snapshot_touch_all(struct table *t);
/* Is a cut open that has not come to its end? */
bool table_snapshot_walks(const struct table *t);
/* The changes until now are not known any more. Marks go, unless an open cut needs them. */
void table_changes_lose(struct table *t);

#endif
