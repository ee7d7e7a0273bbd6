/*
 * Functions that run on the servers, where the rows are: only their results travel. docs/FUNCTIONS.md says what
 * they see of a table that others change at the same time, what they cost, and what happens when servers die or
 * rows move. Tests: test/worker/test_reduction_request.c, test/worker/test_transform_run.c.
 */
#ifndef PARAMO_FUNCTIONS_H
#define PARAMO_FUNCTIONS_H

#include "function_types.h"
#include "paramo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A reduction: what is asked for, and its result. */
typedef struct paramo_reduction {
    size_t size;
    paramo_reduce_function function;
    /* Keys from begin on and below end; end 0: up to the last key of all. 0 and 0: the whole table. */
    uint64_t begin, end;
    /* DOT: the second table, of the same worker, with the same placement, dim and (dense) rows. */
    paramo_table *other;
    paramo_entry *entries; /* TOP: room for `most` of them */
    size_t most;           /* TOP: how many are wanted, 1 to PARAMO_REDUCE_ENTRIES_MAX */
    /* USER: the function's name, and what it is given (at most PARAMO_FUNCTION_PARAMS_MAX bytes); copied. */
    const char *name;
    const void *params;
    size_t params_bytes;
    void *state;        /* USER: room for the result, ... */
    size_t state_bytes; /* ... at least the function's state_bytes, which is what is written */
    /* The result: written before the request completes, and only if it succeeds. */
    uint64_t rows;   /* rows in the range; DOT: those that both tables have */
    uint64_t values; /* parameters of these rows */
    uint64_t nans;   /* of these, NaN */
    double value;    /* sum, norm1, norm2_squared, dot, min, max */
    /* MIN, MAX: the value with its key and column; of equal ones the lowest key, then column */
    paramo_entry at;
    size_t n; /* MIN, MAX, TOP: entries found; TOP: greatest magnitude first, of equal ones the lowest key */
} paramo_reduction;
PARAMO_API void paramo_reduction_init(paramo_reduction *reduction, paramo_reduce_function function);

/* Makes *function one that requests of this process can name, and that its servers run. It stays for the life
 * of the process. Each server and each worker of a job must register the same functions before paramo_start: by
 * a program of its own, or by a library that paramo_config.plugin or --plugin names. No code travels. Copies
 * *function; what its pointers lead to must stay, except name. Any thread.
 * INVALID: a name that is wrong or taken, functions that are missing, a state that is too large, or one
 * function more than 64. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_function_register(const paramo_function *function);

/* Computes over the parameters (not the optimizer's state) of all rows of a range, and returns the request's
 * timestamp in *ts (NULL is allowed with a callback). options may be NULL. *reduction and its entries belong to
 * the library until the request completes.
 * Numerics: values are converted to double (I64 beyond 2^53 is rounded); squares and products are rounded to
 * double each. Their sum is exact and rounded once. So the result has the same bits for every number of servers
 * and in every order. Sums are NaN if a value is NaN, or if both infinities occur; MIN, MAX and TOP leave NaN
 * out. A row that exists throughout is taken once, any other row at most once. A pushed change is seen if it
 * was acknowledged before this call. Costs: dense tables: the rows of the range; others: a look at each key.
 * Any thread. INVALID: no such function, or an argument that it does not take, or begin >= end. SIZE_MISMATCH:
 * the second table differs; the message says in what. UNSUPPORTED: a USER table; DOT of a VAR table; a server
 * of an older version; or a function that this process or a server does not have. Others as paramo_pull.
 * USER calls the application's function (function_types.h) with `other` or without. Its state has the same bits
 * in every order only if its arithmetic has (counts, integers, minima, sketches). */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_reduce(paramo_worker *worker, paramo_table *table,
                                                    paramo_reduction *reduction,
                                                    const paramo_request_options *options, uint64_t *ts);

/* A function that changes rows. */
typedef struct paramo_transformation {
    size_t size;
    paramo_transform_function function;
    uint64_t begin, end; /* as in paramo_reduction */
    double a;            /* FILL, SCALE, ADD, AXPY; finite; for tables of integers an integer */
    /* x: AXPY and COPY need it, USER may have it. Of the same worker, with the same placement, dim, dtype and
     * (dense) rows. */
    paramo_table *other;
    const char *name; /* USER: as in paramo_reduction */
    const void *params;
    size_t params_bytes;
    uint32_t timeout_ms; /* of each part; 0: the node's request_timeout_ms */
    /* n keys, ascending, no repeats: only their rows, instead of those of a range; NULL and 0: of the range. Read until
     * the call returns. */
    const uint64_t *keys;
    size_t n;
} paramo_transformation;
PARAMO_API void paramo_transformation_init(paramo_transformation *transformation,
                                           paramo_transform_function function);
/* Changes the parameters of all rows of a range or of a list of keys, where they are, and waits until all are changed.
 * FILL, SCALE and ADD change the rows that exist. AXPY and COPY change those of keys that x has, and create rows that
 * are missing. A changed row is then as after paramo_table_put without state: the optimizer begins from its parameters.
 * Floats are computed in double and rounded once; integers wrap around. The rows are changed in parts. Each part is
 * like a push: in one step of its server, replicated, exactly once even if messages and servers are lost; other
 * requests of any worker come between two parts. An error leaves some parts changed, each once or not at all: do not
 * call it again then unless that does no harm.
 * USER changes the rows that exist, or with `other` those of keys that x has.
 * NUMERIC: a result is not finite. HANDLER: the application's function has failed. The rows of that part are unchanged.
 * INVALID, KEYS_UNSORTED, KEYS_REPEATED, KEY_RANGE, SIZE_MISMATCH, UNSUPPORTED (also for VAR tables): nothing is
 * changed. Others as paramo_push and paramo_wait. Any thread, but no callback. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_transform(paramo_worker *worker, paramo_table *table,
                                                       const paramo_transformation *transformation);

#ifdef __cplusplus
}
#endif
#endif
