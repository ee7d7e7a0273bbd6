/*
 * The target's side of a migration (migration.h): it takes rows and records, and joins the chain by a view.
 * It must never know how the source finds its rows. Tests: test/worker/test_migration_sim.c.
 */
#ifndef SERVER_MIGRATION_TARGET_H
#define SERVER_MIGRATION_TARGET_H

#include "server/migration/migration.h"

enum migration_target_state { MIGRATION_TARGET_FILLING, MIGRATION_TARGET_FULL, MIGRATION_TARGET_LAST };
/* As migration_source_state. */
enum migration_target_state migration_target_state(const struct migration_target *k, uint64_t *id);
bool migration_target_has(const struct chain *c, unsigned partition);
/* All of them; NULL: none. */
const uint64_t *migration_target_partitions(const struct chain *c);
/* The same, and no chain has had us for it. */
bool migration_target_is_new(const struct chain *c, unsigned partition);
/* Do this table's rows come, in the move that there is? */
bool migration_target_gets_table(const struct chain *c, const struct shard_table *t);
bool migration_target_is_source(const struct chain_source *source);
/* A sender has said goodbye to the owner. */
void migration_target_forget_sender(struct chain *c, const struct chain_message *m);
void migration_target_source_closed(struct chain *c, const struct chain_source *source);
/* More than a frame of requests may have. */
size_t migration_target_frame_bytes(const struct shard *s);
MUST_USE paramo_err migration_target_frame(struct chain_source *source, const struct wire_head *head,
                                           const struct van_seg *seg, unsigned nseg);
MUST_USE paramo_err migration_target_begin(struct chain *c, const struct migration_order *m,
                                           shard_migration_done done, void *arg);
/* All has come, and been acknowledged: the owner may have paused, and the scheduler may commit. */
bool migration_target_complete(const struct chain *c);
/* There is a new view. */
void migration_target_view_changed(struct chain *c);
/* By the view: a chain has us now, or never will (nor if it is over). Else it goes on. */
void migration_target_end(struct chain *c, bool over);
void migration_target_close(struct chain *c);
/* END of this move. */
void migration_target_end_ordered(struct chain *c, const struct migration_order *m);

#endif
