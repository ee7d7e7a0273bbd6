/*
 * A shard's part of a checkpoint, loaded: shard_load_hold, shard_load, shard_load_go. It clears the
 * checkpoint's tables, then takes the rows of the partitions that this shard owns or follows. Requests wait
 * until it ends. An error leaves these tables lost (DATA_LOST) until they are cleared or loaded.
 * shard_restore loads only rows that are lost and that the view says come back.
 *
 * It must never know which checkpoint is the right one: the scheduler names it. One load at a time, on the
 * shard's lane. Tests: test/server/test_loading.c, test/worker/test_restored.c, test/e2e/restore.sh.
 */
#ifndef SERVER_SNAPSHOT_LOADING_H
#define SERVER_SNAPSHOT_LOADING_H

#include "server/snapshot/saving.h"

/* Takes rows and records of checkpoint `number`, whose id it must have. file is NULL in done. One of this id
 * that goes on already ends with CANCELLED: the scheduler that wanted it is gone. After a hold requests wait
 * on until shard_load_go. TIMEOUT: there are copies, and this shard does not hold (any more): it has served
 * requests meanwhile, so what copies have may be of before their load, or of after it. */
MUST_USE paramo_err shard_load(struct shard *s, const struct shard_save_config *config);
/* Before a load where there are copies. From now on requests wait; done comes when whoever is behind in a
 * chain has all that was done here. So with all shards held nothing is on its way that some have and others
 * have not, and it stays so until all have loaded. It ends with shard_load_go; by itself after hold_ms, or
 * with a view of another scheduler, who knows nothing of it: what has been loaded by then is lost, for others
 * may not have. */
MUST_USE paramo_err shard_load_hold(struct shard *s, const struct shard_save_config *config);
/* Takes rows and records of checkpoint `number` for what of this shard's partitions is lost by the view and
 * is to be restored (struct view, lost), of nothing else; requests wait since that view, and go on with the
 * end of this. An error leaves it lost, and requests waiting: it is to be done again. What else goes on is
 * given up: AGAIN while that is not over. */
MUST_USE paramo_err shard_restore(struct shard *s, const struct shard_save_config *config);
/* Nothing if that is not held or loaded. What is not loaded whole by now is lost. TIMEOUT: the shard has let
 * that load go before, and its rows are lost: the load has failed. */
MUST_USE paramo_err shard_load_go(struct shard *s, uint64_t id);

struct loading;
/* HOLDING --> HELD --> LOADING --> LOADED; without a hold it is LOADING, and over with that. */
enum loading_phase { HOLDING, HELD, LOADING, LOADED };
/* For who looks on (the simulator): the phase, and which of the shard's loads it is. True: only what is lost
 * is restored. */
bool loading_state(const struct loading *ld, enum loading_phase *phase, uint64_t *number);

void loading_close(struct shard *s);
/* Something was acknowledged, or the view is another. */
void loading_check(struct shard *s);
/* Sets s->restoring: by the view, and by what of it has not been done yet. */
void loading_update(struct shard *s);

#endif
