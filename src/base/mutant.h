/*
 * Bugs that are planted on purpose, to see whether the tests find them: one build (CMake PARAMO_MUTANTS=ON)
 * carries all, and one is switched on by name at run time (scripts/mutants). In every other build MUTANT() is
 * constant false and its branch is gone. docs/SIMULATOR.md says which are found by what.
 *
 * A mutant stands where a likely mistake would: one line, in the words of the code around it.
 */
#ifndef BASE_MUTANT_H
#define BASE_MUTANT_H

#include <stdbool.h>
#include <stddef.h>

/* clang-format off */
#define MUTANTS(X)                                                                                       \
    X(record_before_update, "a number is recorded before it is known that the update can be made")       \
    X(update_without_record, "now and then an update is made and its number is not recorded")            \
    X(floor_without_window, "a number above the floor raises the floor when it is applied")              \
    X(repeat_applied, "a repeat whose number is recorded is applied again")                              \
    X(ack_before_apply, "a slice that waits for a view is acknowledged at once")                         \
    X(ack_when_sent, "a push counts as answered when its frame has left")                                \
    X(retry_new_number, "a lost chunk is sent again under a new number")                                 \
    X(last_key_lost, "the last key of a shard's slice is left out")                                      \
    X(answer_counted_twice, "the answer to a slice that was sent twice counts twice")                    \
    X(overtakes_equal, "a slice overtakes those of the same priority")                                   \
    X(buffer_reused, "the buffer of gathered keys goes back to the pool before the answers")             \
    X(array_after_deadline, "at its deadline a request is reported, but its answers are still placed")   \
    X(callback_twice, "a request that is cancelled is called back twice")                                \
    X(lost_not_resent, "slices on a broken connection are not sent again")                               \
    X(probe_answers_done, "a probe for an unknown number is answered with done")                            \
    X(owner_gone_forgotten, "a restarted scheduler has forgotten when owners were gone")                 \
    X(orphans_stay, "partitions whose owner died before there was a table stay without one")            \
    X(owner_gone_of_shard, "rows count as lost whenever the partitions of their shard change")           \
    X(lost_rows_as_zeros, "a server that came back answers zeros for the rows it lost")                  \
    X(old_view_adopted, "a member takes a view that is older than its own")                              \
    X(view_not_awaited, "a slice of a newer view is handled by the old one")                             \
    X(dead_server_waits, "requests to a dead server wait for their deadline instead of ending")          \
    X(fence_forgotten, "a shard serves a worker that was declared dead")                                 \
    X(old_incarnation_returns, "a dead node that registers again is taken back")                         \
    X(call_done_twice, "the scheduler adds again when it is asked again")                                       \
    X(barrier_number_stays, "a barrier is released with the number of the one before")                   \
    X(barrier_short, "a barrier is released one node early")                                             \
    X(handler_repeated, "a repeated request is handed to the handler again")                             \
    X(kept_answer_leaks, "the handlers' requests stay when the floor has passed")                        \
    X(rank_not_freed, "a restarted node does not get a dead one's place")                                \
    X(capabilities_claimed, "an acceptor takes all capabilities that it is offered")                     \
    X(stale_view_accepted, "a shard takes slices that were cut before its partitions changed")                 \
    X(old_attempt_accepted, "the answer to an older attempt of a chunk counts")                          \
    X(partial_keys_together, "a chunk whose keys have parted goes to the owner of the first")             \
    X(last_columns_lost, "the last columns of a row that is cut inside are not sent")                    \
    X(copy_forgotten, "a request that was to be copied stands on the caller's arrays")                   \
    X(done_before_placed, "a request is reported before its last answers are placed")                    \
    X(scan_from_next, "a batch of rows begins behind the key that it was asked from")                    \
    X(scan_resumed_past, "a resumed scan goes on behind the rows that it was given, not those handed on")  \
    X(batch_goes_on, "a batch that is asked for again goes on behind the one that was lost")              \
    X(page_end_stays, "a page of keys that drops the last for want of room says that it ends behind them") \
    X(work_unit_returned_too_soon, "a part of the pool is dealt again when its worker's connection breaks")       \
    X(work_unit_kept_by_dead, "a dead worker's part does not go back to the pool")                            \
    X(work_unit_before_fence, "a worker is given a dead one's part before it knows of the death")             \
    X(stale_token_accepted, "the report of a part that has passed to another counts")                       \
    X(lease_returned_twice, "the part of a lease that is done goes back to the pool with its worker")    \
    X(round_ends_early, "a round of the pool ends with its last part still out")                         \
    X(value_keeps_first, "a value that is put again at the scheduler stays as it was")                     \
    X(after_ignored, "a request does not wait for those that it comes after")                             \
    X(after_failed_sent, "a request is sent although one that it comes after has failed")                 \
    X(ckpt_without_records, "a checkpoint has the rows without the senders' records")                      \
    X(manifest_before_data, "a checkpoint's manifest is written before its rows are on the disk")         \
    X(delta_without_erased, "an incremental checkpoint has the rows that changed without those that went")  \
    X(delta_on_wrong_base, "a shard writes changes although it knows them since another checkpoint")        \
    X(base_removed, "an old checkpoint is removed although one that stays is based on it")                \
    X(files_before_manifest, "an old checkpoint's files are removed before its manifest")                 \
    X(number_not_claimed, "a checkpoint's folder is made by whoever writes into it first")                \
    X(files_not_checked, "a manifest is written without a look at the files that it names")            \
    X(stale_order_accepted, "a shard saves for a scheduler that leads no more")                               \
    X(ckpt_without_window, "a checkpoint has the senders' records as floors only")                         \
    X(saved_before_manifest, "a checkpoint counts as taken before its manifest is written")               \
    X(ckpt_without_pools, "a checkpoint has nothing of pools and values")                                 \
    X(view_before_restored, "workers begin before the checkpoint is loaded that the job begins with")     \
    X(load_keeps_old_rows, "a checkpoint is loaded over the rows that there are")                         \
    X(load_drops_last, "the last rows of a checkpoint are not loaded")                                    \
    X(load_without_records, "a checkpoint is loaded without the senders' records")                         \
    X(load_by_owner_only, "only the owners of partitions load a checkpoint, not those that follow them")        \
    X(restore_all_partitions, "a server restores all that is its own, not only what was lost")                 \
    X(restore_without_records, "the senders' records do not come with what is restored")                  \
    X(restore_without_wait, "who has lost rows by a view says so, although they are about to come back") \
    X(load_end_unsent, "a shard that aborted a load before GO came does not report it")                        \
    X(dropped_untold, "who was dropped in the moment in which all others died is not asked")              \
    X(load_to_strangers, "a load goes on with partitions that have left the shard meanwhile")                     \
    X(late_hold_obeyed, "a HOLD that comes after the GO of its load holds the shard all the same")         \
    X(load_not_held, "a shard that ended its hold before it was to load, and served, loads all the same")  \
    X(load_without_hold, "a checkpoint is loaded while changes are on their way between copies")          \
    X(save_not_synced, "a table's file takes its name before its bytes are on the disk")                  \
    X(replica_without_record, "a follower does an update and does not record its number")                 \
    X(promoted_without_resend, "a promoted replica does not send on what was not confirmed")              \
    X(forward_before_order, "a member does what is sent again a second time")                              \
    X(served_amid_records, "a shard serves while the records of senders pass to it")                      \
    X(promoted_serves_at_once, "a promoted replica serves before its followers have what it sent again")  \
    X(records_stay_behind, "promoted, a replica takes over partitions without their records")                   \
    X(acks_before_next, "a follower acknowledges what the next does not have yet")                        \
    X(commit_before_handover, "the scheduler commits a migration when its target is full, without a pause")    \
    X(paused_too_soon, "an owner says that it has paused while its last changes are on their way")        \
    X(owner_resumes_by_timer, "an owner that has paused goes on when it has heard nothing for a while")   \
    X(migration_drops_last, "the last batch of a migration, records and orders, is not sent")                       \
    X(migration_without_window, "records go with partitions as floors only")                                         \
    X(pause_after_abort, "an owner that aborted a migration pauses for it, without what was to be sent")     \
    X(records_before_commit, "a member takes the owner's records before the migration is committed")           \
    X(load_before_lease_ends, "a load does not wait for the end of a dead owner's lease")                  \
    X(lease_of_next_only, "an owner reads by the lease of the next member alone, not by all of its chain's") \
    X(target_without_lease, "an owner that paused reads on although the migration's target is silent")         \
    X(replica_counted_early, "a target says that it is full when it has begun")                           \
    X(absent_counts, "copies on servers that have not registered count as there")                         \
    X(owner_in_place, "an owner that is to go takes the place of who is to be the owner")               \
    X(end_of_ckpt_untold, "a server that cannot be told GO is never told")                                \
    X(loss_said_early, "where lost rows go back to is said before it is durable")                          \
    X(end_of_migration_unsent, "a shard that cannot be sent the end of a migration is never sent it")                         \
    X(rows_met_and_lost, "a migration goes on behind rows that it had no memory to send")                 \
    X(lease_not_awaited, "a promoted replica does not wait for the end of its owner's lease")             \
    X(lease_never_ends, "an owner answers pulls however long its followers have been silent")             \
    X(chain_leave_missing, "a member that leaves a chain acknowledges what it has not passed on")         \
    X(cleared_rows_linger, "rows that are being cleared are read, and change, meanwhile")                \
    X(gate_not_carried, "a successor serves before the next has what one that died was to have")          \
    X(floor_sent_again, "a floor is said to followers each time that a worker says it")                  \
    X(restored_without_table, "a shard that has no memory for a lost table says that it has been restored")\
    X(returned_owner_keeps, "who has given partitions away keeps their rows")                                   \
    X(short_table_acked_early, "a change of a table with fewer replicas goes one member less far")        \
    X(refill_skips_short_table, "a migration leaves out tables that have fewer replicas than the job")         \
    X(repeat_before_chain, "a repeat is answered before the chain has the original")                      \
    X(old_epoch_accepted, "a member takes what comes from one that its view has dead, and acknowledges it") \
    X(forward_before_record, "an owner records a number when the chain has it, not with the update")       \
    X(goodbye_of_old_connection, "a goodbye ends the record of a customer that was opened again since")   \
    X(forget_all, "followers forget a silent sender, whatever it has done since")                          \
    X(dead_keep_connections, "connections of workers that were declared dead stay open")                  \
    X(floor_unsent, "a worker that falls silent does not say how far it has come")                         \
    X(record_freed_early, "a sender's record ends with its connection, before it is fenced")              \
    X(window_too_small, "records take numbers for done that are eight apart")                             \
    X(named_before_whole, "a table's file takes its name before its last bytes are written")            \
    X(view_before_durable, "the scheduler announces a view before it is durable")                        \
    X(answer_before_durable, "the scheduler answers a call before what it changed is durable")           \
    X(log_entry_lost, "now and then what the scheduler saves is not written")                           \
    X(term_not_raised, "a scheduler that is started again keeps the term of the one before")             \
    X(call_not_kept, "a scheduler that is started again does calls again that the one before has done")  \
    X(lease_forgotten, "a scheduler that is started again does not know who works on which part")        \
    X(save_without_fence, "two schedulers both believe: what is saved in etcd does not compare the term") \
    X(fence_by_node, "a dead worker is told by its node's number, which a new one may have")              \
    X(client_far_ahead, "a client gives a number that is 1,025 from its floor")                           \
    X(partition_begins_late, "the first key of a partition goes to the owner of the one before")                     \
    X(state_of_deleted, "a row that is made anew has the state of the one that was deleted there")        \
    X(last_not_awaited, "a wait for all requests does not wait for the last")                             \
    X(wait_leaves_request, "a wait that is interrupted leaves its request the caller's arrays")           \
    X(repeat_reads_lost, "a pushpull that comes again reads what is lost as zeros")                       \
    X(block_sum_unchecked, "the checksums of a checkpoint's blocks are not compared when it is read")      \
    X(deposed_ends_job, "a scheduler that lost the lead before the end was durable says that the job is over") \
    X(recovery_not_awaited, "the job ends with its last worker although it is to wait for another")       \
    X(drained_is_missed, "a checkpoint fails because a drained server, which owns nothing, has left")      \
    X(lost_keep_records, "partitions without any copy left keep the records of what is done on them")     \
    X(failed_load_stays, "servers that have loaded keep the rows of a load that failed elsewhere")        \
    X(accept_unproved, "a peer is taken for one of this host although it has not read our memory")
/* clang-format on */

enum mutant {
    MUTANT_none,
#define MUTANT_ENUM(name, text) MUTANT_##name,
    MUTANTS(MUTANT_ENUM)
#undef MUTANT_ENUM
        MUTANT_COUNT
};

#ifdef PARAMO_MUTANTS
extern enum mutant mutant_chosen;
#define MUTANT(name) (mutant_chosen == MUTANT_##name)
#else
#define MUTANT(name) false
#endif

/* From here on that one; false: there is none of this name in this build. */
bool mutant_choose(const char *name);
/* From 1; NULL at the end. *text: what it does. */
const char *mutant_name(size_t i, const char **text);

#endif
