/*
 * The optimizers once more, slowly: one column after the other, written with branches as the papers'
 * pseudocode has it, to be checked by eye against the formulas at the top of src/table/optimizer/opt_*.c. The
 * kernels must give the same bits. Also a random generator and helpers that the tests of this folder share.
 */
#ifndef TEST_TABLE_SUPPORT_REFERENCE_H
#define TEST_TABLE_SUPPORT_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paramo/types.h"
#include "table/table.h"
#include "table/table_page.h"
#include "table/tablemem.h"

/* One push of g[0 .. dim) to one F32 row, laid out w, s0, s1, t as table_get_rows gives it with state. */
void reference_push(const paramo_table_options *o, float *row, const float *g);
/* The row as it starts when its parameters are in row[0 .. dim). */
void reference_start(const paramo_table_options *o, float *row);

/* xorshift64*; state not 0. */
uint64_t draw(uint64_t *state);
/* Uniform in [-1, 1). */
float draw_float(uint64_t *state);

/* Parameters that are not zero. */
uint64_t count_nonzero(const struct table *t);

/* An allocator that counts, and fails at the allocation number fail_at (1 is the next), if not 0. */
struct failing_alloc {
    struct table_alloc alloc;
    size_t fail_at;
    size_t calls, live_bytes, live_blocks;
};
void failing_alloc_init(struct failing_alloc *f);

#endif
