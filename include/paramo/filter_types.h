/*
 * The parts of a filter of the application's own. paramo_filter_register (filter.h) makes it a filter that chains can
 * name. docs/FILTERS.md, section 6, has the rules, and examples/c/filter.c a complete one.
 */
#ifndef PARAMO_FILTER_TYPES_H
#define PARAMO_FILTER_TYPES_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of values that a filter rounds. The arrays are the library's, and valid during the call. */
typedef struct paramo_filter_rows {
    size_t size;          /* sizeof */
    paramo_dtype dtype;   /* PARAMO_F32 or PARAMO_F64 */
    void *vals;           /* the values of all keys, one row after the other: to be changed in place */
    size_t n;             /* values in vals */
    const void *whole;    /* the values of the whole chunk, of which vals may be a part; do not change them */
    size_t whole_n;       /* values in whole */
    const uint64_t *keys; /* of the rows */
    size_t count;         /* rows */
    const uint32_t *lens; /* values of each row; NULL: row_values each */
    size_t row_values;
    size_t column; /* the place of each row's first value in its row of the table */
    uint64_t seed; /* the same for each transmission of this request, another for each request */
} paramo_filter_rows;

/* The values of one message, on their way. */
typedef struct paramo_filter_data {
    size_t size;        /* sizeof */
    int typed;          /* 1: values of dtype; 0: bytes that another filter made of them */
    paramo_dtype dtype; /* of the table */
    const void *from;
    size_t bytes; /* at from: at least 1, at most 1 MiB */
} paramo_filter_data;

/* One filter. It has round, or encode and decode, or all three. The functions are called on the library's own threads,
 * several at once, and must not block, wait, or call functions of this library. */
typedef struct paramo_filter {
    size_t size; /* sizeof */
    /* a-z, 0-9 and _, at most 31; both ends of a connection know the filter by it. Copied */
    const char *name;
    const char *help; /* one sentence, or NULL. Copied by reference: it must stay */
    /* The argument after the colon. meta NULL: there is none. Otherwise its word in messages (it must stay), and its
     * bounds; whole: it is a whole number; preset: if there is no colon, NaN: it must be given. */
    const char *meta;
    int whole;
    float min, max, preset;
    void *user; /* for the functions */
    /* Rounds values in place. The result must depend on the arguments only, and for a row only on that row, on `whole`
     * and on `seed`. Returns 1: they have changed, 0: they have not. NULL: the filter loses nothing. */
    int (*round)(void *user, float arg, paramo_filter_rows *rows);
    /* Writes at most room bytes to `to`, which hold all of data->from. Returns how many; 0: it does not pay. The
     * library decodes them before they travel; if they do not give the same bytes back, the message travels without
     * the filter. */
    size_t (*encode)(void *user, float arg, const paramo_filter_data *data, void *to, size_t room);
    /* Writes exactly `want` bytes to `to`. `from` may be any bytes. Returns 0; otherwise `from` is not valid, and the
     * connection is closed. */
    int (*decode)(void *user, float arg, const void *from, size_t bytes, void *to, size_t want);
} paramo_filter;

#ifdef __cplusplus
}
#endif
#endif
