/*
 * Effect of a push on values: pure loops over parameters w, state s0 and s1, and pushed values g. There are
 * two shapes: a span (adjacent columns, as in a dense run) and rows (short rows scattered in memory, as in a
 * sparse table). Knows nothing of keys, tables or memory. Tests: test/table/test_optimizer.c, with a slow
 * reference of each kernel in test/table/support_reference.c.
 *
 * Each optimizer is one file of this folder, opt_<name>.c, which begins with its formula and ends with its
 * definition (optimizer_def.h). The list of all is PARAMO_OPTIMIZERS in paramo/types.h. docs/EXTENDING.md shows
 * how to add one.
 *
 * Kernels that gain from it exist once for each level of vector instructions (base/cpu.h); optimizer_setup
 * chooses. They use only +, -, *, /, sqrt and comparisons of IEEE floats, in a fixed order per column and
 * never across columns. So every compiler, vector width and slicing gives the same bits.
 *
 * Sums of squares saturate at the largest float, so they never become infinite.
 */
#ifndef TABLE_OPTIMIZER_OPTIMIZER_H
#define TABLE_OPTIMIZER_OPTIMIZER_H

#include "base/err.h"
#include "table/optimizer/optimizer_def.h"

/* Gradients of a greater magnitude are refused: their squares would leave the range of a float, and a model
 * that gets there has diverged. */
#define OPTIMIZER_GRADIENT_MAX 0x1p60F
/* Where a count of steps stays: the last integer that a float counts to. */
#define OPTIMIZER_STEPS_MAX 0x1p24F

/* An optimizer with the options of one table. */
struct optimizer {
    paramo_optimizer kind;
    paramo_dtype dtype;
    float alpha, beta, l1, l2;
    float momentum;
    float beta1, beta2, epsilon;
    optimizer_span_fn *span;
    optimizer_rows_fn *rows;
};

/* options: checked (table_options_check). */
void optimizer_setup(struct optimizer *o, const paramo_table_options *options);

/* NUMERIC, with the position, if a pushed value cannot be taken: enum optimizer_input has the rules. Integers
 * are always taken. */
MUST_USE paramo_err optimizer_check(const struct optimizer *o, const void *g, size_t n);
/* NUMERIC if values to be stored as state cannot be one (not finite; a sum of squares or a count negative).
 * s0 and s1 hold n each. */
MUST_USE paramo_err optimizer_check_state(const struct optimizer *o, const float *w, const float *s0,
                                          const float *s1, float t, size_t n);
/* Sets the state of fresh columns whose initial parameters are in w: zeros, or what the definition's start
 * makes of them. s0 == NULL: only w is wanted. */
void optimizer_start(const struct optimizer *o, void *w, float *s0, float *s1, size_t n);
/* The t of a push, from the t of the push before. */
static inline float optimizer_next_step(float t)
{
    return t < OPTIMIZER_STEPS_MAX ? t + 1.0F : OPTIMIZER_STEPS_MAX;
}

#endif
