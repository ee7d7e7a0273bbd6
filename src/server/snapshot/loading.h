/*
 * A shard's part of a checkpoint, loaded: shard_load_hold, shard_load, shard_load_go. It clears the
 * checkpoint's tables, then takes the rows of the partitions that this shard owns or follows. Requests wait
 * until it ends. An error leaves these tables lost (DATA_LOST) until they are cleared or loaded. shard_restore
 * loads only lost rows that return from a checkpoint according to the view.
 *
 * It must never know which checkpoint is the right one: the scheduler names it. One load at a time, on the
 * shard's lane. Tests: test/server/test_loading.c, test/worker/test_restored.c, test/e2e/restore.sh.
 */
#ifndef SERVER_SNAPSHOT_LOADING_H
#define SERVER_SNAPSHOT_LOADING_H

#include "server/snapshot/load_state.h"
#include "server/snapshot/saving.h"

/* A new view is being adopted. If it says that rows are lost, nothing is answered until loading_update has looked. */
void loading_expect(struct shard *s);

/* Loads rows and records of checkpoint `number`, which must have config.id. done gets no file. A load of this
 * id that is in progress ends with CANCELLED: the scheduler that ordered it is gone. After a hold, requests
 * wait until shard_load_go. TIMEOUT: there are copies, and this shard's hold has ended. It has served
 * requests since, so copies may be from before their load or after it. */
MUST_USE paramo_err shard_load(struct shard *s, const struct shard_save_config *config);
/* Comes before a load where there are copies. Requests wait from now on. done is called when no records of senders
 * pass any more, all later members of chains have every change of this shard, and no dead owner may still read what is
 * this shard's now. So when all
 * shards hold, all copies are equal, and stay equal until all have loaded, and no other shard reads. shard_load_go
 * ends the hold. It also ends after hold_ms, or with a view of another scheduler, which does not know the load.
 * Tables that are loaded by then are lost, because other shards may not have loaded them. */
MUST_USE paramo_err shard_load_hold(struct shard *s, const struct shard_save_config *config);
/* Loads rows and records of checkpoint `number` for those partitions of this shard that the view says are lost and
 * will be restored (struct view, lost). Requests wait since that view, and resume when this ends. After an error the
 * rows stay lost and requests still wait: the scheduler orders it again. A saving or load in progress is aborted;
 * AGAIN until that is over. */
MUST_USE paramo_err shard_restore(struct shard *s, const struct shard_save_config *config);
/* Ends the hold or load of this id; does nothing if there is none. Tables that are not completely loaded are
 * lost. TIMEOUT: the shard aborted that load before, and its rows are lost: the load has failed. order: the
 * number of this order. From now on a HOLD or LOAD with a lower one ends with CANCELLED. */
MUST_USE paramo_err shard_load_go(struct shard *s, uint64_t id, uint64_t order);

/* The load of this id has failed, here or at another shard: ends the hold or load. Its tables are lost here,
 * also if this shard has loaded all of its rows, because other shards have not. Rows that were not touched yet
 * stay. order: as in shard_load_go. */
void shard_load_drop(struct shard *s, uint64_t id, uint64_t order);

/* HOLDING --> HELD --> LOADING --> LOADED. A load without a hold has only LOADING. */
enum loading_phase { HOLDING, HELD, LOADING, LOADED };
/* For the simulator: the phase, and which of the shard's loads this is. True: it restores only lost rows. */
bool loading_state(const struct loading *ld, enum loading_phase *phase, uint64_t *number);

void loading_close(struct shard *s);
/* An acknowledgement or a new view came, records have passed, or some time has passed. */
void loading_check(struct shard *s);
/* Sets s->loads->restoring: does the view have rows of ours to restore that are not restored yet? */
void loading_update(struct shard *s);

#endif
