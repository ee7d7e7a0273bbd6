/*
 * TABLE_OPEN, and a table's options on the wire, as views carry them too. The bounds here are those of the message.
 * table/ has the meaning of each option, and the finer checks. It never knows rows. Tests: test/wire/test_calls.c.
 */
#ifndef WIRE_TABLE_SPEC_H
#define WIRE_TABLE_SPEC_H

#include <stdbool.h>

#include "base/cursor.h"
#include "paramo/types.h"

enum {
    TABLE_SPEC_NAME_MAX = 64 /* with its zero byte */,
    TABLE_SPEC_DIM_MAX = 1 << 26,
    TABLE_SPEC_REPLICAS_MAX = 3
};
#define TABLE_SPEC_ROWS_MAX (UINT64_C(1) << 32) /* DENSE */

struct table_open {
    char name[TABLE_SPEC_NAME_MAX];
    bool create; /* with options; otherwise the table must exist */
    paramo_table_options options;
};
struct table_open_result {
    uint32_t table;
    uint64_t view; /* number of a view that has it */
};

void table_spec_encode(const paramo_table_options *options, struct writer *w);
/* Sets options->size, too. */
MUST_USE paramo_err table_spec_decode(struct reader *r, paramo_table_options *options);
/* The form in files from before tables had their own number of replicas: it is set to the job's. */
MUST_USE paramo_err table_spec_decode_1(struct reader *r, paramo_table_options *options);
/* INVALID or TOO_LARGE, naming the field: unknown kinds, sizes beyond their limits, numbers that are not
 * finite. */
MUST_USE paramo_err table_spec_check(const paramo_table_options *options);
/* The options with placement AUTO resolved. */
paramo_table_options table_spec_resolved(const paramo_table_options *options);
/* TABLE_EXISTS, with the first field that differs and both its values. Both options are resolved. */
MUST_USE paramo_err table_spec_same(const char *name, const paramo_table_options *have,
                                    const paramo_table_options *want);

void table_open_encode(const struct table_open *m, struct writer *w);
MUST_USE paramo_err table_open_decode(struct reader *r, struct table_open *m);
void table_open_result_encode(const struct table_open_result *m, struct writer *w);
MUST_USE paramo_err table_open_result_decode(struct reader *r, struct table_open_result *m);

#endif
