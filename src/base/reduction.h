/*
 * A reduction: the function, the range of keys, and the result so far. A result grows by values and merges with other
 * results. A merge has the same bits in every order, so it does not matter which shard has which rows (USER: if its
 * function ensures that). It never knows tables or messages. Tests: test/base/test_reduction.c.
 */
#ifndef BASE_REDUCTION_H
#define BASE_REDUCTION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/exactsum.h"
#include "base/user_function.h"
#include "paramo/types.h"

enum { REDUCTION_ENTRIES_MAX = PARAMO_REDUCE_ENTRIES_MAX };

struct reduction {
    uint8_t function;      /* a paramo_reduce_function */
    bool two;              /* of two tables */
    uint32_t other;        /* the second one's id */
    uint64_t begin, last;  /* keys, both included */
    uint32_t most;         /* entries wanted */
    struct user_call user; /* USER */
};

struct reduced {
    const struct reduction *of;
    uint64_t rows, values, nans;
    struct exactsum sum;
    /* MIN, MAX, TOP: the best, in a heap whose root is the worst, until reduced_sort puts the best first */
    paramo_entry *entries;
    size_t n;
    const paramo_function *user; /* USER: the function, ... */
    void *own, *params;          /* ... its state, and its parameters */
};

/* INVALID: no such function, the wrong number of entries or of tables, or no name (USER). */
MUST_USE paramo_err reduction_check(const struct reduction *what);
static inline bool reduction_sums(unsigned function)
{
    return function == PARAMO_REDUCE_SUM || function == PARAMO_REDUCE_NORM1 ||
           function == PARAMO_REDUCE_NORM2_SQUARED || function == PARAMO_REDUCE_DOT;
}
static inline bool reduction_has(const struct reduction *what, uint64_t key)
{
    return key >= what->begin && key <= what->last;
}

/* Begins an empty result. `what` must stay valid. UNSUPPORTED: this process does not have the function of USER. */
MUST_USE paramo_err reduced_init(struct reduced *found, const struct reduction *what);
void reduced_fini(struct reduced *found);
/* Empties the result. */
void reduced_reset(struct reduced *found);
/* The memory that a result takes, without the parameters of USER. */
size_t reduced_bytes(const struct reduction *what);

/* The bytes of its state (USER); otherwise 0. */
size_t reduced_state_bytes(const struct reduced *found);

/* n values of a row from a column on; other: those of the second table, of type other_dtype. */
void reduced_add(struct reduced *found, uint64_t key, uint32_t column, paramo_dtype dtype, const void *values,
                 paramo_dtype other_dtype, const void *other, size_t n);
/* The best entries first. Nothing is added afterwards. */
void reduced_sort(struct reduced *found);
/* Does a come before b in the function's order? Equal ones go by key, then by column. */
bool reduced_before(unsigned function, const paramo_entry *a, const paramo_entry *b);
/* Adds another result of the same reduction. Both are sorted before, and `found` is sorted afterwards. `other`
 * changes. MEMORY: found is as before. PROTOCOL: the function of USER says that the other one is not valid. */
MUST_USE paramo_err reduced_merge(struct reduced *found, struct reduced *other);
/* The result of a function that sums; otherwise the first entry's value, or 0. */
double reduced_value(struct reduced *found);

#endif
