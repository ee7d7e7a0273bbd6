/*
 * ORDER_REPORT: a server says what each of its shards holds. The order has no fields; its result is a report of each
 * shard, by index. The scheduler passes it on in status.h. It never knows shards. Tests: test/wire/test_status.c.
 */
#ifndef WIRE_REPORT_H
#define WIRE_REPORT_H

#include "base/cursor.h"
#include "base/spread.h"

struct shard_report {
    uint64_t rows, table_bytes;
    /* The records of applied requests (the paper's vector clocks): senders, each with one window; notes, of numbers
     * that are applied on some partitions only; the bytes of all */
    uint64_t senders, applied_window_notes, applied_window_bytes;
    uint64_t requests, repeats; /* slices of requests; those of numbers that were applied already */
    struct spread pauses;       /* microseconds for which migrated partitions were paused */
};

/* One after the other; the reader checks for the end. */
void shard_report_encode(const struct shard_report *m, struct writer *w);
/* Sets r->failed if the report is not valid. */
void shard_report_decode(struct reader *r, struct shard_report *m);
void spread_encode(const struct spread *m, struct writer *w);
void spread_decode(struct reader *r, struct spread *m);

#endif
