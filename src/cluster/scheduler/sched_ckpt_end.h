/*
 * The end of a checkpoint: its callers are answered, servers are told that it is over, and it is freed when no order
 * and no blocking job of it is left. Also its blocking jobs, after which it continues or fails. Must never know: what
 * servers write. Tests: test/cluster/test_sched_ckpt.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_CKPT_END_H
#define CLUSTER_SCHEDULER_SCHED_CKPT_END_H

#include "cluster/scheduler/sched_ckpt_impl.h"

/* A checkpoint is taken, or loaded for one of three: a caller, the job's begin, or rows that were lost. */
void sched_ckpt_check(const struct sched_ckpt *c);
/* The blocking jobs are done, or its scheduler is gone. */
void sched_ckpt_free(struct sched_ckpt *c);
/* Answers the callers, once. The servers may still have orders. */
void sched_ckpt_finish(struct sched_ckpt *c);
/* The first failure ends it for its callers, with this thread's message; servers are told to drop it. c stays until
 * sched_ckpt_end_perhaps. */
void sched_ckpt_fail(struct sched_ckpt *c, paramo_err err);
/* Frees the checkpoint when no order and no blocking job of it is left. */
void sched_ckpt_end_perhaps(struct sched_ckpt *c);
void sched_ckpt_copy_stop(struct sched_ckpt *c);
/* GO ends a load, DROP a saving or a load that has failed. A server that holds requests waits for it without a
 * deadline. So it is sent until it is accepted: memory may be short, or the server may have too many unanswered
 * orders. OK: it is sent, or will be sent later. */
MUST_USE paramo_err sched_ckpt_last_order(struct sched_ckpt *c, struct sched_node *node);
/* The functions of two timers. */
void sched_ckpt_resend(struct lane_timer *timer);
void sched_ckpt_too_late(struct lane_timer *timer);
/* `work` runs where it may block, then `then` here, unless the checkpoint has failed. */
void sched_ckpt_do_work(struct sched_ckpt *c, void (*work)(struct blocking_job *blocking_job),
                        void (*then)(struct sched_ckpt *c));
/* Called in a blocking job: notes how it ended. */
void sched_ckpt_note_work(struct sched_ckpt *c, paramo_err err);

#endif
