/*
 * State of one table: its store, the changes noted for snapshots, and memory that is still to be freed.
 * Holds the struct and inline getters; each store has its own header. It never knows the operations of
 * table.h. Private to src/table/table*.c. Tests: test/table/.
 */
#ifndef TABLE_TABLE_STATE_H
#define TABLE_TABLE_STATE_H

#include "table/rowmarks.h"
#include "table/rowspec.h"
#include "table/table_dense.h"
#include "table/table_options.h"
#include "table/table_small.h"
#include "table/table_sparse.h"
#include "table/table_var.h"

/* Changes, noted while a snapshot is open, or for the next one. */
struct table_changes {
    bool marking;   /* the store keeps marks */
    bool tracking;  /* for the next snapshot */
    bool known;     /* all changes since the last snapshot are known */
    uint64_t epoch; /* counts snapshots; their marks are 1, 2, 3, 1, ... */
    struct rowmarks marks;
    /* Small rows still have marks of abandoned snapshots: 0 none, 1 of one, 2 of several ... */
    unsigned stale;
    uint64_t stale_at; /* ... from this hash on */
    bool over_stale;   /* the open snapshot began while there were such marks */
    uint64_t *erased;  /* keys; some may have a row again, or occur twice */
    size_t erased_count, erased_room;
};

/* The store of a table that was cleared, freed in steps (table_clear.c). */
struct table_remains {
    struct table_remains *next;
    union {
        struct table_sparse sparse;
        struct table_small small;
        struct table_var var;
    };
    enum remains_phase { REMAINS_VALUES, REMAINS_INDEX, REMAINS_SLAB } phase; /* what is freed next */
    uint64_t rows_at;   /* VALUES of a VAR table: a hash */
    size_t segments_at; /* INDEX */
};

struct table {
    struct tablemem mem;
    paramo_table_options options;
    struct rowspec spec;
    uint64_t generation, owner; /* owner: in keysets */
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

/* A sparse table whose rows are in its index. */
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

static inline uint64_t rows_of(const struct table *t)
{
    return is_dense(t) ? table_dense_rows(&t->dense) : index_of(t)->count;
}

#endif
