/*
 * The parts of a function of the application's own that runs where the rows are. paramo_function_register
 * (functions.h) makes it one that paramo_reduce and paramo_transform can name. docs/FUNCTIONS.md, section 3, has the
 * rules, and examples/c/own_functions.h two complete ones. Tests: test/worker/test_user_functions.c.
 */
#ifndef PARAMO_FUNCTION_TYPES_H
#define PARAMO_FUNCTION_TYPES_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a call may bring, and the state of a reduction, at most. */
#define PARAMO_FUNCTION_PARAMS_MAX 4096
#define PARAMO_FUNCTION_STATE_MAX  65536

/* Rows that a function gets. The arrays are the library's, and valid during the call. */
typedef struct paramo_function_rows {
    size_t size;        /* sizeof */
    const void *params; /* as the caller of paramo_reduce or paramo_transform gave them; aligned to 8 */
    size_t params_bytes;
    const uint64_t *keys; /* of the rows */
    size_t n;             /* rows, at least 1 */
    uint32_t column;      /* of each row, the first value that is here: 0, but add gets a long row in parts */
    uint32_t columns;     /* values of each row that are here */
    paramo_dtype dtype;
    void *vals;        /* n * columns values, one row after the other. A reduction must not change them */
    const void *other; /* the same of the second table, NULL: there is none */
    paramo_dtype other_dtype;
} paramo_function_rows;

/* One function. It has change, or add and merge, or all three. They are called on the library's own threads,
 * several at once, and must not block, wait, or call functions of this library. A call should take less than a
 * millisecond for each 100,000 values: its server handles no other request until it returns. */
typedef struct paramo_function {
    size_t size;      /* sizeof */
    const char *name; /* a-z, 0-9, _, - and ., at most 31; copied */
    void *user;       /* for the functions */
    /* paramo_transform: changes the values of whole rows in place. It must change nothing else and depend on
     * nothing else, because it may be called again when a server dies. Returns 0; otherwise the rows stay as
     * they were and the request ends with HANDLER, whose message has the number. */
    int (*change)(void *user, paramo_function_rows *rows);
    /* paramo_reduce: the size of the result so far: bytes without pointers, at most PARAMO_FUNCTION_STATE_MAX. They
     * begin as zeros, aligned to 16. */
    size_t state_bytes;
    void (*add)(void *user, const paramo_function_rows *rows, void *state);
    /* Adds the result of another shard. Calls of add and merge come in any order. `from` may be any bytes. Returns 0;
     * otherwise `from` is not valid, and the request ends with PROTOCOL. */
    int (*merge)(void *user, const void *params, size_t params_bytes, void *state, const void *from);
} paramo_function;

#ifdef __cplusplus
}
#endif
#endif
