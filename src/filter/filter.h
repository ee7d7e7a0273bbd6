/*
 * The table of filters of this build (registry.h has all). A filter changes what travels between a worker and a
 * shard, so that fewer bytes do (Li et al., OSDI'14, section 3.5.3 and 5.1). It has up to three parts, and each is an
 * operation of its struct filter_ops:
 *
 *     select   at the worker, once for each push: which rows travel, and which are held back
 *     round    for each frame that leaves with values, before encode: values that take fewer bytes; they
 *              depend on the push or the answer only, not on the transmission
 *     encode   for each frame that leaves over a connection; decode undoes it at the other end
 *
 * Only select and round lose anything. encode is exact: it checks that it can be undone, and otherwise the
 * frame travels without it. So a frame that is sent again has the same values over each connection, and a
 * peer without the filter gets these values as they are.
 *
 * A chain (filter_chain.h) is a list of filters for one table and direction. Each message names the filters that
 * were used (envelope.h). This module never knows requests, links, shards or rows. Each filter_<name>.c defines
 * one filter. docs/FILTERS.md has the rules. Tests: test/filter/.
 */
#ifndef FILTER_FILTER_H
#define FILTER_FILTER_H

#include <stdbool.h>

#include "base/cursor.h"
#include "paramo/types.h"

enum filter_direction { FILTER_PUSH, FILTER_PULL, FILTER_DIRECTIONS };

/* The order of filters in a chain. FILTER_KEYS may be anywhere before FILTER_COMPRESSES, because it leaves values
 * alone. */
enum filter_rank { FILTER_SELECTS, FILTER_ROUNDS, FILTER_KEYS, FILTER_BYTES, FILTER_COMPRESSES };

/* Messages that encode and decode work on, as bits. */
enum filter_use {
    FILTER_OF_PUSH = 1,  /* PUSH and PUSHPULL, by the chain for pushes */
    FILTER_OF_ASK = 2,   /* PULL, by the chain for pulls */
    FILTER_OF_ANSWER = 4 /* to PULL and PUSHPULL, by the chain for pulls */
};

enum {
    /* Bytes of a message that is filtered, before and after; a usual chunk is half as long. A larger message would
     * take longer than a step of a lane may. */
    FILTER_MESSAGE_MAX = 1 << 20,
    FILTER_ID_MAX = 63,  /* ids are below this */
    FILTER_ID_USER = 62, /* of all filters of the application: users.h */
    FILTER_USERS_MAX = 8
};

/* What a filter needs to know of a table. */
struct filter_table {
    uint32_t id;
    paramo_table_kind kind;
    paramo_dtype dtype;
    paramo_optimizer optimizer;
    bool aggregates;                  /* the pushes of a clock (paramo_table_options.aggregate) */
    uint32_t value_bytes, row_values; /* row_values 0: rows have their own lengths */
    uint64_t seed;
};

/* A filter with its argument, as a chain has it. */
struct filter_setting {
    const struct filter_ops *ops;
    float arg;
};

struct filter_rows;
struct filter_message;

struct filter_ops {
    const char *name;
    uint8_t id;    /* on the wire; it never changes */
    uint64_t hash; /* FILTER_ID_USER: of its name; otherwise 0 */
    enum filter_rank rank;
    uint8_t directions;  /* bits 1 << FILTER_PUSH, 1 << FILTER_PULL: where it may be used */
    uint8_t codes;       /* enum filter_use: where encode is used */
    uint64_t capability; /* both ends need it for encode; 0: it has no encode */
    bool lossy;          /* the model may differ from that without it */
    bool whole;          /* its argument is a whole number */
    const char *meta;    /* the argument's word in messages; NULL: it has no argument */
    float min, max, preset;
    const char *help; /* one sentence, without a full stop */
    /* Why it cannot be used on this table; NULL: it can. */
    const char *(*unfit)(const struct filter_table *table, enum filter_direction direction);
    /* Sets waits[i] of each row that is to be held back, and leaves the others as they are (selecting.h). */
    void (*select)(const struct filter_setting *setting, const struct filter_rows *rows, uint8_t *waits);
    /* Rounds the values in place. The result depends on rows only (rounding.h): the same for each transmission. False:
     * nothing has changed. */
    bool (*round)(const struct filter_setting *setting, struct filter_rows *rows);
    /* True: the message has changed, and params has what decode needs. False: it has not, because that would
     * not pay or cannot be undone exactly. */
    bool (*encode)(const struct filter_setting *setting, struct filter_message *m, struct writer *params);
    /* PROTOCOL: the bytes are wrong. NOT_FOUND: this end lacks what they refer to. MEMORY. */
    paramo_err (*decode)(struct reader *params, struct filter_message *m);
};

/* The filters of this build, by name: filter_<name>, in the order of documents and counters. */
#define FILTERS(X)                                                                                           \
    X(topk)                                                                                                  \
    X(threshold)                                                                                             \
    X(skip)                                                                                                  \
    X(significant)                                                                                           \
    X(keycache)                                                                                              \
    X(fixed)                                                                                                 \
    X(bf16)                                                                                                  \
    X(fp16)                                                                                                  \
    X(lz4)                                                                                                   \
    X(zstd)

#define FILTER_DECLARE(name) extern const struct filter_ops filter_##name;
FILTERS(FILTER_DECLARE)
#undef FILTER_DECLARE

enum filter_index {
#define FILTER_INDEX(name) FILTER_INDEX_##name,
    FILTERS(FILTER_INDEX)
#undef FILTER_INDEX
        FILTER_COUNT,
    FILTER_SLOTS = FILTER_COUNT + FILTER_USERS_MAX
};

/* By index, from 0 to FILTER_COUNT - 1. */
const struct filter_ops *filter_at(unsigned index);
bool filter_takes(const struct filter_ops *ops, float arg);
/* For `unfit` of a filter that needs values of type F32 or F64. */
const char *filter_unfit_float(const struct filter_table *table, enum filter_direction direction);

#endif
