/* What table.c and table_cut.c share. Nobody else includes it. */
#ifndef TABLE_TABLE_IMPL_H
#define TABLE_TABLE_IMPL_H

#include "table/rowspec.h"
#include "table/table.h"
#include "table/table_dense.h"
#include "table/table_small.h"
#include "table/table_sparse.h"
#include "table/table_var.h"

struct table {
    struct tablemem mem;
    paramo_table_options options;
    struct rowspec spec;
    uint64_t generation;
    uint32_t *scratch;
    size_t scratch_room;
    struct table_cut *cut; /* NULL: none is open */
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

/* Before these rows change, or come to be; the second: before all do. */
void table_cut_touch(struct table_cut *cut, const uint64_t *keys, size_t n);
void table_cut_touch_all(struct table_cut *cut);

#endif
