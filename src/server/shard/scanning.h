/*
 * Pages of rows in ascending key order (SCAN), and counts of rows (STAT). Neither runs longer than one step
 * of the lane: a request that needs more is deferred (deferred.h), and continues where it was.
 *
 * A session is what is known of a scan between its batches: a page of its table's keys (table/table_page.h),
 * found when the first batch after the previous page asks for it. It is only a cache: each request says
 * where it continues, so a session that was dropped is made again.
 *
 * It must never know how a table finds its keys. Tests: test/server/test_shard.c.
 */
#ifndef SERVER_SHARD_SCANNING_H
#define SERVER_SHARD_SCANNING_H

#include "server/shard/shard_impl.h"

struct shard_scans {
    struct session *sessions;
    unsigned count;
};

static inline unsigned scanning_sessions(const struct shard *s)
{
    return s->scans->count;
}

MUST_USE paramo_err scanning_slice(struct peer *peer, struct shard_table *t, const struct wire_head *head,
                                   const struct van_seg *seg);
/* One step towards the next page of a deferred SCAN. True: the page is complete, or *err says why not. */
bool scanning_step(struct peer *peer, struct shard_table *t, const struct wire_head *head, uint64_t cursor,
                   paramo_err *err);
/* Sessions older than this, or all of a sender. */
void scanning_expire(struct shard *s, uint64_t now);
void scanning_forget(struct shard *s, const struct sender *sender);
/* Counts the rows that this shard owns, and their parameters that are not zero. False: the answer comes
 * later. */
bool counting_slice(struct peer *peer, struct shard_table *t, const struct wire_head *head,
                    struct table_count *count);
void counting_step(struct shard *s, struct shard_table *t, struct table_count *count);

#endif
