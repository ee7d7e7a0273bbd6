/*
 * Filters make the messages between a worker and the servers smaller. A chain of filters is set for a table and a
 * direction, "keycache,fixed:2,lz4". docs/FILTERS.md has each filter, what it saves, what it does to a model, and
 * which orders are refused. Tests: test/worker/test_filtering.c, test/node/test_flush.c.
 */
#ifndef PARAMO_FILTER_H
#define PARAMO_FILTER_H

#include "filter_types.h"
#include "paramo.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum paramo_filter_direction {
    PARAMO_FILTER_PUSH = 0, /* what a worker pushes: keys and values */
    PARAMO_FILTER_PULL = 1  /* what it pulls: the keys of requests, the values of answers */
} paramo_filter_direction;

/* Sets the chain of a table for requests of its worker from now on, instead of that of paramo_config.filter.
 * Other workers of the table have chains of their own. "" or "none": no filters. Any thread; not in a callback.
 * INVALID: there is no such filter, its argument is wrong, or the order is refused. UNSUPPORTED: a filter cannot
 * be used on this table. In each case the message says why, and the chain is as before. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_table_filter(paramo_table *table,
                                                          paramo_filter_direction direction,
                                                          const char *chain);

/* Makes *filter one that chains of this process can name. It stays for the life of the process. Nodes that are
 * started later offer it to their peers; a connection uses it if both ends have registered a filter of that
 * name, which must be the same code. So every process of a job calls this before paramo_start: servers, too. In
 * a chain a filter with `round` stands where fixed:N may stand, and another after it and before a compressor.
 * Copies *filter; what its pointers lead to must stay, except name. Any thread.
 * INVALID: a name that is wrong or taken, functions that are missing, bounds that contradict each other, or the
 * ninth filter of the process. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_filter_register(const paramo_filter *filter);

/* Sends the rows of this worker's pushes to the table that filters (topk, threshold, skip, significant) hold back,
 * and returns the request's timestamp in *ts (NULL is allowed with a callback). The request completes when all rows
 * that were held back or in flight are acknowledged. Rows of pushes that follow may be held back again. options may
 * be NULL. paramo_worker_close does the same, for at most ten seconds. If nothing is held back, it completes at once.
 * Any thread. If it fails (TIMEOUT, DATA_LOST, MEMORY and others, as paramo_push), rows that were sent are delivered
 * later, and the others stay held back. NODE_LOST: the worker has dropped rows, because no server took them while it
 * sent 1,024 more requests (docs/FILTERS.md). */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_filter_flush(paramo_worker *worker, paramo_table *table,
                                                          const paramo_request_options *options,
                                                          uint64_t *ts);

/* What one filter has done in one direction. */
typedef struct paramo_filter_counter {
    const char *name; /* static */
    paramo_filter_direction direction;
    int lossy;                          /* 1: a model may differ from that without it */
    uint64_t messages;                  /* that it changed */
    uint64_t skipped;                   /* that it left as they were, because it would not pay */
    uint64_t received;                  /* messages from servers that it changed back */
    uint64_t bytes_before, bytes_after; /* of the changed ones, both ways, without headers */
    uint64_t time_ns;                   /* spent on all of them */
} paramo_filter_counter;
/* Writes what the filters of this worker have done, at most cap of them; filters that have done nothing are left
 * out. Returns how many there are. Not in a callback, where it returns 0. */
PARAMO_API size_t paramo_filter_counters(paramo_worker *worker, paramo_filter_counter *counters, size_t cap);

#ifdef __cplusplus
}
#endif
#endif
