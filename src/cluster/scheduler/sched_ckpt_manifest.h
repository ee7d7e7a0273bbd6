/*
 * What a save writes when all servers have written their files: the manifest. Then old checkpoints that the clock
 * took are removed. Must never know: orders. Tests: test/cluster/test_sched_ckpt.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_CKPT_MANIFEST_H
#define CLUSTER_SCHEDULER_SCHED_CKPT_MANIFEST_H

#include "base/cursor.h"
#include "cluster/scheduler/sched_ckpt_impl.h"

/* A server's report: its files come into the manifest. PROTOCOL, MEMORY. */
MUST_USE paramo_err sched_ckpt_add_files(struct sched_ckpt *c, struct reader *result);
/* Called after all shards have taken their snapshots, so every table that any of them saved is in the list. MEMORY. */
MUST_USE paramo_err sched_ckpt_add_tables(struct sched_ckpt *c);
/* All servers have written: writes the manifest, and the save ends. */
void sched_ckpt_commit(struct sched_ckpt *c);

#endif
