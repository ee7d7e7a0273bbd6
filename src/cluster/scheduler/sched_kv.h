/*
 * Values: small strings of bytes by name, which nodes put, get, add to and delete.
 * Must never know: what they mean.
 * Tests: test/cluster/test_sched_calls.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_KV_H
#define CLUSTER_SCHEDULER_SCHED_KV_H

#include "base/map.h"
#include "cluster/scheduler/sched_calls.h"

struct sched_save_cursor;

enum { SCHED_KV_MAX = 65536, SCHED_KV_BYTES = 64 << 20 }; /* values, and their bytes */

struct sched_values {
    struct map by_hash; /* hash of the key -> kv_value, a list */
    size_t count, bytes;
    struct map waiting; /* hash of the key -> kv_waiting, a list: GETs of values that are not there yet */
};

void sched_kv_put(struct sched_call *call, struct reader *body);
void sched_kv_get(struct sched_call *call, struct reader *body);
void sched_kv_add(struct sched_call *call, struct reader *body);
void sched_kv_delete(struct sched_call *call, struct reader *body);
size_t sched_kv_count(const struct scheduler *s);
void sched_kv_fini(struct scheduler *s);

/* Durable records: writes one, writes the next of all (sched_save_ops.write_next), reads one back. */
void sched_kv_record(const struct scheduler *s, uint64_t key, struct writer *w);
bool sched_kv_next_records(const struct scheduler *s, struct sched_save_cursor *cursor, struct writer *w);
MUST_USE paramo_err sched_kv_restore(struct scheduler *s, struct reader *record);

#endif
