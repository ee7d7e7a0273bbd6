/*
 * The sums of the pushes of one clock to a row of an aggregated table (paramo_table_options.aggregate). They are in
 * the row, after the optimizer's state, so they are replicated, migrated and saved with the row:
 *
 *     parameters | s0 | s1 | t | clock, workers | sum of column 0 | sum of column 1 ...   16 bytes each, from clock on
 *
 * The optimizer is applied once to the sums: in the row when a push of a later clock comes, and in a copy of the row
 * when it is read. So no message has to ask for it, and a row cannot get it twice. A sum is an exact number of units
 * of 2^-64 (two's complement, 128 bits), so it does not depend on the order in which the pushes come: sums in the
 * order of ranks have the same bits. It never knows keys, tables or senders. Tests: test/table/test_aggregate_rows.c.
 */
#ifndef TABLE_AGGREGATE_H
#define TABLE_AGGREGATE_H

#include "base/err.h"
#include "table/rowspec.h"

/* The greatest magnitude of a pushed value. 2^23 of them have a sum that fits. */
#define AGGREGATE_VALUE_MAX 0x1p40

/* The sum of one column: hi + lo / 2^64, two's complement. */
struct aggregate_sum {
    uint64_t lo, hi;
};

/* The clock of the pushes that follow, and the number of workers that their mean is over; for pulls only the clock. */
struct aggregate_now {
    uint64_t clock;
    uint32_t workers;
};

/* NUMERIC: a value is not finite, or greater than AGGREGATE_VALUE_MAX. */
MUST_USE paramo_err aggregate_check(const struct rowspec *spec, const void *vals, size_t n);
/* Sets the row's sums to 0: nothing has been pushed. */
void aggregate_start(const struct rowspec *spec, void *row);
/* Does the row hold a push of a later clock? Then the optimizer has been applied to the pushes of `clock`. */
bool aggregate_is_later(const struct rowspec *spec, const void *row, uint64_t clock);
/* Adds dim checked values to dim sums. */
void aggregate_collect(const struct rowspec *spec, struct aggregate_sum *sums, const void *vals);
/* Adds dim sums of pushes, as if these pushes came one by one. The row holds no push of a later clock. */
void aggregate_add_sums(const struct rowspec *spec, void *row, const struct aggregate_now *now,
                        const struct aggregate_sum *sums);
/* Adds dim checked values. The row holds no push of a later clock. */
void aggregate_add(const struct rowspec *spec, void *row, const struct aggregate_now *now, const void *vals);
/* Applies the optimizer to the pushed sum, if there is one. */
void aggregate_apply_sum(const struct rowspec *spec, void *row);
/* Reads columns of the parameters as they are with the optimizer applied to all pushes up to this clock. */
void aggregate_read(const struct rowspec *spec, const void *row, uint64_t clock, uint32_t col, uint32_t ncols,
                    void *out);
/* Writes the parameters and the optimizer's state that aggregate_apply_sum would leave; the row does not change. out:
 * of any alignment. */
void aggregate_copy(const struct rowspec *spec, const void *row, void *out);
/* How many parameters are not zero once the optimizer is applied to all pushes. */
uint64_t aggregate_count_nonzero(const struct rowspec *spec, const void *row);

#endif
