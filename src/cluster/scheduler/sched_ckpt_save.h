/*
 * The begin of a save: its base, its number, and a copy of the job's durable records, which are saved before any
 * shard takes its snapshot. Must never know: which servers write. Tests: test/cluster/test_sched_ckpt.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_CKPT_SAVE_H
#define CLUSTER_SCHEDULER_SCHED_CKPT_SAVE_H

#include "cluster/scheduler/sched_ckpt_impl.h"

/* Is this save to be incremental, based on the last checkpoint? */
void sched_ckpt_choose_base(struct sched_ckpt *c, const struct ckpt_base *last);
/* Finds a number, copies the records, and orders the servers to write. */
void sched_ckpt_save(struct sched_ckpt *c);

#endif
