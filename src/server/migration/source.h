/*
 * The owner's side of a migration (migration.h): it sends rows, pauses requests, reports PAUSED. It must
 * never know what the target does with them. Tests: test/worker/test_migration_sim.c.
 */
#ifndef SERVER_MIGRATION_SOURCE_H
#define SERVER_MIGRATION_SOURCE_H

#include "server/migration/migration.h"

enum migration_source_state {
    MIGRATION_SOURCE_COPYING,
    MIGRATION_SOURCE_FULL,
    MIGRATION_SOURCE_PAUSING,
    MIGRATION_SOURCE_PAUSED
};
/* For who looks on (the simulator), with the move's id. */
enum migration_source_state migration_source_state(const struct migration_source *g, uint64_t *id);
/* The target's node. */
uint32_t migration_source_target_node(const struct migration_source *g);
/* Does the target get this table's rows? */
bool migration_source_sends_table(const struct migration_source *g, const struct shard_table *t);
/* True: a change sent to it is answered only when it is acknowledged. */
bool migration_source_needs_ack(const struct migration_source *g);
void migration_source_rows_acked(struct migration_source *g, size_t bytes);
/* Has a pause come to its end? */
void migration_source_check_pause(struct chain *c);
/* Streams are others now: what a pause waits for is in these. */
void migration_source_mark_streams(struct chain *c);
/* Must this request wait, and what its peer sends behind it? */
bool migration_source_defers(struct shard *s, const struct wire_head *head, const struct van_seg *seg);
MUST_USE paramo_err migration_source_begin(struct chain *c, const struct migration_order *m);
/* done comes once if this is OK. */
MUST_USE paramo_err migration_source_pause(struct chain *c, const struct migration_order *m,
                                           shard_migration_done done, void *arg);
/* It is over, whoever has the partitions now. chain_reopen must follow: requests may have waited. NULL give:
 * nothing. */
void migration_source_end(struct chain *c);
/* The view may say how it ended. */
void migration_source_view_changed(struct chain *c);
void migration_source_close(struct chain *c);

#endif
