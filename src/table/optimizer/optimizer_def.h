/*
 * The definition of one optimizer: what the tables, the checks of options and the tests must know of it. Each
 * opt_<name>.c of this folder defines one, optimizer_<name>; optimizer_def() finds it by its number. Never
 * knows keys, tables or memory. Tests: test/table/test_optimizer.c, which goes over all definitions.
 */
#ifndef TABLE_OPTIMIZER_OPTIMIZER_DEF_H
#define TABLE_OPTIMIZER_OPTIMIZER_DEF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"
#include "paramo/types.h"

struct optimizer;

/* n columns: w, s0 and s1 (unused ones may be anything), g. t is the count of pushes, this one included, for
 * an optimizer that counts them. */
typedef void optimizer_span_fn(const struct optimizer *o, void *w, float *s0, float *s1, float t,
                               const void *g, size_t n);
/* count distinct rows of dim columns, each laid out w, s0, s1, t without gaps; g is count * dim values.
 * Counts t up itself. */
typedef void optimizer_rows_fn(const struct optimizer *o, void *const *rows, size_t count, size_t dim,
                               const void *g);

/* Which pushed values are taken. */
enum optimizer_input {
    OPTIMIZER_ANY,     /* all */
    OPTIMIZER_FINITE,  /* finite ones */
    OPTIMIZER_GRADIENT /* up to OPTIMIZER_GRADIENT_MAX, F32 only, and not in variable-length tables */
};

/* The options of a table that an optimizer reads, as bits. table_options_check knows the limits of each. */
enum optimizer_option {
    OPTIMIZER_ALPHA = 1,
    OPTIMIZER_BETA = 2,
    OPTIMIZER_L1 = 4,
    OPTIMIZER_L2 = 8,
    OPTIMIZER_MOMENTUM = 16,
    OPTIMIZER_BETA1 = 32,
    OPTIMIZER_BETA2 = 64,
    OPTIMIZER_EPSILON = 128
};

struct optimizer_kernel {
    optimizer_span_fn *span[CPU_LEVELS];
    optimizer_rows_fn *rows;
};

enum { OPTIMIZER_DTYPES = PARAMO_U8 + 1, OPTIMIZER_PLANES_MAX = 2 };

struct optimizer_def {
    enum optimizer_input input;
    unsigned options; /* enum optimizer_option */
    unsigned planes;  /* of dim values of state each: s0, s1 */
    bool squares;     /* the last plane is a sum of squares, never negative */
    bool counts;      /* a row has a count of its pushes, too; then no chunk is cut inside a row */
    /* By paramo_dtype. A type whose `rows` is NULL is refused. */
    struct optimizer_kernel kernel[OPTIMIZER_DTYPES];
    /* What optimizer_start does, where zeros are not the state of a fresh column; otherwise NULL. */
    void (*start)(const struct optimizer *o, float *w, float *s0, float *s1, size_t n);
};

#define OPTIMIZER_DECLARE(number, NAME, name) extern const struct optimizer_def optimizer_##name;
PARAMO_OPTIMIZERS(OPTIMIZER_DECLARE)
#undef OPTIMIZER_DECLARE

/* kind is one of the enum. */
const struct optimizer_def *optimizer_def(paramo_optimizer kind);

#endif
