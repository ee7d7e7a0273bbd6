/*
 * Checkpoints of the running job. Takes and loads them, one at a time, when a member, an admin client or the timer
 * asks for it. For sched_recovery.h it loads only the lost rows of one.
 * Must never know: rows; servers write and read them (src/server/snapshot/).
 * Tests: test/cluster/test_sched_ckpt.c, test_sched_begin.c, test_sched_lost.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_CKPT_H
#define CLUSTER_SCHEDULER_SCHED_CKPT_H

#include "cluster/scheduler/sched_ckpt_impl.h"

struct sched_peer;
struct status;

void sched_ckpt_init(struct scheduler *s, const struct sched_ckpt_ops *ops);
void sched_ckpt_call(struct sched_call *call, struct reader *body);
MUST_USE paramo_err sched_ckpt_admin_query(struct sched_peer *peer, const struct wire_call *call,
                                           struct reader *body);
/* The job is complete: begins to load what it starts with, and starts the clock of --checkpoint-every. */
MUST_USE paramo_err sched_ckpt_begin(struct scheduler *s);
/* Continues the load of sched_ckpt_begin() under a new scheduler: loads only what is not loaded yet. */
MUST_USE paramo_err sched_ckpt_start(struct scheduler *s);
/* The load that the job begins with has failed: it is carried out again, or the job ends. */
void sched_ckpt_begin_failed(struct scheduler *s, paramo_err err, const char *text);
/* Loads what is lost, and nothing else, from the last checkpoint. lost_opened and lost_ended follow. */
MUST_USE paramo_err sched_ckpt_load_lost(struct scheduler *s);
/* The one that is taken or loaded fails, with this thread's message. */
void sched_ckpt_abandon(struct scheduler *s, paramo_err err);
/* One is taken or loaded now: nothing migrates. */
bool sched_ckpt_busy(const struct scheduler *s);
void sched_ckpt_fini(struct scheduler *s);
/* The checkpoint from which servers restore lost rows at present; 0: none. */
uint64_t sched_ckpt_returns(const struct scheduler *s);
/* The checkpoint that servers load at present because the job begins with it; 0: none. */
uint64_t sched_ckpt_begins_with(const struct scheduler *s);
void sched_ckpt_status(const struct scheduler *s, struct status *m);

#endif
