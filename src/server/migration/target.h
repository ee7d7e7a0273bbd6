/*
 * The target's side of a migration (migration.h): it takes rows and records, and joins the chain by a view.
 * It must never know how the source finds its rows. Tests: test/worker/test_migration_sim.c.
 */
#ifndef SERVER_MIGRATION_TARGET_H
#define SERVER_MIGRATION_TARGET_H

#include "server/migration/migration_bounds.h"
#include "server/replication/chain_impl.h"
#include "wire/migration_order.h"

enum migration_target_state { MIGRATION_TARGET_FILLING, MIGRATION_TARGET_FULL, MIGRATION_TARGET_LAST };
/* As migration_source_state. */
enum migration_target_state migration_target_state(const struct migration_target *k, uint64_t *id);
bool migration_target_has(const struct chain *c, unsigned partition);
/* All partitions that migrate here; NULL: none do. */
const uint64_t *migration_target_partitions(const struct chain *c);
/* As migration_target_has, and no chain has had us for the partition. */
bool migration_target_is_new(const struct chain *c, unsigned partition);
/* Does the present migration bring this table's rows? */
bool migration_target_gets_table(const struct chain *c, const struct shard_table *t);
bool migration_target_is_source(const struct chain_source *source);
/* A sender has closed at the owner. */
void migration_target_forget_sender(struct chain *c, const struct chain_message *m);
void migration_target_source_closed(struct chain *c, const struct chain_source *source);
/* The frame limit of a migration: larger than that of requests. */
size_t migration_target_frame_bytes(const struct shard *s);
MUST_USE paramo_err migration_target_frame(struct chain_source *source, const struct wire_head *head,
                                           const struct van_seg *seg, unsigned nseg);
MUST_USE paramo_err migration_target_begin(struct chain *c, const struct migration_order *m,
                                           shard_migration_done done, void *arg);
/* Everything has arrived and is acknowledged: the source may have reported PAUSED, and the scheduler may
 * commit. */
bool migration_target_complete(const struct chain *c);
/* A new view was adopted. */
void migration_target_view_changed(struct chain *c);
/* Ends the migration if the view has us in the chain, if no view will, or if `over`. Otherwise it continues. */
void migration_target_end(struct chain *c, bool over);
void migration_target_close(struct chain *c);
/* END of this migration. */
void migration_target_end_ordered(struct chain *c, const struct migration_order *m);

#endif
