/*
 * The owner's side of a migration (migration.h): it sends rows, pauses requests, reports PAUSED. It must
 * never know what the target does with them. Tests: test/worker/test_migration_sim.c.
 */
#ifndef SERVER_MIGRATION_SOURCE_H
#define SERVER_MIGRATION_SOURCE_H

#include "server/migration/migration_bounds.h"
#include "server/replication/chain_impl.h"
#include "wire/migration_order.h"

enum migration_source_state {
    MIGRATION_SOURCE_COPYING,
    MIGRATION_SOURCE_FULL,
    MIGRATION_SOURCE_PAUSING,
    MIGRATION_SOURCE_PAUSED
};
/* For the simulator: the state, and the migration's id. */
enum migration_source_state migration_source_state(const struct migration_source *g, uint64_t *id);
/* What migrates where; takes_over since the pause. */
const struct migration_order *migration_source_order(const struct migration_source *g);
/* Does the target get this table's rows? */
bool migration_source_sends_table(const struct migration_source *g, const struct shard_table *t);
/* True: an answer waits until the target has acknowledged the change. */
bool migration_source_needs_ack(const struct migration_source *g);
void migration_source_rows_acked(struct migration_source *g, size_t bytes);
/* Reports PAUSED if all members and the target are equal. */
void migration_source_check_pause(struct chain *c);
/* The streams have changed: marks in each the entry that a pause waits for. */
void migration_source_mark_streams(struct chain *c);
/* Records no longer pass from one owner to another: those that a pause sends may leave. */
void migration_source_records_over(struct chain *c);
/* The sender is about to be freed. */
void migration_source_sender_gone(struct chain *c, const struct sender *sender);
/* What all turns with records have cost; for tests. */
uint64_t migration_source_records_spent(const struct migration_source *g);
/* Must this request wait, with everything that its peer sends after it? */
bool migration_source_defers(struct shard *s, const struct wire_head *head, const struct van_seg *seg);
MUST_USE paramo_err migration_source_begin(struct chain *c, const struct migration_order *m);
/* done is called once if this returns OK. */
MUST_USE paramo_err migration_source_pause(struct chain *c, const struct migration_order *m,
                                           shard_migration_done done, void *arg);
/* Ends the migration, if there is one, committed or not. The caller then calls chain_reopen: requests may
 * have waited. */
void migration_source_end(struct chain *c);
/* The view may say how it ended. */
void migration_source_view_changed(struct chain *c);
void migration_source_close(struct chain *c);

#endif
